"""DELETE, UPDATE, MERGE and TRUNCATE as SQL: the text and the method change the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Row, SparkSession
from tests.managed import Warehouse

from pyspark_delta import DeltaTable, enable
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    ConcurrentAppendError,
    InvalidOperationError,
    TableNotFoundError,
)
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.session.enable import disable

NUMBERS = "SELECT id, id % 3 AS k, named_struct('a', id, 'b', 'x') AS st FROM range(10)"


@pytest.fixture(scope="module")
def sql(delta_spark: SparkSession) -> Iterator[SparkSession]:
    """The session."""
    delta_spark.range(5).toDF("x").createOrReplaceTempView("five")
    yield delta_spark
    delta_spark.catalog.dropTempView("five")


@pytest.fixture
def path(sql: SparkSession, tmp_path: Path) -> str:
    """A table with the rows of NUMBERS, in a directory with characters that SQL has to quote."""
    location = str(tmp_path / "a 't.ä")
    sql.sql(NUMBERS).write.format("delta").save(location)
    return location


def rows(spark: SparkSession, path: str) -> list[Row]:
    """The rows of a table, by their id."""
    return sorted(DeltaTable.forPath(spark, path).toDF().collect(), key=lambda row: (row[0] is not None, row[0]))


def ids(spark: SparkSession, path: str) -> list[Any]:
    """The ids of a table."""
    return [row[0] for row in rows(spark, path)]


# -------------------------------------------------------------------------------------------------------------- DELETE
CONDITIONS = {
    "id = 0": {0},
    "{t}.id = 1 OR id > 9": {1},
    "st.a = 2 AND {t}.st.b = 'x'": {2},
    "id IN (SELECT x FROM five WHERE x < 4)": {3},
    "NOT EXISTS (SELECT 1 FROM five WHERE five.x + 5 >= {t}.id)": set(),
    "id > 3 AND id = (SELECT max(x) FROM five)": {4},
    "EXISTS (SELECT 1 FROM five WHERE five.x + 5 = {t}.id AND five.x = 0)": {5},
    "id NOT IN (SELECT x + 5 FROM five WHERE x <> 1)": {6},
}


def test_delete_by_the_whole_name(sql: SparkSession, path: str) -> None:
    """Without an alias, the whole name qualifies columns, also those that a subquery refers to."""
    name, left = f"delta.`{path}`", set(range(10))
    for condition, deleted in CONDITIONS.items():
        result = sql.sql(f"DELETE FROM {name} WHERE {condition.format(t=name)}").collect()
        assert result == [Row(num_affected_rows=len(deleted))], condition
        left -= deleted
        assert ids(sql, path) == sorted(left), condition


def test_delete_with_alias_and_common_tables(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`"
    sql.sql(f"DELETE FROM {name} AS t WHERE EXISTS (SELECT 1 FROM five f WHERE f.x = t.id AND f.x = 0)")
    sql.sql(f"WITH some AS (SELECT 4 AS y UNION SELECT 5) DELETE FROM {name} WHERE id IN (SELECT y FROM some)")
    assert ids(sql, path) == [1, 2, 3, 6, 7, 8, 9]


@pytest.mark.since("4.1")
def test_delete_with_parameters(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`"
    sql.sql(f"DELETE FROM {name} WHERE id = :i", args={"i": 1})
    sql.sql(f"DELETE FROM {name} WHERE id = ?", args=[2])
    sql.sql("DELETE FROM IDENTIFIER(:t) WHERE id = 3", args={"t": name})
    escaped = name.replace("'", "\\'")
    sql.sql(f"EXECUTE IMMEDIATE 'DELETE FROM {escaped} WHERE id = ?' USING 4")
    assert ids(sql, path) == [0, *range(5, 10)]


def test_conditions_are_recorded_as_written(sql: SparkSession, path: str) -> None:
    """A condition stays text if the text alone means the same; otherwise Spark gives its text."""
    name = f"delta.`{path}`"
    statements = {
        f"DELETE FROM {name} WHERE id  IN (0)": "id  IN (0)",
        f"DELETE FROM {name} AS t WHERE t.id=1 OR t.id > 10": "t.id=1 OR t.id > 10",
        f"UPDATE {name} SET k = 7 WHERE id=2 -- two": "id=2",
        f"DELETE FROM {name} WHERE {name}.id=4": "CAST(4 AS BIGINT)",
        f"WITH one AS (SELECT 5) DELETE FROM {name} WHERE id=5": "id=5",
    }
    for statement, recorded in statements.items():
        sql.sql(statement)
        assert recorded in recorded_predicate(sql, path), statement
    assert ids(sql, path) == [2, 3, 6, 7, 8, 9]


@pytest.mark.since("4.1")
def test_parameters_and_variables_are_recorded(sql: SparkSession, path: str) -> None:
    sql.sql(f"DELETE FROM delta.`{path}` WHERE id =:i", args={"i": 3})
    assert "CAST(3 AS BIGINT)" in recorded_predicate(sql, path)
    sql.sql(f"BEGIN DECLARE six INT DEFAULT 6; DELETE FROM delta.`{path}` WHERE id=six; END")
    assert "id=six" in recorded_predicate(sql, path)
    assert ids(sql, path) == [0, 1, 2, 4, 5, 7, 8, 9]


@pytest.mark.since("4.1")
def test_variables_name_the_table_that_a_statement_changes(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`".replace("'", "\\'")
    statements = (
        "DELETE FROM IDENTIFIER(named) WHERE id > 1",
        "UPDATE IDENTIFIER(named) SET id = 5 WHERE id = 1",
        "MERGE INTO IDENTIFIER(named) t USING (SELECT 0 i) s ON t.id = s.i WHEN MATCHED THEN DELETE",
        "INSERT INTO IDENTIFIER(named) (id) VALUES (6)",
        "INSERT INTO IDENTIFIER(named || '') BY NAME SELECT 7L AS id",
    )
    sql.sql(f"DECLARE OR REPLACE VARIABLE named STRING DEFAULT '{name}'")
    try:
        for statement in statements:
            sql.sql(statement)
        assert ids(sql, path) == [5, 6, 7]
        with pytest.raises(AnalysisException, match="The expression unnamed"):
            sql.sql("DELETE FROM IDENTIFIER(unnamed) WHERE id > 1")
    finally:
        sql.sql("DROP TEMPORARY VARIABLE named")
    # The name is computed when the statement of a script runs.
    script = (
        "DELETE FROM IDENTIFIER(named); INSERT INTO IDENTIFIER(named) (id) VALUES (1), (0); SET named = t; "
        + "; ".join(statements)
    )
    sql.sql(f"BEGIN DECLARE named STRING = '{name}'; DECLARE t STRING = '{name}'; {script}; END")
    assert ids(sql, path) == [5, 6, 7]
    sql.sql(f"INSERT OVERWRITE IDENTIFIER('{name}') (id) VALUES (1)")
    assert ids(sql, path) == [1]


def recorded_predicate(sql: SparkSession, path: str) -> str:
    return str(DeltaTable.forPath(sql, path).history(1).collect()[0].operationParameters["predicate"])


def test_a_result_is_computed_once(sql: SparkSession, path: str) -> None:
    frame = sql.sql(f"DELETE FROM delta.`{path}` WHERE id < 2")
    assert [frame.collect(), frame.collect()] == [[Row(num_affected_rows=2)]] * 2
    assert frame.count() == 1
    assert DeltaTable.forPath(sql, path).history().count() == 2


@pytest.mark.since("4.0")  # 3.5 has no plan of such a statement
def test_explain_changes_nothing(sql: SparkSession, path: str) -> None:
    for mode in ("", "EXTENDED", "FORMATTED"):
        (plan,) = sql.sql(f"EXPLAIN {mode} DELETE FROM delta.`{path}`").first() or ("",)
        assert "DeleteFromTable" in plan
    assert len(ids(sql, path)) == 10


@pytest.mark.since("4.0")
def test_statements_of_scripts_and_of_the_jvm(sql: SparkSession, path: str) -> None:
    name = f"delta.`{path}`"
    script = f"""
        BEGIN
          DECLARE i INT DEFAULT 0;
          WHILE i < 2 DO
            IF i < 5 THEN DELETE FROM {name} WHERE id = 8 + i; END IF;
            SET i = i + 1;
          END WHILE;
          SELECT i;
        END"""
    assert sql.sql(script).collect() == [Row(i=2)]
    escaped = name.replace("'", "\\'")
    assert sql.sql(f"EXECUTE IMMEDIATE 'DELETE FROM {escaped} WHERE id = 7'").collect()
    java: Any = sql
    assert java._jsparkSession.sql(f"DELETE FROM {name} WHERE id = 6").count() == 1
    assert ids(sql, path) == [0, 1, 2, 3, 4, 5]


def test_subqueries_over_an_older_version_of_the_table_are_refused(sql: SparkSession, path: str) -> None:
    """A commit depends on what the subqueries in its conditions and values read."""
    sql.read.format("delta").load(path).createOrReplaceTempView("old")
    sql.sql(f"DELETE FROM delta.`{path}` WHERE id = (SELECT max(id) FROM old)")
    for statement in (
        f"DELETE FROM delta.`{path}` WHERE k = 0 AND id < (SELECT max(id) FROM old)",
        f"UPDATE delta.`{path}` SET k = 5 WHERE id IN (SELECT id FROM old)",
        f"UPDATE delta.`{path}` SET k = (SELECT max(id) FROM old) WHERE k = 0",
    ):
        with pytest.raises(ConcurrentAppendError):
            sql.sql(statement)
    assert ids(sql, path) == list(range(9))
    assert rows(sql, path)[0].k == 0


# -------------------------------------------------------------------------------------------------------------- UPDATE
@pytest.mark.smoke
def test_update(sql: SparkSession, path: str, tmp_path: Path) -> None:
    name, other = f"delta.`{path}`", str(tmp_path / "other")
    sql.sql(NUMBERS).write.format("delta").save(other)
    result = sql.sql(f"UPDATE {name} SET st.a = -1, {name}.k = {name}.k + 1 WHERE {name}.id IN (SELECT x FROM five)")
    DeltaTable.forPath(sql, other).update("id < 5", {"st.a": "-1", "k": "k + 1"})
    assert result.collect() == [Row(num_affected_rows=5)]
    assert rows(sql, path) == rows(sql, other)
    sql.sql(f"UPDATE {name} AS t SET t.k = (SELECT max(x) FROM five), st.b = DEFAULT WHERE t.id = 9")
    assert rows(sql, path)[-1] == Row(id=9, k=4, st=Row(a=9, b=None))
    with pytest.raises(InvalidOperationError, match="two values"):
        sql.sql(f"UPDATE {name} SET k = 1, k = 2")


# --------------------------------------------------------------------------------------------------------------- MERGE
MERGE = """
    MERGE INTO {t} USING (SELECT x AS id, x * 10 AS v FROM five UNION SELECT 50, 500) AS s ON {q}.id = s.id
    WHEN MATCHED AND s.id = 1 THEN DELETE
    WHEN MATCHED THEN UPDATE SET k = s.v, st.b = 'merged'
    WHEN NOT MATCHED AND s.v > 0 THEN INSERT (id, k) VALUES (s.id, s.v + 1)
    WHEN NOT MATCHED BY SOURCE AND {q}.id = 9 THEN DELETE
    WHEN NOT MATCHED BY SOURCE AND {q}.id > 7 THEN UPDATE SET k = {q}.k - 10"""


@pytest.mark.parametrize("alias", ["", "t"])
def test_merge(sql: SparkSession, path: str, tmp_path: Path, alias: str) -> None:
    name, other = f"delta.`{path}`", str(tmp_path / "other")
    result = sql.sql(MERGE.format(t=f"{name} {alias}", q=alias or name)).collect()
    sql.sql(NUMBERS).write.format("delta").save(other)
    source = sql.sql("SELECT x AS id, x * 10 AS v FROM five UNION SELECT 50, 500").alias("s")
    by_method = (
        DeltaTable.forPath(sql, other)
        .alias("t")
        .merge(source, "t.id = s.id")
        .whenMatchedDelete("s.id = 1")
        .whenMatchedUpdate(set={"k": "s.v", "st.b": "'merged'"})
        .whenNotMatchedInsert("s.v > 0", {"id": "s.id", "k": "s.v + 1"})
        .whenNotMatchedBySourceDelete("t.id = 9")
        .whenNotMatchedBySourceUpdate("t.id > 7", {"k": "t.k - 10"})
        .execute()
    )
    assert result == by_method.collect()
    assert rows(sql, path) == rows(sql, other)


@pytest.mark.since("4.0")
def test_merge_of_a_common_table_that_evolves_the_schema(sql: SparkSession, path: str) -> None:
    common = "WITH q AS (SELECT 77L AS id, 1L AS k, named_struct('a', 1L, 'b', 'y') AS st, true AS more)"
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{path}` t USING q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *"
    assert sql.sql(f"{common} {merge}").collect()[0].num_inserted_rows == 1
    assert rows(sql, path)[-1] == Row(id=77, k=1, st=Row(a=1, b="y"), more=True)


def test_merge_of_two_tables_with_the_same_last_name(sql: SparkSession, tmp_path: Path) -> None:
    """The whole names tell the sides apart, also in the text that decides which files are read."""
    first, second = Warehouse(tmp_path / "1"), Warehouse(tmp_path / "2")
    try:
        for warehouse, low in ((first, 0), (second, 3)):
            sql.range(low, low + 5).write.saveAsTable(warehouse.full("t"))
        sql.read.table(second.full("t")).createOrReplaceTempView("t")
        target = first.full("t")
        merge = f"MERGE INTO {target} USING t ON {target}.id = t.id + 0 WHEN MATCHED THEN DELETE"
        with pytest.raises(AnalysisException, match="AMBIGUOUS"):
            sql.sql(merge)
        sql.sql(f"MERGE INTO {target} AS a USING t ON a.id = t.id WHEN MATCHED THEN DELETE")
        assert [row.id for row in sql.read.table(target).orderBy("id").collect()] == [0, 1, 2]
    finally:
        sql.catalog.dropTempView("t")
        disconnect_catalog(first.name)
        disconnect_catalog(second.name)


def test_merge_refuses_subqueries(sql: SparkSession, path: str) -> None:
    with pytest.raises(InvalidOperationError, match="Join what the subquery reads"):
        sql.sql(
            f"MERGE INTO delta.`{path}` t USING five s ON t.id = s.x AND s.x IN (SELECT max(x) FROM five) "
            "WHEN MATCHED THEN DELETE"
        )
    assert len(ids(sql, path)) == 10


# ------------------------------------------------------------------------------------------------- targets and errors
@pytest.mark.smoke
def test_truncate(sql: SparkSession, path: str) -> None:
    assert sql.sql(f"TRUNCATE TABLE delta.`{path}`").collect() == []
    assert ids(sql, path) == []


def test_names_of_a_connected_catalog(sql: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    name = warehouse.full("t")
    try:
        sql.range(6).write.saveAsTable(name)
        sql.sql(f"DELETE FROM {name} WHERE {name}.id = 0 OR s.t.id = 1 OR t.id = 2")
        sql.sql(f"UPDATE {name} SET {name}.id = 30 WHERE id = 3")
        assert [row.id for row in sql.read.table(name).orderBy("id").collect()] == [4, 5, 30]
        with pytest.raises(CatalogNameNotFoundError):
            sql.sql(f"DELETE FROM {warehouse.full('absent')}")
    finally:
        disconnect_catalog(warehouse.name)


def test_temporary_views_of_one_table(sql: SparkSession, path: str) -> None:
    frame = sql.read.format("delta").load(path)
    frame.createOrReplaceTempView("whole")
    sql.sql("DELETE FROM whole WHERE whole.id = 0")
    sql.sql("UPDATE whole SET k = 7 WHERE id = 1")
    assert rows(sql, path)[0].k == 7
    old = sql.read.format("delta").option("versionAsOf", 0).load(path)
    for view in (frame.where("id > 3"), frame.select("id"), frame.join(frame.select("id"), "id"), old):
        view.createOrReplaceTempView("part")
        with pytest.raises(InvalidOperationError, match="Name the table itself"):
            sql.sql("DELETE FROM part WHERE id = 4")
    assert len(ids(sql, path)) == 9


def test_errors_name_what_is_wrong_and_change_nothing(sql: SparkSession, path: str) -> None:
    with pytest.raises(ParseException) as parsing:
        sql.sql(f"DELETE FROM delta.`{path}` WERE id = 1")
    assert "pos" in str(parsing.value)
    assert condition_of(parsing.value) == "PARSE_SYNTAX_ERROR"
    with pytest.raises(AnalysisException, match="idd") as unknown:
        sql.sql(f"DELETE FROM delta.`{path}` WHERE idd = 1")
    assert condition_of(unknown.value) == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    for text in ("'true'", ":text"):  # not the condition that is true
        with pytest.raises(AnalysisException, match="is not a boolean"):
            sql.sql(f"DELETE FROM delta.`{path}` WHERE {text}", args={"text": "true"})
    with pytest.raises(TableNotFoundError):
        sql.sql("DELETE FROM delta.`/nowhere/at/all`")
    assert len(ids(sql, path)) == 10


@pytest.mark.since("4.0")
def test_a_script_handles_an_error_of_the_parser(sql: SparkSession) -> None:
    script = (
        "BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '42601' BEGIN SELECT 'handled'; END; EXECUTE IMMEDIATE 'SELEC 1'; END"
    )
    assert sql.sql(script).first() == ("handled",)


def test_other_tables_stay_with_spark(sql: SparkSession, tmp_path: Path) -> None:
    sql.sql(f"CREATE TABLE other_rows (a INT) USING parquet LOCATION '{tmp_path / 'other'}'")
    try:
        sql.sql("INSERT INTO other_rows VALUES (1)")
        sql.sql("INSERT INTO other_rows VALUES (2)")
        assert sorted(row.a for row in sql.table("other_rows").collect()) == [1, 2]
        assert (
            "InsertIntoHadoopFsRelationCommand" in sql.sql("EXPLAIN INSERT INTO other_rows VALUES (3)").collect()[0][0]
        )
        with pytest.raises(AnalysisException, match="DELETE"):
            sql.sql("DELETE FROM other_rows")
    finally:
        sql.sql("DROP TABLE other_rows")


def test_disabled_sessions_have_the_parser_from_before(spark: SparkSession) -> None:
    session: Any = spark.newSession()
    state = session._jsparkSession.sessionState()
    before = state.sqlParser().toString()
    enable(enable(session))
    assert "DeltaParser" in state.sqlParser().toString()
    disable(session)
    assert state.sqlParser().toString() == before
