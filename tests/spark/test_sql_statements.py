"""Statements of Delta's own grammar in a session: each does what the method does, and has delta-spark's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType
from tests.spark.test_delta_table import DETAIL, HISTORY

from pyspark_delta import DeltaTable, IdentityGenerator
from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    SqlSyntaxError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.spark.conf.conditions import condition_of


@pytest.fixture
def sql(delta_spark: SparkSession) -> SparkSession:
    """The session."""
    return delta_spark


@pytest.fixture
def path(sql: SparkSession, tmp_path: Path) -> str:
    """A table whose version 0 has the ids 0 to 3, and version 1 also 4 and 5."""
    location = str(tmp_path / "t")
    sql.range(4).write.format("delta").save(location)
    sql.range(4, 6).write.format("delta").mode("append").save(location)
    return location


def ids(spark: SparkSession, path: str) -> list[int]:
    """The ids of a table."""
    return sorted(row[0] for row in DeltaTable.forPath(spark, path).toDF().collect())


def last_operation(spark: SparkSession, path: str) -> str:
    """The name of the operation of the newest commit."""
    return str(DeltaTable.forPath(spark, path).history(1).collect()[0].operation)


def test_history_and_detail(sql: SparkSession, path: str) -> None:
    history = sql.sql(f"DESCRIBE HISTORY delta.`{path}`")
    assert history.columns == HISTORY
    assert [row.version for row in history.collect()] == [1, 0]
    assert sql.sql(f"desc history '{path}' LIMIT 1").count() == 1
    detail = sql.sql(f"DESCRIBE DETAIL delta.`{path}`")
    assert detail.columns == DETAIL
    assert detail.collect()[0].numFiles == DeltaTable.forPath(sql, path).detail().collect()[0].numFiles


@pytest.mark.smoke
def test_optimize_and_reorg(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`"
    result = sql.sql(f"OPTIMIZE {name}")
    assert result.columns == ["path", "metrics"]
    assert result.collect()[0].metrics.numFilesAdded == 1
    assert last_operation(sql, path) == "OPTIMIZE"
    sql.sql(f"OPTIMIZE {name} ZORDER BY (id)")
    sql.sql(f"ALTER TABLE {name} CLUSTER BY (id)")
    assert DeltaTable.forPath(sql, path).detail().collect()[0].clusteringColumns == ["id"]
    sql.sql(f"OPTIMIZE {name} FULL")
    sql.sql(f"ALTER TABLE {name} CLUSTER BY NONE")
    assert DeltaTable.forPath(sql, path).detail().collect()[0].clusteringColumns == []
    assert sql.sql(f"REORG TABLE {name} APPLY (PURGE)").columns == ["path", "metrics"]
    assert ids(sql, path) == list(range(6))
    with pytest.raises(InvalidOperationError, match="PURGE"):
        sql.sql(f"REORG TABLE {name} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")


def test_vacuum(sql: SparkSession, path: str, tmp_path: Path) -> None:
    name, stray = f"delta.`{path}`", tmp_path / "t" / "stray.parquet"
    stray.write_bytes(b"")
    sql.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        would_go = sql.sql(f"VACUUM {name} RETAIN 0 HOURS DRY RUN")
        assert would_go.columns == ["path"]
        assert [row.path.endswith("stray.parquet") for row in would_go.collect()] == [True]
        assert stray.exists()
        assert len(sql.sql(f"VACUUM '{path}' RETAIN 0 HOURS").collect()) == 1
        assert not stray.exists()
    finally:
        sql.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


@pytest.mark.since("4.1")
def test_parameters(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`"
    assert sql.sql(f"DESCRIBE HISTORY {name} LIMIT :n", args={"n": 1}).count() == 1
    assert sql.sql(f"VACUUM {name} RETAIN ? HOURS DRY RUN", args=[1000]).columns == ["path"]
    assert sql.sql(f"EXECUTE IMMEDIATE 'DESCRIBE HISTORY {name} LIMIT ?' USING 1").count() == 1


@pytest.mark.since("4.0")
@pytest.mark.until("4.1")
def test_parameters_that_the_parser_does_not_get(sql: SparkSession, path: str) -> None:
    refused = "take parameters .* from PySpark 4.1 on"
    with pytest.raises(InvalidOperationError, match=refused):
        sql.sql(f"EXECUTE IMMEDIATE 'DESCRIBE HISTORY delta.`{path}` LIMIT ?' USING 1")
    with pytest.raises(InvalidOperationError, match=refused):
        sql.sql(f"EXECUTE IMMEDIATE 'DELETE FROM delta.`{path}` WHERE id = ?' USING 1")
    assert last_operation(sql, path) == "WRITE"


def test_restore_and_undo(sql: SparkSession, path: str) -> None:
    row = sql.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0").collect()[0]
    assert row.num_removed_files > 0
    assert ids(sql, path) == [0, 1, 2, 3]
    sql.sql(f"UNDO delta.`{path}`")
    assert ids(sql, path) == list(range(6))
    first = DeltaTable.forPath(sql, path).history().collect()[-1].timestamp
    sql.sql(f"RESTORE delta.`{path}` TO TIMESTAMP AS OF '{first}'")
    assert ids(sql, path) == [0, 1, 2, 3]


def test_clones(sql: SparkSession, path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy")
    with pytest.raises(TableNotFoundError):
        sql.sql(f"REPLACE TABLE delta.`{copy}` SHALLOW CLONE delta.`{path}`")
    row = sql.sql(f"CREATE TABLE delta.`{copy}` SHALLOW CLONE delta.`{path}` VERSION AS OF 0").collect()[0]
    assert row.source_num_of_files > 0
    assert ids(sql, copy) == [0, 1, 2, 3]
    assert sql.sql(f"CREATE TABLE IF NOT EXISTS delta.`{copy}` SHALLOW CLONE delta.`{path}`").collect() == []
    with pytest.raises(TableAlreadyExistsError):
        sql.sql(f"CREATE TABLE delta.`{copy}` SHALLOW CLONE delta.`{path}`")
    sql.sql(f"CREATE OR REPLACE TABLE delta.`{copy}` SHALLOW CLONE delta.`{path}` TBLPROPERTIES ('mine' = 'yes')")
    assert ids(sql, copy) == list(range(6))
    assert DeltaTable.forPath(sql, copy).detail().collect()[0].properties["mine"] == "yes"


def test_conversion_and_manifests(sql: SparkSession, tmp_path: Path) -> None:
    location = tmp_path / "parquet"
    sql.range(3).selectExpr("id", "id AS k").write.partitionBy("k").parquet(str(location))
    assert sql.sql(f"CONVERT TO DELTA parquet.`{location}` NO STATISTICS PARTITIONED BY (k INT)").collect() == []
    assert ids(sql, str(location)) == [0, 1, 2]
    sql.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{location}`")
    assert (location / "_symlink_format_manifest").is_dir()


def test_constraints_and_features(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`"
    with pytest.raises(ConstraintViolationError):
        sql.sql(f"ALTER TABLE {name} ADD CONSTRAINT few CHECK (id < 5)")
    sql.sql(f"ALTER TABLE {name} ADD CONSTRAINT few CHECK (id < 6)")
    with pytest.raises(ConstraintViolationError):
        sql.sql(f"INSERT INTO {name} VALUES (6)")
    sql.sql(f"ALTER TABLE {name} DROP CONSTRAINT few")
    sql.sql(f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS few")
    DeltaTable.forPath(sql, path).addFeatureSupport("vacuumProtocolCheck")
    sql.sql(f"ALTER TABLE {name} DROP FEATURE vacuumProtocolCheck")
    assert "vacuumProtocolCheck" not in DeltaTable.forPath(sql, path).detail().collect()[0].tableFeatures


def test_c397_sync_identity(sql: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "identity")
    builder = DeltaTable.create(sql).location(location)
    builder.addColumn("id", LongType(), generatedByDefaultAs=IdentityGenerator()).addColumn("x", "int").execute()
    sql.sql(f"INSERT INTO delta.`{location}` VALUES (100, 1)")
    sql.sql(f"ALTER TABLE delta.`{location}` ALTER COLUMN id SYNC IDENTITY")
    assert last_operation(sql, location) == "CHANGE COLUMN"
    sql.sql(f"INSERT INTO delta.`{location}` (x) VALUES (2)")
    assert max(ids(sql, location)) > 100
    with pytest.raises(InvalidOperationError, match="identity columns only"):
        sql.sql(f"ALTER TABLE delta.`{location}` ALTER COLUMN x SYNC IDENTITY")


def test_fsck(sql: SparkSession, path: str, tmp_path: Path) -> None:
    lost = sorted((tmp_path / "t").glob("*.parquet"))[0]
    lost.unlink()
    (found,) = sql.sql(f"FSCK REPAIR TABLE delta.`{path}` DRY RUN").collect()
    assert found.dataFilePath.endswith(lost.name)
    assert (found.dataFileMissing, found.deletionVectorPath, found.deletionVectorFileMissing) == (True, None, False)
    assert sql.sql(f"FSCK REPAIR TABLE delta.`{path}`").count() == 1
    assert sql.sql(f"FSCK REPAIR TABLE delta.`{path}` DRY RUN").count() == 0
    assert len(ids(sql, path)) < 6


@pytest.mark.since("4.0")  # 3.5 has no plan of such a statement
def test_explain_and_callers_in_the_jvm(sql: SparkSession, path: str) -> None:
    for mode in ("", "EXTENDED "):
        (plan,) = sql.sql(f"EXPLAIN {mode}OPTIMIZE delta.`{path}`").collect()[0]
        assert "Call delta.Optimize" in plan
    assert last_operation(sql, path) == "WRITE"
    java: Any = sql
    assert java._jsparkSession.sql(f"DESCRIBE HISTORY delta.`{path}`").count() == 2


def test_errors(sql: SparkSession, path: str) -> None:
    with pytest.raises(SqlSyntaxError, match="HOURS") as syntax:
        sql.sql(f"VACUUM delta.`{path}` RETAIN 7 DAYS")
    assert condition_of(syntax.value) == "PARSE_SYNTAX_ERROR"
    with pytest.raises(InvalidOperationError, match="not a Delta table"):
        sql.sql("VACUUM nothing_of_this_name")
    with pytest.raises(InvalidOperationError, match=":hours"):
        sql.sql(f"VACUUM delta.`{path}` RETAIN :hours HOURS")
    with pytest.raises(AnalysisException, match="nothing_of_this_name"):
        sql.sql("ALTER TABLE nothing_of_this_name ADD CONSTRAINT c CHECK (a > 0)")
    with pytest.raises(TableNotFoundError):
        sql.sql("OPTIMIZE delta.`/nowhere/at/all`")
