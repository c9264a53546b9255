"""`DeltaTable` by delta-spark's names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import DeltaTable
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, TableNotFoundError

# The columns of DESCRIBE HISTORY and DESCRIBE DETAIL, in delta-spark's order.
HISTORY = [
    *("version", "timestamp", "userId", "userName", "operation", "operationParameters", "job", "notebook"),
    *("clusterId", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "userMetadata", "engineInfo"),
]
DETAIL = [
    *("format", "id", "name", "description", "location", "createdAt", "lastModified", "partitionColumns"),
    *("clusteringColumns", "numFiles", "sizeInBytes", "properties", "minReaderVersion", "minWriterVersion"),
    "tableFeatures",
]


@pytest.fixture
def path(delta_spark: SparkSession, tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    delta_spark.range(4).selectExpr("id", "id % 2 AS k").write.format("delta").partitionBy("k").save(location)
    delta_spark.range(4, 6).selectExpr("id", "0L AS k").write.format("delta").mode("append").save(location)
    return location


def test_rows_of_versions(delta_spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(delta_spark, path)
    assert table.toDF().count() == 6
    assert table.toDF(version=0).count() == 4
    assert table.toDF(where="k = 1").count() == 2
    assert table.alias("t").toDF().select("t.id").count() == 6
    delta_spark.range(6, 7).selectExpr("id", "1L AS k").write.format("delta").mode("append").save(path)
    assert table.toDF().count() == 7
    with pytest.raises(InvalidOptionError):
        table.toDF(version=0, timestamp=0)


def test_a_table_is_found_by_path_and_identifier(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    assert DeltaTable.forName(delta_spark, f"delta.`{path}`").toDF().count() == 6
    assert DeltaTable.isDeltaTable(delta_spark, path)
    assert DeltaTable.isDeltaTable(delta_spark, f"delta.`{path}`")
    assert not DeltaTable.isDeltaTable(delta_spark, str(tmp_path))
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(delta_spark, str(tmp_path))
    with pytest.raises(InvalidOperationError, match="forPath"):
        DeltaTable.forName(delta_spark, "db.t")
    with pytest.raises(InvalidOptionError, match="fs"):
        DeltaTable.forPath(delta_spark, path, {"password": "x"})


def test_detail(delta_spark: SparkSession, path: str) -> None:
    frame = DeltaTable.forPath(delta_spark, path).detail()
    assert frame.columns == DETAIL
    row = frame.collect()[0]
    assert (row.format, row.location, row.partitionColumns, row.numFiles) == ("delta", path, ["k"], row.numFiles)
    assert row.numFiles >= 3
    assert row.createdAt <= row.lastModified


def test_history(delta_spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(delta_spark, path)
    frame = table.history()
    assert frame.columns == HISTORY
    rows = frame.collect()
    assert [row.version for row in rows] == [1, 0]
    assert {row.operation for row in rows} == {"WRITE"}
    assert rows[1].operationParameters["partitionBy"] == '["k"]'
    assert rows[0].operationMetrics["numOutputRows"] == "2"
    assert [row.version for row in table.history(1).collect()] == [1]


def test_looks(delta_spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(delta_spark, path)
    assert repr(table) == f"DeltaTable('{path}')"
    assert path in table._repr_html_()
