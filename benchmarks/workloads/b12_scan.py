"""B12: read tables with data: whole, some columns, some rows, of many small files, mapped, and partitioned."""

from __future__ import annotations

from benchmarks.model import ARROW, OURS, AtMost, Dataset, Goal, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.queries import DELTA_SPARK, PARQUET, PEERS, Query

FILES, PARTITIONS = 16, 28
AS_DELTALAKE, AS_POLARS = Goal("deltalake", 1 / 1.1), Goal("polars", 1 / 1.1)  # for the scan without Spark


def plain(scale: Scale) -> Dataset:
    """The table of few files."""
    return dataset("data", rows=scale.rows, files=FILES)


def workload(scale: Scale) -> Workload:
    """All shapes of data and queries."""
    rows, part = size(scale.rows), scale.rows // FILES
    mapped = dataset("data", rows=scale.rows, files=FILES, mapped=True)
    partitioned = dataset("data", rows=scale.rows, files=2 * PARTITIONS, partitions=PARTITIONS)
    small = dataset("data", rows=scale.rows, files=scale.small_files)
    many = dataset("data", rows=scale.rows, files=scale.many_files, partitions=PARTITIONS)
    without_polars = (OURS, PARQUET, DELTA_SPARK, ARROW, "deltalake")
    as_parquet, as_delta_spark = Goal(PARQUET, 1 / 1.1), Goal(DELTA_SPARK, 1)
    goals = (as_parquet, as_delta_spark, AS_DELTALAKE, AS_POLARS)
    some = Query(where=f"id >= {3 * part + 10} and id < {5 * part - 10} and price > 2500.0")
    return Workload(
        "B12",
        "Scan",
        PEERS,
        (
            Variant(
                f"{rows} rows, all columns",
                plain(scale),
                Query(full=True).arguments(),
                goals,
            ),
            Variant(
                f"{rows} rows, one column",
                plain(scale),
                Query(sums=("amount",)).arguments(),
                goals,
            ),
            Variant(
                f"{rows} rows, filtered to 2 of {FILES} files",
                plain(scale),
                some.arguments(),
                goals,
            ),
            Variant(
                f"{size(scale.small_files)} small files",
                small,
                Query(sums=("amount",)).arguments(),
                goals,
            ),
            Variant(
                f"{rows} rows, mapped columns",
                mapped,
                {**Query().arguments(), "mapped": True},
                goals[:3],
                peers=without_polars,
            ),
            Variant(
                f"{rows} rows by {PARTITIONS} partitions",
                partitioned,
                Query(group="part").arguments(),
                goals,
            ),
            Variant(
                f"one of {PARTITIONS} partitions of {size(scale.many_files)} files",
                many,
                Query(where="part = 5").arguments(),
                (*goals, AtMost(1.6)),
            ),
        ),
    )
