"""What a script returns: as for Spark's own statements, the rows of its last query, and nothing of other statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import Table
from pyspark_delta.errors import ConstraintViolationError

pytestmark = pytest.mark.since("4.0")

KINDS = ("parquet", "delta")
# Statements of Spark's grammar: a script returns of them what it returns for tables of another format.
SHARED = (
    "DESCRIBE {t}",
    "SHOW COLUMNS IN {t}",
    "SHOW TBLPROPERTIES {t}",
    "ALTER TABLE {t} SET TBLPROPERTIES ('mine' = '1')",
    "EXPLAIN SELECT * FROM {t}",
    "INSERT INTO {t} VALUES (7)",
    "FROM {t} INSERT INTO {t} SELECT id INSERT INTO {u} SELECT id",
    "WITH a AS (SELECT 5L AS id) FROM a INSERT INTO {t} SELECT id INSERT INTO {u} SELECT id",
    "TRUNCATE TABLE {t}",
    "SELECT count(*) AS n FROM {t}",
    "SELECT id FROM {t} WHERE id < 0",
)
# Statements that Spark has not, or not for tables of another format: a script returns of them what it does of SHOW.
OWN = {
    "DELETE FROM {t} WHERE id = 0": "num_affected_rows",
    "UPDATE {t} SET id = id + 1": "num_affected_rows",
    "DESCRIBE HISTORY {t}": "version",
    "DESCRIBE DETAIL {t}": "format",
    "OPTIMIZE {t}": "path",
    "VACUUM {t} DRY RUN": "path",
}


@pytest.fixture
def sql(delta_spark: SparkSession) -> Iterator[SparkSession]:
    """The session, with two tables of each kind."""
    for kind in KINDS:
        for name in ("t", "u"):
            delta_spark.sql(f"CREATE TABLE script_{kind}_{name} (id BIGINT) USING {kind}")
            delta_spark.sql(f"INSERT INTO script_{kind}_{name} VALUES (0), (1)")
    yield delta_spark
    for kind in KINDS:
        for name in ("t", "u"):
            delta_spark.sql(f"DROP TABLE script_{kind}_{name}")


def returned(sql: SparkSession, statement: str, kind: str) -> Any:
    """The columns and rows that a script returns with a query before a statement, and with the statement alone."""
    text = statement.format(t=f"script_{kind}_t", u=f"script_{kind}_u")
    frames = [sql.sql(f"BEGIN {before} {text}; END") for before in ("SELECT 42 AS before;", "")]
    return [(frame.columns, frame.collect()) for frame in frames]


@pytest.mark.parametrize("statement", SHARED)
def test_a_script_returns_what_it_returns_for_other_tables(sql: SparkSession, statement: str) -> None:
    of_spark, of_delta = (returned(sql, statement, kind) for kind in KINDS)
    assert of_delta == of_spark


@pytest.mark.parametrize("statement", OWN)
def test_statements_of_delta_return_nothing_from_a_script(sql: SparkSession, statement: str) -> None:
    assert returned(sql, statement, "delta") == [(["before"], [(42,)]), ([], [])]
    assert sql.sql(statement.format(t="script_delta_t")).columns[0] == OWN[statement]


def test_several_inserts_may_name_tables_that_the_script_has_made(sql: SparkSession, tmp_path: Path) -> None:
    """They run in order, each once, whatever the formats of their tables are."""
    sql.sql(f"""
        BEGIN
          CREATE TABLE script_made (id BIGINT) USING delta LOCATION '{tmp_path / "made"}';
          FROM script_delta_t INSERT INTO script_made SELECT id INSERT INTO script_parquet_t SELECT id + 10;
        END""")
    try:
        assert Table.open(str(tmp_path / "made")).version == 1
        assert sorted(row.id for row in sql.table("script_made").collect()) == [0, 1]
        assert sorted(row.id for row in sql.table("script_parquet_t").collect()) == [0, 1, 10, 11]
    finally:
        sql.sql("DROP TABLE script_made")


def test_several_inserts_run_once(sql: SparkSession) -> None:
    """Each sees the rows of those before it, as in Spark."""
    text = "FROM script_delta_t INSERT INTO script_delta_t SELECT id INSERT INTO script_parquet_u SELECT id"
    (plan,) = sql.sql(f"EXPLAIN {text}").first() or ("",)
    assert "InsertIntoStatements" in plan
    done = sql.sql(text)
    assert (done.columns, done.collect(), done.collect()) == ([], [], [])
    assert [sql.table(f"script_{name}").count() for name in ("delta_t", "parquet_u")] == [4, 6]


@pytest.mark.since("4.1")  # 4.0 has no handlers
@pytest.mark.parametrize(
    ("handler", "statement"),
    [
        ("SQLEXCEPTION", "INSERT INTO {t} VALUES (-1)"),
        pytest.param("SQLSTATE '23001'", "INSERT INTO {t} VALUES (-1)", marks=pytest.mark.since("4.2")),
        ("CAST_INVALID_INPUT", "INSERT INTO {t} VALUES ('no number')"),
        ("SQLSTATE '22012'", "UPDATE {t} SET id = CAST(1 / 0 AS BIGINT)"),
        ("TABLE_OR_VIEW_NOT_FOUND", "MERGE INTO no_such_table USING {t} ON true WHEN MATCHED THEN DELETE"),
        ("SQLEXCEPTION", "OPTIMIZE delta.`/no/such/table`"),
    ],
)
def test_handlers_catch_errors_of_statements(
    delta_spark: SparkSession, tmp_path: Path, handler: str, statement: str
) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    delta_spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta")
    delta_spark.sql(f"INSERT INTO {name} VALUES (1)")
    delta_spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (id > 0)")
    declared = f"DECLARE EXIT HANDLER FOR {handler} BEGIN INSERT INTO {name} VALUES (7); SELECT 'handled'; END;"
    script = f"BEGIN {declared} {statement.format(t=name)}; SELECT 'not reached'; END"
    assert delta_spark.sql(script).collect() == [("handled",)]
    assert sorted(delta_spark.sql(f"SELECT * FROM {name}").collect()) == [(1,), (7,)]


@pytest.mark.since("4.1")
def test_an_error_that_no_handler_catches_is_raised_as_itself(delta_spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    delta_spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL) USING delta")
    declared = "DECLARE EXIT HANDLER FOR SQLSTATE '99999' BEGIN SELECT 'handled'; END;"
    with pytest.raises(ConstraintViolationError) as caught:
        delta_spark.sql(f"BEGIN {declared} INSERT INTO {name} VALUES (NULL); END").collect()
    assert caught.value.error_class == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
