"""B27: compact a table of 10,000 small files, one of files that are large already, and one that has both.

The rows of small files are decoded and encoded. Large row groups are copied, unless the implementation cannot; ours
that encodes everything is beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.model import ARROW, FULL, OURS, Dataset, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.row_changes import on_copies

_HERE = __name__
DELTA_SPARK, DELTALAKE, ENCODING = "delta-spark", "deltalake", "pyspark-delta, Arrow, encoding all"
SMALL_ROWS, MIDDLE_ROWS, LARGE_ROWS = 2_000, 800_000, 2_400_000  # about 100 kB, 40 MB and 120 MB
MIB = 1 << 20


def workload(scale: Scale) -> Workload:
    """Small files, large ones, and both."""
    middle, large, few = (100, 20, 2_000) if scale == FULL else (3, 2, 60)
    small = scale.small_files

    def variant(name: str, made_of: Dataset, target: int, *goals: Goal) -> Variant:
        return Variant(name, made_of, {"target": target}, goals, repetitions=2)

    def cpu(share: float) -> tuple[Goal, Goal]:
        return Goal(DELTALAKE, 1 / share, "cpu_seconds"), Goal(DELTA_SPARK, 1 / share, "cpu_seconds")

    return Workload(
        "B27",
        "Compact",
        (
            Peer(ARROW, f"{_HERE}:arrow", inner=1, processes=2),
            Peer(ENCODING, f"{_HERE}:encoding", inner=1, processes=2),
            Peer(DELTALAKE, f"{_HERE}:deltalake", inner=1, processes=2, against=ARROW),
            Peer(OURS, f"{_HERE}:ours", inner=1, processes=1, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", 1, 1, session=True),
        ),
        (
            variant(
                f"{size(small)} files of 100 kB",
                dataset("data", rows=small * SMALL_ROWS, files=small),
                128 * MIB,
                Goal(DELTALAKE, 1 / 0.9, "cpu_seconds"),
                Goal(DELTA_SPARK, 2),
            ),
            variant(
                f"{middle} files of 40 MB",
                dataset("data", rows=middle * MIDDLE_ROWS, files=middle),
                1024 * MIB,
                *cpu(0.15),
            ),
            variant(
                f"{large} files of 120 MB, {size(few)} of 100 kB",
                dataset("data", rows=few * SMALL_ROWS, files=few, large=large, large_rows=LARGE_ROWS),
                1024 * MIB,
                *cpu(0.35),
            ),
        ),
    )


def ours(location: str, target: int) -> Prepared:
    """By `DeltaTable`, in a session."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark = session("ours")

    def compact(path: str) -> None:
        DeltaTable.forPath(spark, path).optimize().withTargetSize(target).executeCompaction().collect()

    return _prepared(location, compact)


def delta_spark(location: str, target: int) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")
    for name in ("minFileSize", "maxFileSize"):
        spark.conf.set(f"spark.databricks.delta.optimize.{name}", str(target))
    return _prepared(location, lambda path: spark.sql(f"optimize delta.`{path}`").collect())


def arrow(location: str, target: int) -> Prepared:
    from pyspark_delta import Table

    return _prepared(location, lambda path: Table.open(path).optimize(target_size=target))


def encoding(location: str, target: int) -> Prepared:
    """Without copied row groups."""
    from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
    from pyspark_delta.table import Table

    def compact(path: str) -> None:
        plan_optimize(Table.open(path).snapshot, OptimizeRequest(target_size=target, copying=None)).execute()

    return _prepared(location, compact)


def deltalake(location: str, target: int) -> Prepared:
    from deltalake import DeltaTable

    return _prepared(location, lambda path: DeltaTable(path).optimize.compact(target_size=target))


def _prepared(location: str, compact: Callable[[str], Any]) -> Prepared:
    return on_copies(location, compact, {})
