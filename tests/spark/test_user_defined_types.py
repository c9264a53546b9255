"""Columns of user-defined types, Spark ML's vectors above all, written and read as delta-spark does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, LongType, StructField, StructType
from tests.hand_made import HandMade, field, metadata
from tests.unit.schema.test_user_defined_types import ARRAY, VECTOR

from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table

SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("v", VectorUDT()),
        StructField("a", ArrayType(VectorUDT())),
        StructField("s", StructType([StructField("w", VectorUDT())])),
    ]
)
DENSE, SPARSE = Vectors.dense([1.0, 2.0]), Vectors.sparse(3, [1], [5.0])
ROWS = [(1, DENSE, [SPARSE], (DENSE,)), (2, None, None, None), (3, SPARSE, [], (None,))]


def types(location: str) -> dict[str, Any]:
    """The types of the columns in the log."""
    fields = json.loads(Table.open(location).snapshot.metadata.schema_string)["fields"]
    return {f["name"]: f["type"] for f in fields}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [(r.id, r[1], r.a, None if r.s is None else (r.s.w,)) for r in frame.orderBy("id").collect()]


@pytest.mark.since("4.0")  # for the Python Data Source
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_vectors_come_back_as_vectors(
    delta_spark: SparkSession, plain_spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    location = str(tmp_path / "table")
    frame = delta_spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
    save(frame, location, options={"delta.columnMapping.mode": mode})
    assert types(location)["v"] == VECTOR
    assert types(location)["a"] == ARRAY
    stats = json.loads(Table.open(location).snapshot.files(["stats"])["stats"][0].as_py())
    assert sorted(map(str, stats["nullCount"].values())) == sorted(["0", "1", "1", str({_only(stats): 2})])
    assert len(stats["minValues"]) == 1
    table = DeltaTable.forPath(delta_spark, location)
    if mode != "none":
        table.alter().renameColumn("v", "vector")
    table.update("id = 3", {"id": "30"})
    expected = [*ROWS[:2], (30, *ROWS[2][1:])]
    for session in (delta_spark, plain_spark):
        assert rows(session.read.format("delta").load(location)) == expected
    read = delta_spark.read.format("delta").load(location)
    save(read, location, "append")
    assert [r.id for r in read.where("id > 1 and v is null" if mode == "none" else "vector is null").collect()] == [2]
    assert list(types(location).values())[1] == VECTOR
    assert Table.open(location).scan(where="id = 30").to_arrow()["s"].to_pylist() == [{"w": None}] * 2


def test_merges_take_vectors_as_they_are(delta_spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "table")
    save(delta_spark.createDataFrame(ROWS, SCHEMA), location)
    new = [(2, SPARSE, [DENSE], (SPARSE,)), (4, DENSE, None, None)]
    source = delta_spark.createDataFrame(
        [(*row, 7) for row in new], StructType([*SCHEMA, StructField("n", LongType())])
    )
    merge = DeltaTable.forPath(delta_spark, location).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    read = delta_spark.read.format("delta").load(location)
    assert rows(read) == [ROWS[0], new[0], ROWS[2], new[1]]
    assert types(location)["v"] == VECTOR
    assert types(location)["a"] == ARRAY


@pytest.mark.since("4.0")  # for the Python Data Source
def test_types_that_are_not_there_are_read_as_they_are_stored(
    delta_spark: SparkSession, plain_spark: SparkSession, tmp_path: Path
) -> None:
    table = HandMade(tmp_path / "table")
    shape = {"type": "udt", "class": "org.nowhere.ShapeUDT", "pyClass": "nowhere.types.Shape", "sqlType": "binary"}
    table.commit(
        0,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        metadata(field("id"), field("shape", shape), field("more", {**ARRAY, "elementType": shape})),
        table.data("a.parquet", {"id": [1], "shape": [b"xy"], "more": [[b"z"]]}),
    )
    for session in (delta_spark, plain_spark):
        read = session.read.format("delta").load(str(table.path))
        assert read.schema.simpleString() == "struct<id:bigint,shape:binary,more:array<binary>>"
        assert [tuple(row) for row in read.collect()] == [(1, b"xy", [b"z"])]
    save(delta_spark.sql("select 2L id, X'00' shape, array(X'01') more"), str(table.path), "append")
    save(delta_spark.sql("select 3L id"), str(table.path), "append")
    DeltaTable.forPath(delta_spark, str(table.path)).update("id = 3", {"id": "4"})
    assert types(str(table.path))["shape"] == shape
    assert Table.open(str(table.path)).scan(where="id = 4").to_arrow()["shape"].to_pylist() == [None]


def test_no_constructor_is_called_but_of_user_defined_types(delta_spark: SparkSession, tmp_path: Path) -> None:
    """The class is there, and the JVM would make an object of it."""
    table = HandMade(tmp_path / "table")
    shape = {**VECTOR, "class": "java.util.concurrent.Phaser", "sqlType": "string"}
    table.commit(
        0,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        metadata(field("id"), field("shape", shape)),
        table.data("a.parquet", {"id": [1], "shape": ["x"]}),
    )
    read = delta_spark.read.format("delta").load(str(table.path))
    assert [tuple(row) for row in read.collect()] == [(1, "x")]


def _only(stats: dict[str, Any]) -> str:
    [name] = next(value for value in stats["nullCount"].values() if isinstance(value, dict))
    return str(name)
