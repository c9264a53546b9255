"""Lists in lists as old writers store them, without a level for elements: Spark reads them, and Arrow does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from pyspark_delta import DeltaTable
from pyspark_delta.errors import UnsupportedDataFileError
from pyspark_delta.table import Table

LISTS = ArrayType(ArrayType(IntegerType()), containsNull=False)
ROWS = StructType([StructField("id", LongType()), StructField("x", LISTS)])
KINDS = {
    "rewriting": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "row ids and changes": {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"},
    "partitions": {},
}
Values = dict[int, list[list[int | None]]]


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, delta_spark: SparkSession, tmp_path: Path) -> DeltaTable:
    """A file with the rows 1 to 3 as old writers store them, and one with the rows 4 and 5 as they are stored today."""
    builder = DeltaTable.create(delta_spark).location(str(tmp_path / "t")).addColumns(ROWS)
    if request.param == "partitions":
        builder = builder.addColumn("part", "string").partitionedBy("part")
    for name, value in KINDS[request.param].items():
        builder = builder.property(name, value)
    builder.execute()
    for ids in ((1, 2, 3), (4, 5)):
        rows = delta_spark.createDataFrame([(i, [[i, None], []]) for i in ids], ROWS).coalesce(1)
        if request.param == "partitions":
            rows = rows.withColumn("part", sf.lit("a"))
        rows.write.format("delta").mode("append").save(str(tmp_path / "t"))
    _store_as_old_writers_do(delta_spark, tmp_path / "t")
    return DeltaTable.forPath(delta_spark, str(tmp_path / "t"))


def _store_as_old_writers_do(spark: SparkSession, table: Path) -> None:
    """Write the file of version 1 anew: the same rows, without a level for elements."""
    commit = table / "_delta_log" / f"{1:020}.json"
    lines = commit.read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines) if '"add"' in line)
    action = json.loads(lines[number])
    path = table / action["add"]["path"]
    writer = spark.newSession()
    writer.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    rows = spark.read.schema(ROWS).parquet(str(path)).collect()
    writer.createDataFrame(rows, ROWS).coalesce(1).write.parquet(str(table.parent / "old"))
    (old,) = (table.parent / "old").glob("*.parquet")
    shutil.copy(old, path)
    action["add"]["size"] = path.stat().st_size
    lines[number] = json.dumps(action)
    commit.write_text("\n".join(lines) + "\n")
    for checksum in (table / "_delta_log").glob("*.crc"):  # they have the old size
        checksum.unlink()


def _values(table: DeltaTable) -> Values:
    return {row["id"]: row["x"] for row in table.toDF().collect()}


def _of(*ids: int) -> Values:
    return {number: [[number, None], []] for number in ids}


def test_only_spark_reads_them(table: DeltaTable) -> None:
    with pytest.raises(UnsupportedDataFileError, match=r"form of Parquet that Arrow does not read.*Spark does"):
        Table.open(table.detail().collect()[0]["location"]).scan().to_arrow()
    assert _values(table) == _of(1, 2, 3, 4, 5)


def _delete(table: DeltaTable) -> Values:
    assert table.delete("id = 2 or id = 4").collect()[0]["num_affected_rows"] == 2
    return _of(1, 3, 5)


def _delete_as_spark_says(table: DeltaTable) -> Values:
    assert table.delete("size(x) = 2 and id < 3").collect()[0]["num_affected_rows"] == 2
    return _of(3, 4, 5)


def _update(table: DeltaTable) -> Values:
    assert table.update("id = 2", {"id": "20"}).collect()[0]["num_affected_rows"] == 1
    return {**_of(1, 3, 4, 5), 20: [[2, None], []]}


def _update_all(table: DeltaTable) -> Values:
    assert table.update(set={"id": "id + 10"}).collect()[0]["num_affected_rows"] == 5
    return {number + 10: value for number, value in _of(1, 2, 3, 4, 5).items()}


def _merge(table: DeltaTable) -> Values:
    source = table.toDF().sparkSession.createDataFrame([(2, [[7]]), (4, [[8]]), (9, [])], ROWS)
    values = {"id": "s.id", "x": "s.x"}
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute()
    return {**_of(1, 3, 5), 2: [[7]], 4: [[8]], 9: []}


def _merge_that_deletes(table: DeltaTable) -> Values:
    source = table.toDF().sparkSession.createDataFrame([(3,), (5,)], "id long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    assert merge.whenMatchedDelete().execute().collect()[0]["num_deleted_rows"] == 2
    return _of(1, 2, 4)


@pytest.mark.parametrize("change", [_delete, _delete_as_spark_says, _update, _update_all, _merge, _merge_that_deletes])
def test_statements_leave_such_files_to_spark(table: DeltaTable, change: Callable[[DeltaTable], Values]) -> None:
    before = _ids(table)
    expected = change(table)
    assert _values(table) == expected
    after = _ids(table)
    kept = before.keys() & after.keys()
    assert kept
    assert {key: before[key] for key in kept} == {key: after[key] for key in kept}


def _ids(table: DeltaTable) -> dict[str, int | None]:
    """The row ids, where rows have some, by the value of the other column."""
    tracked = table.detail().collect()[0]["properties"].get("delta.enableRowTracking") == "true"
    id_of = sf.col("_metadata.row_id") if tracked else sf.lit(None)
    return dict(map(tuple, table.toDF().select(sf.to_json("x"), id_of).collect()))


def test_a_plan_counts_rows_of_such_files(table: DeltaTable) -> None:
    assert table.delete("id = 2", plan=True).rows_affected == 1
    assert table.update("id = 2", {"id": "20"}, plan=True).rows_affected == 1
