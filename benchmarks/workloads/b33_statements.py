"""B33: what SQL costs beside the method that does the same, without the work itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Dataset, Goal, Peer, Prepared, Scale, Variant, Workload, dataset

_HERE = __name__
PLAIN, METHOD = "Spark without pyspark-delta", "by a method"
TIMES = 50  # statements of one measurement


def workload(scale: Scale) -> Workload:
    """A statement that is not ours, the analysis of a query, and a small MERGE."""
    table = dataset("data", rows=10_000, files=4)
    return Workload(
        "B33",
        f"Cost of {TIMES} statements",
        (
            Peer(OURS, f"{_HERE}:ours", inner=5, processes=3, session=True),
            Peer(PLAIN, f"{_HERE}:plain", inner=5, processes=3, session=True),
            Peer(METHOD, f"{_HERE}:method", inner=5, processes=3, session=True),
        ),
        (
            _variant("SELECT 1", table, "literal", Goal(PLAIN, 1, slack=0.0005 * TIMES), PLAIN),
            _variant("analysis of a SELECT", table, "analysis", Goal(METHOD, 1 / 1.5), METHOD),
            _variant("MERGE of 10 rows", table, "merge", Goal(METHOD, 1, slack=0.02), METHOD),
        ),
    )


def _variant(name: str, made_of: Dataset, kind: str, goal: Goal, peer: str) -> Variant:
    return Variant(name, made_of, {"kind": kind}, (goal,), peers=(OURS, peer))


def ours(location: str, kind: str) -> Prepared:
    """By SQL, in an enabled session."""
    from benchmarks.spark_sessions import session

    spark = session("ours")
    match kind:
        case "literal":
            return _repeated(lambda: spark.sql("SELECT 1"))
        case "analysis":
            return _repeated(lambda: spark.sql(f"SELECT * FROM delta.`{location}`"))
        case _:
            spark.range(10).createOrReplaceTempView("source")
            text = "MERGE INTO delta.`{}` t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id"
            return _on_copy(location, lambda path: spark.sql(text.format(path)).collect())


def plain(location: str, kind: str) -> Prepared:
    """By SQL, in a session that is not enabled."""
    from benchmarks.spark_sessions import session

    spark = session("parquet")
    return _repeated(lambda: spark.sql("SELECT 1"))


def method(location: str, kind: str) -> Prepared:
    """By the methods of an enabled session."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark = session("ours")
    if kind == "analysis":
        return _repeated(lambda: spark.table(f"delta.`{location}`"))
    spark.range(10).createOrReplaceTempView("source")

    def merge(path: str) -> Any:
        target, source = DeltaTable.forPath(spark, path).alias("t"), spark.table("source").alias("s")
        return target.merge(source, "t.id = s.id").whenMatchedUpdate(set={"id": "s.id"}).execute().collect()

    return _on_copy(location, merge)


def _repeated(run: Callable[[], Any]) -> Prepared:
    def timed() -> None:
        for _ in range(TIMES):
            run()

    return Prepared(timed)


def _on_copy(location: str, change: Callable[[str], Any]) -> Prepared:
    """Every call changes the same copy of the table."""
    folder = tempfile.TemporaryDirectory(prefix="statements-")
    table = Path(folder.name, "table")
    shutil.copytree(location, table)

    def timed() -> Any:
        assert folder.name  # the copy lives as long as this function
        return change(str(table))

    return Prepared(timed, lambda rows: [list(row) for row in rows])
