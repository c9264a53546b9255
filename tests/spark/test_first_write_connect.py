"""Creating, appending to and overwriting tables through Spark Connect: public API only."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession, functions
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_delta.errors import (
    ConstraintViolationError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table


def test_modes_and_partitions(plain_connect: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    frame = plain_connect.range(10).withColumn("p", functions.col("id") % 2)
    save(frame, path, partition_by=["p"])
    save(frame, path, "append")
    assert Table.open(path).scan(where="p = 1").to_arrow().num_rows == 10
    save(frame.where("id < 3"), path, "overwrite")
    assert sorted(Table.open(path).scan().to_arrow().column("id").to_pylist()) == [0, 1, 2]
    assert save(frame, path, "ignore") is None
    assert Table.open(path).version == 2
    with pytest.raises(TableAlreadyExistsError):
        save(frame, path)


def test_days_of_partitions_that_python_does_not_have(delta_connect: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    save(delta_connect.sql("select 1L id, date_add(date'9999-12-31', 1) day"), path, partition_by=["day"])
    read = delta_connect.read.format("delta").load(path)
    assert read.selectExpr("id", "cast(day as string)").collect() == [(1, "+10000-01-01")]


def test_errors_keep_their_class(plain_connect: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    save(plain_connect.sql("select 1 id"), path)
    with pytest.raises(SchemaMismatchError):
        save(plain_connect.sql("select 1 id, 2 more"), path, "append")
    with pytest.raises(ConstraintViolationError, match="does not fit"):
        save(plain_connect.sql("select 3000000000L id"), path, "append")
    assert Table.open(path).version == 0


def test_a_missing_table_is_an_error_of_load_and_not_of_the_first_action(
    delta_connect: SparkSession, tmp_path: Path
) -> None:
    for reader in (delta_connect.read, delta_connect.readStream):
        with pytest.raises(TableNotFoundError, match="no Delta table"):
            reader.format("delta").load(str(tmp_path / "missing"))


def test_vectors_come_back_as_vectors(delta_connect: SparkSession, tmp_path: Path) -> None:
    path, rows = (
        str(tmp_path / "table"),
        [(1, Vectors.dense([1.0, 2.0])), (2, None), (3, Vectors.sparse(3, [1], [5.0]))],
    )
    schema = StructType([StructField("id", LongType()), StructField("v", VectorUDT())])
    save(delta_connect.createDataFrame(rows, schema), path)
    assert [tuple(row) for row in delta_connect.read.format("delta").load(path).orderBy("id").collect()] == rows
