"""Which statements of SQL work on which PySpark.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession
from tests.spark.versions.frames import ids, load

from pyspark_delta import Table
from pyspark_delta.errors import TableNotFoundError

pytestmark = pytest.mark.versions


@pytest.mark.since("4.2")
def test_metadata_in_sql(delta_spark: SparkSession, path: str) -> None:
    """SQL: the hidden column `_metadata` in queries, which Spark finds under the name of a table from 4.2 on"""
    found = delta_spark.sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 1 WHERE k = 1 AND _metadata.row_index = 1")
    assert ids(found) == [4]


def test_column_defaults(delta_spark: SparkSession, path: str) -> None:
    """SQL: DEFAULT values of columns, in INSERT and MERGE"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    sql(f"ALTER TABLE {name} ALTER COLUMN s SET DEFAULT 'none'")
    sql(f"INSERT INTO {name} (id, k) VALUES (20, 1)")
    sql(f"INSERT INTO {name} VALUES (21, 1, DEFAULT)")
    sql(f"MERGE INTO {name} t USING (SELECT 22L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (id)")
    assert [row.s for row in sql(f"SELECT s FROM {name} WHERE id > 19").collect()] == ["none"] * 3


@pytest.mark.since("4.0")
def test_merge_statements_with_schema_evolution(delta_spark: SparkSession, path: str) -> None:
    """SQL: MERGE WITH SCHEMA EVOLUTION"""
    delta_spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{path}` t USING (SELECT 50L AS id, 'x' AS other) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert load(delta_spark, path).where("other = 'x'").select("id", "k").collect() == [Row(id=50, k=None)]


def test_conditions_with_subqueries(delta_spark: SparkSession, path: str) -> None:
    """SQL: subqueries in the conditions of DELETE and UPDATE"""
    name = f"delta.`{path}`"
    delta_spark.sql(f"UPDATE {name} SET s = 'x' WHERE id = (SELECT max(id) FROM {name})")
    delta_spark.sql(f"DELETE FROM {name} WHERE NOT EXISTS (SELECT 1 FROM range(9, 20) r WHERE r.id = {name}.id)")
    assert delta_spark.table(name).collect() == [Row(id=9, k=0, s="x")]


def test_statements(delta_spark: SparkSession, path: str) -> None:
    """SQL: INSERT, UPDATE, DELETE and MERGE, on paths"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    sql(f"INSERT INTO {name} (id, k) VALUES (10, 1)")
    sql(f"INSERT OVERWRITE {name} PARTITION (k = 2) SELECT 40, 'x'")
    assert sql(f"UPDATE {name} SET s = concat(s, '!') WHERE id = 3").collect() == [Row(num_affected_rows=1)]
    assert sql(f"DELETE FROM {name} WHERE id IN (SELECT id FROM range(2))").head() == (2,)
    merged = sql(
        f"MERGE INTO {name} AS t USING (SELECT 4L AS id, 'm' AS s) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, s.s) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN DELETE"
    )
    assert merged.head() == (2, 1, 1, 0)
    found = {row.id: row.s for row in sql(f"SELECT * FROM {name}").collect()}
    assert found == {3: "3!", 4: "m", 6: "6", 7: "7", 10: None, 40: "x"}
    assert "executed" not in sql(f"EXPLAIN DELETE FROM {name}").head()[0]
    assert sql(f"SELECT count(*) FROM {name}").head() == (6,)


def test_named_statements(delta_spark: SparkSession) -> None:
    """SQL: CREATE, ALTER, DESCRIBE, TRUNCATE and DROP TABLE in the session catalog"""
    sql = delta_spark.sql
    try:
        sql("CREATE TABLE of_versions (id BIGINT NOT NULL, k INT COMMENT 'key') USING delta PARTITIONED BY (k)")
        sql("ALTER TABLE of_versions ADD COLUMN s STRING")
        sql("ALTER TABLE of_versions ADD CONSTRAINT positive CHECK (id > 0)")
        sql("INSERT INTO default.of_versions VALUES (1, 1, DEFAULT)")
        with pytest.raises(PySparkException, match="positive"):
            sql("INSERT INTO of_versions VALUES (-1, 1, 'a')")
        assert [row.col_name for row in sql("DESCRIBE of_versions").collect()][:3] == ["id", "k", "s"]
        assert sql("DESCRIBE DETAIL of_versions").head().partitionColumns == ["k"]
        sql("CREATE OR REPLACE TABLE of_versions USING delta AS SELECT id + 1 AS id FROM of_versions")
        assert ids(delta_spark.table("of_versions")) == [2]
        sql("TRUNCATE TABLE default.of_versions")
        assert sql("SELECT * FROM of_versions").collect() == []
    finally:
        sql("DROP TABLE IF EXISTS of_versions")
    assert not delta_spark.catalog.tableExists("of_versions")


def test_missing_schemas(delta_spark: SparkSession) -> None:
    """SQL: a schema that does not exist is named in Spark's own error"""
    for statement in ("SHOW TABLES IN nope", "ALTER SCHEMA nope SET DBPROPERTIES ('a' = 'b')", "USE nope"):
        with pytest.raises(AnalysisException, match=r"\[SCHEMA_NOT_FOUND\].*nope"):
            delta_spark.sql(statement)
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        delta_spark.catalog.listTables("nope")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        delta_spark.sql("CREATE TABLE nope.t (i INT) USING delta")


def test_tables_whose_log_is_gone(delta_spark: SparkSession) -> None:
    """SQL: a table whose directory was deleted is refused by queries, and can be dropped and created again"""
    sql = delta_spark.sql
    try:
        sql("CREATE TABLE of_versions USING delta AS SELECT 1 AS id")
        shutil.rmtree(Path(sql("DESCRIBE DETAIL of_versions").head().location.removeprefix("file:")))
        with pytest.raises(TableNotFoundError, match="no Delta table at"):
            sql("SELECT * FROM of_versions").collect()
        sql("DROP TABLE of_versions")
        assert not delta_spark.catalog.tableExists("of_versions")
        sql("CREATE TABLE of_versions USING delta AS SELECT 2 AS id")
        assert ids(delta_spark.table("of_versions")) == [2]
    finally:
        sql("DROP TABLE IF EXISTS of_versions")


def test_describing_statements(delta_spark: SparkSession) -> None:
    """SQL: SHOW TABLES, SHOW TBLPROPERTIES and DESCRIBE HISTORY"""
    sql = delta_spark.sql
    try:
        sql("CREATE TABLE of_versions (id BIGINT, k INT) USING delta TBLPROPERTIES ('a.b' = 'c')")
        sql("INSERT INTO of_versions VALUES (1, 2)")
        assert "of_versions" in [row.tableName for row in sql("SHOW TABLES").collect()]
        assert sql("SHOW TBLPROPERTIES of_versions ('a.b')").head().value == "c"
        assert [row.operation for row in sql("DESCRIBE HISTORY of_versions").collect()] == ["WRITE", "CREATE TABLE"]
        assert sql("DESCRIBE HISTORY of_versions LIMIT 1").head().operationMetrics["numOutputRows"] == "1"
    finally:
        sql("DROP TABLE IF EXISTS of_versions")


def test_altered_columns(delta_spark: SparkSession, path: str) -> None:
    """SQL: ALTER TABLE adds, moves and comments columns, and changes constraints and properties"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    sql(f"ALTER TABLE {name} ADD COLUMNS (a INT COMMENT 'first' FIRST, b STRING AFTER id)")
    sql(f"ALTER TABLE {name} ALTER COLUMN b COMMENT 'second'")
    sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (id < 100)")
    sql(f"ALTER TABLE {name} DROP CONSTRAINT small")
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    schema = load(delta_spark, path).schema
    assert schema.names == ["a", "id", "b", "k", "s"]
    assert schema["b"].metadata == {"comment": "second"}
    with pytest.raises(PySparkException, match="append"):
        sql(f"DELETE FROM {name}")
    sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.appendOnly')")
    assert sql(f"DELETE FROM {name}").head() == (10,)


def test_tables_like_others(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """SQL: CREATE TABLE LIKE a Delta table, with a path as name or with LOCATION"""
    sql, place = delta_spark.sql, tmp_path / "a place %20"
    sql(f"CREATE TABLE delta.`{tmp_path}/like` LIKE delta.`{path}` TBLPROPERTIES ('mine' = '1')")
    assert Table.open(f"{tmp_path}/like").schema == Table.open(path).schema
    assert Table.open(f"{tmp_path}/like").detail()["properties"]["mine"] == "1"
    try:
        sql(f"CREATE TABLE of_versions LIKE delta.`{path}` LOCATION '{place}'")
        sql(f"CREATE TABLE IF NOT EXISTS of_versions LIKE delta.`{path}`")
        sql("INSERT INTO of_versions (id) VALUES (1)")
        assert Table.open(str(place)).count() == 1
    finally:
        sql("DROP TABLE IF EXISTS of_versions")


@pytest.mark.since("4.0")
def test_identity_columns(delta_spark: SparkSession, path: str) -> None:
    """SQL: identity columns in CREATE TABLE, which Spark parses from 4.0 on"""
    name = f"delta.`{path}-identity`"
    delta_spark.sql(f"CREATE TABLE {name} (i BIGINT GENERATED ALWAYS AS IDENTITY, s STRING) USING delta")
    delta_spark.sql(f"INSERT INTO {name} (s) VALUES ('a'), ('b')")
    assert sorted(row.i for row in delta_spark.table(name).collect()) == [1, 2]


@pytest.mark.since("4.0")
def test_scripts(delta_spark: SparkSession, path: str) -> None:
    """SQL: scripts, which Spark 4.0 runs if `spark.sql.scripting.enabled` is true, and newer releases by default"""
    name = f"delta.`{path}`"
    script = f"BEGIN DECLARE n BIGINT; DELETE FROM {name} WHERE id > 4; SELECT count(*) FROM {name}; END"
    assert delta_spark.sql(script).head() == (5,)


@pytest.mark.since("4.1")
def test_parameters(delta_spark: SparkSession, path: str) -> None:
    """SQL: parameters (`args` of `spark.sql`) in statements that change rows, which reach our parser from 4.1 on"""
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id > :least", args={"least": 4})
    assert ids(load(delta_spark, path)) == [0, 1, 2, 3, 4]


@pytest.mark.since("4.2")
def test_replace_using(delta_spark: SparkSession, path: str) -> None:
    """SQL: INSERT ... REPLACE USING and REPLACE ON, which Spark parses from 4.2 on"""
    delta_spark.sql(f"INSERT INTO delta.`{path}` REPLACE USING (k) SELECT 50, 1, 'x'")
    assert ids(load(delta_spark, path)) == [0, 2, 3, 5, 6, 8, 9, 50]
