"""Catalogs in SQL: those that this process is connected to, and how they are installed into a session and removed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from tests.managed import Warehouse

from pyspark_delta import DeltaTable
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import DeltaWarning, InvalidOperationError
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.session.enable import disable, enable
from pyspark_delta.spark.sql import session as installing
from pyspark_delta.spark.sql.classic import relations


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    made = Warehouse(tmp_path)
    yield made
    disconnect_catalog(made.name)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.since("4.2")
def test_a_connected_catalog_is_a_catalog_of_sql(delta_spark: SparkSession, warehouse: Warehouse) -> None:
    sql, name = delta_spark.sql, warehouse.name
    sql(f"CREATE TABLE {name}.s.nums (a BIGINT, b STRING) USING delta TBLPROPERTIES ('delta.appendOnly' = 'false')")
    sql(f"CREATE TABLE {name}.s.two CLUSTER BY (x) COMMENT 'made' AS SELECT id AS x FROM range(2)")
    sql(f"INSERT INTO {name}.s.nums VALUES (1, 'a'), (2, 'b')")
    assert warehouse.open("two").detail()["description"] == "made"
    assert warehouse.open("two").detail()["clusteringColumns"] == ["x"]
    assert rows(sql(f"SELECT n.a FROM {name}.s.nums n JOIN {name}.s.two t ON n.a = t.x")) == [(1,)]
    assert rows(sql(f"SELECT {name}.s.nums.b FROM {name}.s.nums WHERE nums.a = 2")) == [("b",)]
    assert rows(sql(f"SHOW SCHEMAS IN {name}")) == [("s",)]
    assert [row[1] for row in rows(sql(f"SHOW TABLES IN {name}.s"))] == ["nums", "two"]
    try:
        sql(f"USE {name}.s")
        assert rows(sql("SELECT count(*) FROM nums VERSION AS OF 0")) == [(0,)]
        assert delta_spark.catalog.tableExists("two")
        delta_spark.range(1).write.format("delta").saveAsTable("made")
        delta_spark.range(1).writeTo("made_too").using("delta").create()
        assert DeltaTable.forName(delta_spark, "made").toDF().count() == warehouse.open("made_too").count() == 1
        sql("CREATE SCHEMA other")
        sql("ALTER TABLE two RENAME TO other.three")
        sql("ALTER TABLE nums ADD COLUMNS (c INT FIRST, d STRING COMMENT 'dee')")
        assert [row[:3] for row in sql("DESCRIBE nums").collect()][:2] == [("c", "int", None), ("a", "bigint", None)]
        sql(f"DROP TABLE {name}.other.three")
        sql("DROP SCHEMA other")
        sql("CREATE OR REPLACE TABLE nums AS SELECT a FROM nums")
        assert rows(sql("SELECT * FROM nums")) == [(1,), (2,)]
    finally:
        sql("USE spark_catalog.default")
    with pytest.raises(InvalidOperationError, match="chooses the location"):
        sql(f"CREATE TABLE {name}.s.t (a INT) LOCATION '/tmp/somewhere'")
    for missing in ("s.missing", "missing.t"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql(f"SELECT * FROM {name}.{missing}")


def test_catalogs_follow_connections(delta_spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    found = {row[0] for row in delta_spark.sql("SHOW CATALOGS").collect()}
    assert {"delta", warehouse.name} <= found
    delta_spark.sql(f"USE {warehouse.name}")
    disconnect_catalog(warehouse.name)
    assert warehouse.name not in {row[0] for row in delta_spark.sql("SHOW CATALOGS").collect()}
    assert delta_spark.catalog.currentCatalog() == "spark_catalog"


def test_a_catalog_of_the_settings_is_connected_when_it_is_used(spark: SparkSession, tmp_path: Path) -> None:
    made = Warehouse(tmp_path)
    made.create()
    made.append(7)
    disconnect_catalog(made.name)
    session = spark.newSession()
    name = made.name
    session.conf.set(f"spark.pyspark_delta.catalog.{name}", made.url)
    session.conf.set(f"spark.pyspark_delta.catalog.{name}.storageRoot", made.root)
    enable(session)
    try:
        assert rows(session.sql(f"SELECT * FROM {name}.s.t")) == [(7,)]
    finally:
        disable(session)
        disconnect_catalog(name)


def fields(session: SparkSession) -> list[object]:
    """The private fields that are set, as text, and the names of the catalogs."""
    state, jvm = session._jsparkSession.sessionState(), jvm_of(session)
    manager = state.catalogManager()
    values = [jvm.field(manager, "defaultSessionCatalog").get(manager), jvm.field(state, "sqlParser").get(state)]
    return [*(value.toString() for value in values), sorted(manager.listCatalogs(jvm.none).mkString(",").split(","))]


def test_disable_restores_the_session(spark: SparkSession, tmp_path: Path) -> None:
    session, path = spark.newSession(), str(tmp_path / "t")
    before = fields(session)
    enable(session)
    session.range(1).write.format("delta").save(path)
    session.sql(f"SELECT * FROM delta.`{path}`")
    session.sql("USE delta")
    assert fields(session) != before
    disable(session)
    assert fields(session) == before
    with pytest.raises(AnalysisException, match="UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        session.sql("SELECT * FROM table_changes('t', 0)")


def test_a_new_session_of_an_enabled_one_is_enabled(spark: SparkSession) -> None:
    session = enable(spark.newSession())
    other = session.newSession()
    try:
        assert "delta" in {row[0] for row in other.sql("SHOW CATALOGS").collect()}
    finally:
        disable(other)
        disable(session)


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension", "remove the settings spark.sql.extensions"),
        ("spark.sql.catalog.spark_catalog", "com.example.Catalog", "remove the setting spark.sql.catalog.spark_cat"),
        ("spark.sql.filesourceTableRelationCacheSize", "0", "remove the setting .*CacheSize=0"),
    ],
)
def test_what_stands_in_the_way_is_named_and_nothing_is_installed(
    spark: SparkSession, setting: str, value: str, says: str
) -> None:
    session = spark.newSession()
    before = fields(session)
    state = session._jsparkSession.sessionState()
    state.conf().setConfString(setting, value)  # `session.conf.set` refuses those that are fixed when Spark starts
    with pytest.warns(DeltaWarning, match=says):
        installing.install(session)
    assert fields(session) == before
    assert not installing.is_installed(session)


def test_internals_that_do_not_fit_leave_the_session_as_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    before = fields(session)
    monkeypatch.setattr(installing, "_working", [])
    monkeypatch.setattr(relations, "CONNECTOR", "org.apache.spark.sql.connector.elsewhere")
    with pytest.warns(DeltaWarning, match="does not take catalogs from Python") as warned:
        enable(session)
    assert len(warned) == 1
    assert fields(session) == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disable(session)
