"""`DeltaTable.alter()`: changes to what a table declares, as commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    InvalidOptionError,
    InvalidPredicateError,
    SchemaMismatchError,
)


@pytest.fixture
def path(delta_spark: SparkSession, tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    rows = delta_spark.range(4).selectExpr(
        "int(id) AS id", "named_struct('x', int(id), 'y', 'a') AS point", "array(named_struct('z', 1)) AS list"
    )
    rows.write.format("delta").save(location)
    return location


def _last(path: str) -> tuple[str, dict[str, str]]:
    commit = Table.open(path).history(1)[0]
    return commit["operation"], commit["operationParameters"]


def test_columns_are_added_at_any_level(delta_spark: SparkSession, path: str) -> None:
    alter = DeltaTable.forPath(delta_spark, path).alter()
    alter.addColumn("point.w", "decimal(10,2)", first=True, comment="weight").addColumn("list.element.k", LongType())
    alter.addColumns(StructType([StructField("a", StringType()), StructField("b", LongType())]))
    operation, parameters = _last(path)
    assert operation == "ADD COLUMNS"
    assert [c["column"]["name"] for c in json.loads(parameters["columns"])] == ["a", "b"]
    frame = delta_spark.read.format("delta").load(path)
    assert frame.columns == ["id", "point", "list", "a", "b"]
    assert frame.selectExpr("point.w", "list[0].k", "a", "id").orderBy("id").first() == (None, None, None, 0)
    assert Table.open(path).scan(where="id = 2").to_arrow().column("point").to_pylist() == [
        {"w": None, "x": 2, "y": "a"}
    ]
    with pytest.raises(InvalidOperationError, match="a column 'a' already exists"):
        alter.addColumn("A", "string")
    with pytest.raises(InvalidOperationError, match="NOT NULL"):
        alter.addColumns([StructField("c", LongType(), nullable=False)])
    assert Table.open(path).version == 3


def test_columns_are_renamed_and_dropped_where_they_are_mapped(delta_spark: SparkSession, path: str) -> None:
    alter = DeltaTable.forPath(delta_spark, path).alter()
    with pytest.raises(InvalidOperationError, match=r"delta\.columnMapping\.mode"):
        alter.renameColumn("id", "key")
    alter.setProperties({"delta.columnMapping.mode": "name"})
    alter.renameColumn("id", "key").renameColumn("point.x", "an x").dropColumns("point.y").moveColumn(
        "list", first=True
    )
    frame = delta_spark.read.format("delta").load(path)
    assert frame.columns == ["list", "key", "point"]
    assert frame.selectExpr("key", "point.`an x`").orderBy("key").collect() == [(i, i) for i in range(4)]
    delta_spark.sql(
        "SELECT array(named_struct('z', 2)) AS list, 9 AS key, named_struct('an x', 9) AS point"
    ).write.format("delta").mode("append").save(path)
    assert Table.open(path).scan(where="key > 2").to_arrow().column("key").to_pylist() in ([3, 9], [9, 3])
    with pytest.raises(InvalidOperationError, match="the only one of the struct 'point'"):
        alter.dropColumns("point.`an x`")
    assert [c["operation"] for c in Table.open(path).history()][:6] == [
        *("WRITE", "CHANGE COLUMN", "DROP COLUMNS", "RENAME COLUMN", "RENAME COLUMN", "SET TBLPROPERTIES")
    ]


def test_types_grow_where_the_table_allows_it(delta_spark: SparkSession, path: str) -> None:
    alter = DeltaTable.forPath(delta_spark, path).alter()
    with pytest.raises(InvalidOperationError, match=r"delta\.enableTypeWidening"):
        alter.changeType("id", "bigint")
    alter.setProperties({"delta.enableTypeWidening": True}).changeType("id", "bigint")
    alter.changeType("list.element.z", "double")
    with pytest.raises(SchemaMismatchError, match="cannot become integer"):
        alter.changeType("id", "int")
    field = Table.open(path).schema.find("id")
    assert field is not None
    assert field.metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert delta_spark.read.format("delta").load(path).selectExpr("sum(id)", "max(list[0].z)").first() == (6, 1.0)
    assert "typeWidening" in (Table.open(path).protocol.reader_features or ())


def test_c386_constraints_hold_for_old_rows_and_new_ones(delta_spark: SparkSession, path: str) -> None:
    alter = DeltaTable.forPath(delta_spark, path).alter()
    with pytest.raises(ConstraintViolationError, match=r"id=[0-3]") as caught:
        alter.addConstraint("large", "id > 3")
    assert caught.value.error_class == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    with pytest.raises(ConstraintViolationError, match="large"):  # null is not true, of old rows as of new ones (C385)
        alter.addConstraint("large", "nullif(id, 3) >= 0")
    for condition, message in (("idd > 3", "Did you mean 'id'"), ("id +", "parse"), ("id + 1", "not boolean")):
        with pytest.raises((InvalidPredicateError, InvalidOperationError), match=message):
            alter.addConstraint("wrong", condition)
    assert Table.open(path).version == 0
    alter.addConstraint("Small", "id < 100")
    assert _last(path) == ("ADD CONSTRAINT", {"name": "Small", "expr": "id < 100"})
    rows = delta_spark.range(100, 101).selectExpr("int(id) AS id")
    with pytest.raises(ConstraintViolationError, match="small"):
        rows.write.format("delta").mode("append").save(path)
    with pytest.raises(InvalidOperationError, match="already"):
        alter.addConstraint("SMALL", "id < 5")
    with pytest.raises(InvalidOperationError, match=r"constraints of the table are: small"):
        alter.dropConstraint("other")
    alter.dropConstraint("other", ifExists=True).dropConstraint("small")
    rows.write.format("delta").mode("append").save(path)
    assert Table.open(path).count() == 5


def test_null_is_forbidden_and_allowed_again(delta_spark: SparkSession, path: str) -> None:
    alter = DeltaTable.forPath(delta_spark, path).alter()
    nulls = delta_spark.sql("SELECT CAST(NULL AS INT) AS id, named_struct('x', 1, 'y', 'b') AS point")
    alter.setNotNull("id").setNotNull("point.x")
    with pytest.raises(ConstraintViolationError, match="id"):
        nulls.write.format("delta").mode("append").save(path)
    alter.dropNotNull("point.x").dropNotNull("id")
    nulls.write.format("delta").mode("append").save(path)
    with pytest.raises(ConstraintViolationError, match="NOT NULL column 'id'"):
        alter.setNotNull("id")


def test_c393_c434_defaults_comments_and_properties(delta_spark: SparkSession, path: str) -> None:
    alter = DeltaTable.forPath(delta_spark, path).alter()
    alter.setProperties({"delta.feature.allowColumnDefaults": "supported"}).setDefault("id", "42")
    delta_spark.sql("SELECT named_struct('x', 1, 'y', 'b') AS point").write.format("delta").mode("append").save(path)
    assert Table.open(path).scan(where="id = 42").to_arrow().num_rows == 1
    given = StructField("more", LongType(), metadata={"CURRENT_DEFAULT": "42"})
    with pytest.raises(InvalidOperationError, match="then set the default"):
        alter.addColumns([given])
    alter.addColumns([StructField("noted", LongType(), metadata={"of somebody": {"else": [1]}})])
    alter.setColumnComment("noted", "a number").setDefault("noted", "7").dropDefault("noted")
    noted = Table.open(path).schema.find("noted")
    assert noted is not None
    assert dict(noted.metadata) == {"of somebody": {"else": [1]}, "comment": "a number"}
    alter.dropDefault("id").setColumnComment("point.x", "horizontal").setComment("points").setColumnComment("id", None)
    table = Table.open(path)
    assert table.metadata.description == "points"
    alter.setProperties({"delta.appendonly": True, "mine": "1"})
    assert Table.open(path).metadata.configuration == {"delta.appendOnly": "true", "mine": "1"}
    alter.unsetProperties("delta.appendOnly").unsetProperties("no.such", ifExists=True)
    assert _last(path)[0] == "UNSET TBLPROPERTIES"
    with pytest.raises(InvalidOptionError, match=r"Did you mean 'delta\.checkpointInterval'"):
        alter.setProperties({"delta.checkpointIntervall": 5})
    with pytest.raises(InvalidOperationError, match="is not set"):
        alter.unsetProperties("delta.appendOnly")
    with pytest.raises(InvalidOperationError, match="addConstraint"):
        alter.setProperties({"delta.constraints.c": "id > 0"})


def test_clustering_changes_and_ends(delta_spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(delta_spark, path)
    table.alter().clusterBy("ID", "point.x")
    assert table.detail().first()["clusteringColumns"] == ["id", "point.x"]  # type: ignore[index]
    with pytest.raises(InvalidOperationError, match="no minimum and maximum"):
        table.alter().clusterBy("list")
    table.alter().clusterBy()
    assert table.detail().first()["clusteringColumns"] == []  # type: ignore[index]


def test_the_protocol_goes_up_only(delta_spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(delta_spark, path)
    table.upgradeTableProtocol(2, 5)
    assert (Table.open(path).protocol.min_reader_version, Table.open(path).protocol.min_writer_version) == (2, 5)
    table.upgradeTableProtocol(1, 2)  # nothing happens, as in delta-spark
    assert Table.open(path).version == 1
    with pytest.raises(ValueError, match="writerVersion is an int, found str '7'"):
        table.upgradeTableProtocol(3, "7")  # type: ignore[arg-type]
    table.addFeatureSupport("deletionVectors")
    features = Table.open(path).protocol.writer_features
    assert features is not None
    assert {"deletionVectors", "columnMapping", "generatedColumns"} <= features
    version = Table.open(path).version
    table.addFeatureSupport("deletionVectors")
    assert Table.open(path).version == version
    with pytest.raises(InvalidOperationError, match="deletionVectors"):
        table.addFeatureSupport("deletionVector")
