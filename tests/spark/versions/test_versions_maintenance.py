"""Which maintenance works on which PySpark.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.spark.versions.frames import ids, load

from pyspark_delta import DeltaTable, Table
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.spark.frames.exchange_by_id import repartitioned_by_id

pytestmark = pytest.mark.versions


def test_maintenance(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: OPTIMIZE with ZORDER and clustering, VACUUM, RESTORE, history and clones"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    table = DeltaTable.forPath(delta_spark, path)
    delta_spark.range(10, 12).selectExpr("id", "1 AS k", "'x' AS s").write.format("delta").mode("append").save(path)
    assert sql(f"OPTIMIZE {name} ZORDER BY (id)").head().metrics.numFilesRemoved > 0
    sql(f"RESTORE TABLE {name} TO VERSION AS OF 1")
    assert ids(table.toDF()) == list(range(10))
    assert [row.operation for row in table.history(2).collect()] == ["RESTORE", "OPTIMIZE"]
    assert sql(f"VACUUM {name} DRY RUN").collect() == []
    sql(f"CREATE TABLE delta.`{path}-clone` SHALLOW CLONE {name}")
    assert load(delta_spark, f"{path}-clone").count() == 10
    table.vacuum()


def test_optimize_builder(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `DeltaTable.optimize` with a partition filter"""
    table = DeltaTable.forPath(delta_spark, path)
    delta_spark.range(10, 13).selectExpr("id", "CAST(id % 3 AS INT) AS k", "'x' AS s").write.format("delta").mode(
        "append"
    ).save(path)
    assert table.optimize().where("k = 1").executeCompaction().head().metrics.numFilesRemoved == 2
    assert len(load(delta_spark, path).inputFiles()) == 5
    assert ids(table.toDF()) == list(range(13))


def test_vacuum(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `DeltaTable.vacuum` deletes files that no version of the retention period has"""
    table, check = DeltaTable.forPath(delta_spark, path), "spark.databricks.delta.retentionDurationCheck.enabled"
    table.delete("k = 1")
    with pytest.raises(PySparkException, match="retention"):
        table.vacuum(0)
    delta_spark.conf.set(check, "false")
    try:
        table.vacuum(0)
    finally:
        delta_spark.conf.unset(check)
    assert not list(Path(path).glob("k=1/*.parquet"))
    assert len(ids(table.toDF())) == 7


def test_restore(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `DeltaTable` restores a version and a time"""
    table = DeltaTable.forPath(delta_spark, path)
    before = Table.open(path).detail()["lastModified"].strftime("%Y-%m-%d %H:%M:%S.%f")
    for restore in (lambda: table.restoreToVersion(1), lambda: table.restoreToTimestamp(before)):
        table.delete()
        assert restore().head().num_restored_files == 3
        assert ids(table.toDF()) == list(range(10))


def test_clones(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: shallow and deep clones of a version, through `DeltaTable` and in SQL"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete("id > 4")
    table.cloneAtVersion(1, f"{path}-shallow", isShallow=True)
    delta_spark.sql(f"CREATE TABLE delta.`{path}-sql` SHALLOW CLONE delta.`{path}` VERSION AS OF 1")
    table.clone(f"{path}-deep", isShallow=False)
    DeltaTable.forPath(delta_spark, f"{path}-shallow").delete("id = 0")
    assert ids(load(delta_spark, f"{path}-shallow")) == list(range(1, 10))
    assert ids(load(delta_spark, f"{path}-sql")) == list(range(10))
    assert len(list(Path(f"{path}-deep").glob("k=*/*.parquet"))) == 3
    assert ids(table.toDF()) == [0, 1, 2, 3, 4]


def test_conversions(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Maintenance: CONVERT TO DELTA of Parquet files, with partitions, and `convertToDelta`"""
    for number in (1, 2):
        rows = delta_spark.range(4).withColumn("k", F.expr("CAST(id % 2 AS INT)"))
        rows.write.partitionBy("k").parquet(str(tmp_path / str(number)))
    delta_spark.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/1` PARTITIONED BY (k INT)")
    DeltaTable.convertToDelta(delta_spark, f"parquet.`{tmp_path}/2`", "k INT")
    for number in (1, 2):
        assert ids(load(delta_spark, str(tmp_path / str(number))).where("k = 1")) == [1, 3]


def test_details(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `detail` and `history` of `DeltaTable`, with operations, metrics and properties"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete("id = 4")
    detail = table.detail().head()
    assert (detail.format, detail.numFiles, detail.partitionColumns) == ("delta", 3, ["k"])
    assert detail.properties["delta.enableChangeDataFeed"] == "true"
    last = table.history(1).head()
    assert (last.version, last.operation, last.operationMetrics["numDeletedRows"]) == (2, "DELETE", "1")
    assert "id = 4" in last.operationParameters["predicate"]


def test_dropped_features(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: features of tables are added, and dropped again"""
    table = DeltaTable.forPath(delta_spark, path)
    table.alter().setProperties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    assert "deletionVectors" in table.detail().head().tableFeatures
    delta_spark.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE deletionVectors")
    assert "deletionVectors" not in table.detail().head().tableFeatures
    assert len(ids(table.toDF())) == 9


def test_checkpoints(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: checkpoints, from which tables are read"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete("id = 1")
    table.checkpoint()
    for version in (0, 1):
        Path(path, "_delta_log", f"{version:020}.json").unlink()
    clear_cache(path)
    assert len(ids(load(delta_spark, path))) == 9


def test_exchange(delta_spark: SparkSession) -> None:
    """Maintenance: rewriting files side by side in tasks, whose rows are exchanged"""
    rows = repartitioned_by_id(delta_spark.range(50).selectExpr("CAST(id % 7 AS INT) AS task"), 7, "task")
    placed = rows.selectExpr("task", "spark_partition_id() AS place").distinct().collect()
    assert sorted(map(tuple, placed)) == [(task, task) for task in range(7)]
