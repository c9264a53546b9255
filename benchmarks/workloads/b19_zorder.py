"""B19: cluster TPC-H's lineitem, in many small files, by the two columns that query 6 filters by.

The answer has how many files such queries read afterwards.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.row_changes import _link

_HERE = __name__
DELTA_SPARK, DELTALAKE = "delta-spark", "deltalake"
COLUMNS = ["l_shipdate", "l_quantity"]
_FILES_AFTER = 64


def workload(scale: Scale) -> Workload:
    """Z-order of all rows, with Spark and without."""
    return Workload(
        "B19",
        "Z-order",
        (
            Peer(OURS, f"{_HERE}:ours", session=True, inner=1, processes=2),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", inner=1, processes=2, session=True, checked=False),
            Peer(ARROW, f"{_HERE}:arrow", inner=1, processes=2),
            Peer("sorted by pyspark-delta, Arrow", f"{_HERE}:sort", inner=1, processes=2, against=ARROW, checked=False),
            Peer(DELTALAKE, f"{_HERE}:deltalake", inner=1, processes=2, against=ARROW, checked=False),
        ),
        (
            Variant(
                f"{size(scale.rows)} rows of lineitem",
                dataset("lineitem", rows=scale.rows, files=scale.small_files // 25),
                {},
                (
                    Goal(DELTALAKE, 1 / 0.35, "cpu_seconds"),
                    Goal(DELTALAKE, 1 / 0.4, "added_mib"),
                    Goal(DELTA_SPARK, 1),
                ),
                2,
            ),
        ),
    )


def ours(location: str) -> Prepared:
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark = session("ours")

    def change(path: str, target: int) -> None:
        DeltaTable.forPath(spark, path).optimize().withTargetSize(target).executeZOrderBy(*COLUMNS).collect()

    return _on_copies(location, change)


def delta_spark(location: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")

    def change(path: str, target: int) -> None:
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(target))
        spark.sql(f"optimize delta.`{path}` zorder by ({', '.join(COLUMNS)})").collect()

    return _on_copies(location, change)


def arrow(location: str) -> Prepared:
    from pyspark_delta import Table

    def change(path: str, target: int) -> None:
        Table.open(path).optimize(zorder_by=COLUMNS, target_size=target)

    return _on_copies(location, change)


def sort(location: str) -> Prepared:
    """Sorted by both columns: what a query by the first one can gain at most."""
    from pyspark_delta import Sort, Table

    def change(path: str, target: int) -> None:
        Table.open(path).optimize(layout=Sort(*COLUMNS), target_size=target)

    return _on_copies(location, change)


def deltalake(location: str) -> Prepared:
    from deltalake import DeltaTable

    def change(path: str, target: int) -> None:
        DeltaTable(path).optimize.z_order(COLUMNS, target_size=target)

    return _on_copies(location, change)


def queries() -> Iterator[str]:
    """Conditions like those of query 6: a year and few pieces; and each of them alone."""
    for year in range(1993, 1998):
        in_year = f"l_shipdate >= date'{year}-01-01' and l_shipdate < date'{year + 1}-01-01'"
        yield from (f"{in_year} and l_quantity < 24", f"l_shipdate = date'{year}-06-17'")
    yield from (f"l_quantity = {number}" for number in range(5, 50, 10))


def _on_copies(location: str, change: Callable[[str, int], None]) -> Prepared:
    """Every call changes a new copy of the table, whose data files are links; the answer are files and rows."""
    from pyspark_delta import Table

    folder = tempfile.TemporaryDirectory(prefix="layouts-", dir=Path(location).parent)
    target = max(Table.open(location).detail()["sizeInBytes"] // _FILES_AFTER, 1)
    number = 0

    def timed() -> str:
        nonlocal number
        number += 1
        table = Path(folder.name, f"table-{number}")
        shutil.copytree(location, table, copy_function=_link)
        change(str(table), target)
        return str(table)

    def answer(table: str) -> dict[str, Any]:
        opened = Table.open(table)
        read = [opened.scan(where=where).files().num_rows for where in queries()]
        found = {"rows": opened.count(), "files": opened.files().num_rows, "files_read": sum(read)}
        shutil.rmtree(table)
        return found

    return Prepared(timed, answer)
