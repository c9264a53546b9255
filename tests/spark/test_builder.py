"""`DeltaTable.create()` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_delta import DeltaTable, DeltaWarning, IdentityGenerator, Table
from pyspark_delta.errors import InvalidOperationError, TableAlreadyExistsError, TableNotFoundError


def test_a_table_is_created_with_everything(delta_spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    table = (
        DeltaTable.create(delta_spark)
        .location(location)
        .addColumn("id", "bigint", generatedByDefaultAs=IdentityGenerator(10, 5))
        .addColumn("at", "timestamp", nullable=False, comment="when")
        .addColumn("day", "date", generatedAlwaysAs="CAST(at AS DATE)")
        .addColumns(StructType([StructField("n", LongType())]))
        .partitionedBy("day")
        .comment("events")
        .property("delta.appendOnly", "true")
        .execute()
    )
    declared = Table.open(location)
    assert declared.partition_columns == ("day",)
    assert declared.metadata.description == "events"
    assert declared.history()[0]["operation"] == "CREATE TABLE"
    assert table.toDF().count() == 0
    rows = delta_spark.sql("SELECT TIMESTAMP '2024-02-29 12:00:00' AS at, 1L AS n")
    rows.write.format("delta").mode("append").save(location)
    row = table.toDF().first()
    assert row is not None
    assert (row["id"] - 10) % 5 == 0
    assert str(row["day"]) == "2024-02-29"


def test_the_modes(delta_spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        DeltaTable.replace(delta_spark).location(location).addColumn("a", "int").execute()
    DeltaTable.createIfNotExists(delta_spark).tableName(f"delta.`{location}`").addColumn("a", "int").execute()
    delta_spark.sql("SELECT 1 AS a").write.format("delta").mode("append").save(location)
    with pytest.raises(TableAlreadyExistsError, match=r"Open it with forPath or forName, or define"):
        DeltaTable.create(delta_spark).location(location).addColumn("a", "int").execute()
    DeltaTable.createIfNotExists(delta_spark).location(location).addColumn("b", "int").execute()
    assert Table.open(location).count() == 1
    table = DeltaTable.createOrReplace(delta_spark).location(location).addColumn("b", "string").clusterBy("b").execute()
    assert (table.toDF().columns, table.toDF().count()) == (["b"], 0)
    assert Table.open(location).history(1)[0]["operation"] == "CREATE OR REPLACE TABLE"
    assert table.detail().first()["clusteringColumns"] == ["b"]  # type: ignore[index]
    assert table.toDF(version=1).count() == 1
    DeltaTable.replace(delta_spark).location(location).addColumn("c", "int").execute()
    assert table.detail().first()["clusteringColumns"] == []  # type: ignore[index]


def test_defaults_of_the_session_count(delta_spark: SparkSession, tmp_path: Path) -> None:
    key = "spark.databricks.delta.properties.defaults.enableInCommitTimestamps"
    delta_spark.conf.set(key, "true")
    try:
        DeltaTable.create(delta_spark).location(str(tmp_path / "t")).addColumn("a", "int").execute()
    finally:
        delta_spark.conf.unset(key)
    assert "inCommitTimestamp" in (Table.open(str(tmp_path / "t")).protocol.writer_features or ())


@pytest.mark.parametrize("kind", ["SQL", "builder", "DataFrame", "AS SELECT"])
def test_an_unknown_default_of_the_session_is_ignored(delta_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    key, location = "spark.databricks.delta.properties.defaults.nonsense", str(tmp_path / "t")
    create: dict[str, Callable[[], object]] = {
        "SQL": lambda: delta_spark.sql(f"CREATE TABLE delta.`{location}` (id LONG)"),
        "builder": lambda: DeltaTable.create(delta_spark).location(location).addColumn("id", "long").execute(),
        "DataFrame": lambda: delta_spark.range(1).write.format("delta").save(location),
        "AS SELECT": lambda: delta_spark.sql(f"CREATE TABLE delta.`{location}` AS SELECT 1L AS id"),
    }
    delta_spark.conf.set(key, "1")
    try:
        with pytest.warns(DeltaWarning, match=f"The session setting {key} is ignored"):
            create[kind]()
    finally:
        delta_spark.conf.unset(key)
    assert Table.open(location).metadata.configuration == {}


@pytest.mark.parametrize(
    ("column", "expression", "fits"),
    [
        ("INT", "b", False),
        ("BIGINT", "CAST(b AS INT)", False),
        ("ARRAY<INT>", "array(1L)", False),
        ("STRUCT<x: INT>", "named_struct('x', b)", False),
        ("STRUCT<x: INT>", "named_struct('X', 1)", False),
        ("STRUCT<x: INT>", "named_struct('x', 1)", True),
        ("MAP<STRING, INT>", "map('a', 1)", True),
        ("VARCHAR(3)", "CAST(b AS STRING)", True),
    ],
)
def test_a_generated_column_has_the_type_of_its_expression(
    delta_spark: SparkSession, tmp_path: Path, column: str, expression: str, fits: bool
) -> None:
    """Nullability and lengths of texts may differ, as in delta-spark; names of members may not."""
    location = tmp_path / "t"
    builder = DeltaTable.create(delta_spark).location(str(location)).addColumn("b", "BIGINT")
    builder = builder.addColumn("c", column, generatedAlwaysAs=expression)
    if fits:
        builder.execute()
        return
    with pytest.raises(InvalidOperationError, match="generated column 'c' is of type") as raised:
        builder.execute()
    assert raised.value.error_class == "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    assert not location.exists()


@pytest.mark.parametrize("expression", ["CAST(b AS INT)", "length(concat(CAST(b AS STRING), uuid_of))"])
def test_spark_lets_narrower_types_of_expressions_pass(
    delta_spark: SparkSession, tmp_path: Path, expression: str
) -> None:
    """Spark's own check of CREATE TABLE accepts what can be cast up."""
    location, columns = tmp_path / "t", f"b BIGINT, uuid_of STRING, c BIGINT GENERATED ALWAYS AS ({expression})"
    with pytest.raises(InvalidOperationError, match="of type integer, but the column is of type long"):
        delta_spark.sql(f"CREATE TABLE delta.`{location}` ({columns}) USING delta")
    assert not location.exists()


def test_wrong_arguments_are_named(delta_spark: SparkSession, tmp_path: Path) -> None:
    builder = DeltaTable.create(delta_spark).location(str(tmp_path / "t"))
    with pytest.raises(TypeError, match="colName is a str, found int"):
        builder.addColumn(1, "int")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nullable is a bool"):
        builder.addColumn("a", "int", "yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="step"):
        IdentityGenerator(1, 0)
    with pytest.raises(ValueError, match="not both"):
        builder.addColumn("a", "bigint", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator())
    with pytest.raises(InvalidOperationError, match=r"'no type' is not a type for column 'a': \[UNSUPPORTED_DATATYPE"):
        builder.addColumn("a", "no type")
    with pytest.raises(InvalidOperationError, match="at least one column"):
        builder.execute()
    with pytest.raises(InvalidOperationError, match="location"):
        DeltaTable.create(delta_spark).addColumn("a", "int").execute()
    for named, remedy in (
        (DeltaTable.create(delta_spark), "Give a location"),
        (builder, "Leave the name out"),
    ):
        with pytest.raises(InvalidOperationError, match=f"'a.b.c.t' is neither .*{remedy}"):
            named.tableName("a.b.c.t").addColumn("a", "int").execute()
    with pytest.raises(TypeError, match="value of the property 'k' must be a string, bool or number, found NoneType"):
        builder.property("k", None)
    assert not (tmp_path / "t").exists()
