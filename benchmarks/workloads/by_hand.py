"""DELETE, UPDATE and MERGE as somebody would write them for plain Parquet files: find the files, write them anew.

Nothing is committed, and no file goes: readers would see the old rows and the new ones. What a table adds to this is
its price.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.model import Prepared

_FILE = "input_file_name() as file"


def change(location: str, plain: str, **statement: Any) -> Prepared:
    """The answer is that of the table's rows: those of the files that were not touched, and the new ones."""
    from benchmarks.spark_sessions import session

    spark = session("parquet")
    folder = tempfile.TemporaryDirectory(prefix="by-hand-", dir=Path(plain).parent)
    made = 0

    def timed() -> tuple[list[str], str]:
        nonlocal made
        made += 1
        target = str(Path(folder.name, str(made)))
        return _change(spark, plain, target, statement), target

    def answer(result: tuple[list[str], str]) -> dict[str, Any]:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        touched, target = result
        gone = {Path(path).name for path in touched}
        kept = [str(path) for path in Path(plain).glob("*.parquet") if path.name not in gone]
        files = [*kept, *map(str, Path(target).glob("*.parquet"))]
        measure = statement.get("measure", "amount")
        found = ds.dataset(files).to_table(columns=[measure])
        return {"rows": found.num_rows, measure: str(pc.sum(found[measure]).as_py())}

    return Prepared(timed, answer)


def _change(spark: Any, location: str, target: str, statement: Mapping[str, Any]) -> list[str]:
    """Write the new rows to the folder `target`; the files that they stand in for."""
    if statement["kind"] == "merge":
        return _merge(spark, location, target, statement)
    from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

    where = F.expr(statement["where"])
    touched = _distinct_files(spark.read.parquet(location).where(where).selectExpr(_FILE))
    rows = spark.read.parquet(*touched)
    if statement["kind"] == "delete":
        rows = rows.where(~where)
    else:
        new = {name: F.when(where, F.expr(text)).otherwise(F.col(name)) for name, text in statement["set"].items()}
        rows = rows.withColumns(new)
    rows.write.parquet(target)
    return touched


def _merge(spark: Any, location: str, target: str, statement: Mapping[str, Any]) -> list[str]:
    from benchmarks.workloads.merge_sources import source_file

    source = spark.read.parquet(source_file(statement))
    key: Sequence[str] = statement.get("key", ["id"])
    rows = spark.read.parquet(location)
    if not statement.get("updates", True) and not statement.get("deletes"):
        source.join(rows, key, "left_anti").write.parquet(target)
        return []
    touched = _distinct_files(rows.selectExpr(*key, _FILE).join(source, key, "left_semi"))
    if not touched:
        source.write.parquet(target)
        return []
    kept = spark.read.parquet(*touched).join(source, key, "left_anti")
    (kept.unionByName(source) if statement.get("updates", True) else kept).write.parquet(target)
    return touched


def _distinct_files(rows: Any) -> list[str]:
    return [path for (path,) in rows.select("file").distinct().collect()]
