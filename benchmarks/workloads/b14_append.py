"""B14: append rows to a table: as they come, by 30 and by 365 partitions, and Arrow tables without Spark.

Spark's peers read the same files, and each appends to a new table of its own; Arrow's have the rows in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size

_HERE = __name__
INNER, PROCESSES, FILES = 3, 2, 4
DELTA_SPARK, PARQUET, SNAPPY = "delta-spark", "Spark writing plain Parquet", "pyspark-delta, snappy"


def workload(scale: Scale) -> Workload:
    """Every partitioning, with Spark and without."""
    rows = dataset("data", rows=scale.rows, files=FILES)
    as_parquet, as_delta_spark = Goal(PARQUET, 1 / 1.1), Goal(DELTA_SPARK, 1)

    def variant(partitions: int) -> Variant:
        by = f" by {partitions} partitions" if partitions else ""
        goals = (as_parquet, as_delta_spark, Goal("deltalake", 1))
        return Variant(f"{size(scale.rows)} rows{by}", rows, {"partitions": partitions}, goals)

    return Workload(
        "B14",
        "Append",
        (
            Peer(OURS, f"{_HERE}:ours", inner=INNER, processes=PROCESSES, session=True),
            Peer(SNAPPY, f"{_HERE}:snappy", inner=INNER, processes=PROCESSES, session=True),
            Peer(PARQUET, f"{_HERE}:parquet", inner=INNER, processes=PROCESSES, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", INNER, PROCESSES, session=True),
            Peer(ARROW, f"{_HERE}:arrow", inner=INNER, processes=PROCESSES),
            Peer("deltalake", f"{_HERE}:deltalake", inner=INNER, processes=PROCESSES, against=ARROW),
        ),
        tuple(variant(partitions) for partitions in (0, 30, 365)),
    )


# --------------------------------------------------------------------------------------------------------- on Spark
def ours(location: str, partitions: int) -> Prepared:
    return _on_spark("ours", "delta", location, partitions)


def snappy(location: str, partitions: int) -> Prepared:
    """With the codec that Spark's writers take by default, in place of zstd."""
    return _on_spark("ours", "delta", location, partitions, compression="snappy")


def parquet(location: str, partitions: int) -> Prepared:
    return _on_spark("parquet", "parquet", location, partitions)


def delta_spark(location: str, partitions: int) -> Prepared:
    return _on_spark("delta-spark", "delta", location, partitions)


def _on_spark(writer: str, form: str, location: str, partitions: int, **options: str) -> Prepared:
    from benchmarks.spark_sessions import session

    frame = session(writer).read.parquet(location)
    if partitions:
        frame = frame.selectExpr("*", f"cast(amount % {partitions} as int) as part")
    by = ["part"] if partitions else []

    def append(table: str) -> None:
        frame.write.format(form).mode("append").options(**options).partitionBy(*by).save(table)

    return _into_new_tables(location, append, partitions)


# ---------------------------------------------------------------------------------------------------- without Spark
def arrow(location: str, partitions: int) -> Prepared:
    from pyspark_delta import Table

    rows, by = _arrow_rows(location, partitions)

    def append(table: str) -> None:
        Table.create(table, rows.schema, partition_by=by).append(rows)

    return _into_new_tables(location, append, partitions)


def deltalake(location: str, partitions: int) -> Prepared:
    from deltalake import write_deltalake

    rows, by = _arrow_rows(location, partitions)
    return _into_new_tables(
        location, lambda table: write_deltalake(table, rows, mode="append", partition_by=by), partitions
    )


def _arrow_rows(location: str, partitions: int) -> tuple[Any, list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.concat_tables(pq.read_table(path) for path in sorted(Path(location).glob("*.parquet")))
    if not partitions:
        return rows, []
    parts = pa.array(rows["amount"].to_numpy() % partitions).cast(pa.int32())
    return rows.append_column("part", parts), ["part"]


# --------------------------------------------------------------------------------------------------------- of both
def _into_new_tables(location: str, append: Callable[[str], None], partitions: int) -> Prepared:
    """Every call appends to a table that is not there yet; the answer is what all its files hold together.

    One table is kept at a time, so that what a call costs does not depend on the calls before.
    """
    folder = tempfile.TemporaryDirectory(prefix="b14-", dir=Path(location).parent)
    number = 0

    def timed() -> str:
        nonlocal number
        number += 1
        table = str(Path(folder.name, f"table-{number}"))
        append(table)
        return table

    def answer(table: str) -> dict[str, Any]:
        found = {"rows": _rows_in(table), "partitions": len(list(Path(table).glob("part=*")))}
        shutil.rmtree(table)
        return found

    return Prepared(timed, answer)


def _rows_in(table: str) -> int:
    import pyarrow.parquet as pq

    files = [path for path in Path(table).rglob("*.parquet") if "_delta_log" not in path.parts]
    return sum(pq.read_metadata(path).num_rows for path in files)
