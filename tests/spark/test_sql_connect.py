"""SQL of Spark Connect sessions: queries, changes and definitions of Delta tables at paths and in catalogs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from pyspark_delta import Table, connect_catalog, disconnect_catalog
from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError, SqlSyntaxError, TableAlreadyExistsError
from pyspark_delta.spark.sql.connect import rewrite


@pytest.fixture
def table(delta_connect: SparkSession, tmp_path: Path) -> str:
    Table.write(tmp_path / "t", {"id": [1, 2, 3], "s": ["a", "b", None]}).delete("id = 3")
    return f"delta.`{tmp_path}/t`"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[str]:
    made = connect_catalog(f"sqlite:///{tmp_path}/catalog.db", "shop")
    made.create_schema("sales")
    yield "shop"
    disconnect_catalog("shop")


def date_versions(table: str) -> None:
    """Let version 0 be of the first of January 2026, and version 1 of the third."""
    log = Path(table.split("`")[1]) / "_delta_log"
    for version, day in enumerate(("2026-01-01", "2026-01-03")):
        stamp = datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
        os.utime(log / f"{version:020}.json", (stamp, stamp))


def rows(spark: SparkSession, text: str, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text, **options).collect()]


def test_queries_read_tables_at_paths(delta_connect: SparkSession, table: str) -> None:
    spark = delta_connect
    text = f"""
        WITH x AS (SELECT * FROM {table} VERSION AS OF 0 /* all {{rows}} */)
        SELECT {table}.id, x.s, '{table}' AS text, map('a', 1)['a'] FROM {table} JOIN x ON {table}.id = x.id
        WHERE x.id IN (SELECT id FROM {table} WHERE id >= :least) ORDER BY 1"""
    assert rows(spark, text, args={"least": 1}) == [(1, "a", table, 1), (2, "b", table, 1)]
    assert len(rows(spark, f"TABLE {table}")) == 2
    sampled = f"{table} TABLESAMPLE (100 PERCENT) REPEATABLE (3)"
    assert rows(spark, f"SELECT {table}.id FROM {sampled} ORDER BY 1") == [(1,), (2,)]
    assert rows(spark, f"SELECT t.id FROM {sampled} AS t ORDER BY t.id LIMIT 1") == [(1,)]
    assert rows(spark, f"SELECT max(id) FROM {{mine}} m JOIN {table} t USING (id)", mine=spark.range(2)) == [(1,)]


def test_queries_are_explained(delta_connect: SparkSession, table: str) -> None:
    [[plan]] = rows(delta_connect, f"EXPLAIN FORMATTED SELECT id FROM {table} WHERE s = '{{}}'")
    assert "Physical Plan" in plan
    assert "AnalysisException" not in plan
    for change in (f"DELETE FROM {table}", f"OPTIMIZE {table}"):
        with pytest.raises(InvalidOperationError, match=r"plan=True"):
            delta_connect.sql(f"EXPLAIN {change}")
    assert Table.open(table.split("`")[1]).version == 1


def test_names_in_identifier_clauses(delta_connect: SparkSession, table: str) -> None:
    named = {"named": table, "least": 2}
    assert rows(delta_connect, f"SELECT i.id FROM IDENTIFIER('{table}') AS i WHERE i.id = 1") == [(1,)]
    assert rows(delta_connect, "SELECT id FROM IDENTIFIER(:named) WHERE id >= :least", args=named) == [(2,)]


def test_question_marks_keep_their_values(delta_connect: SparkSession, table: str) -> None:
    """Also those after a point in time or a name, which the server does not get."""
    spark, old = delta_connect, f"SELECT id FROM {table} VERSION AS OF ? WHERE id = ?"
    assert rows(spark, old, args=[0, 3]) == [(3,)]
    assert rows(spark, "SELECT id FROM IDENTIFIER(?) WHERE id < ? -- ?", args=[table, 2]) == [(1,)]
    assert rows(spark, f"SELECT id, '?' FROM {table} WHERE array_contains(?, id)", args=[[2, 5]]) == [(2, "?")]
    assert rows(spark, f"DESCRIBE QUERY {old}", args=[0, 3]) == [("id", "bigint", None)]
    assert rows(spark, f"DELETE FROM {table} WHERE id IN (SELECT explode(?))", args=[[2, 5]]) == [(1,)]


@pytest.mark.parametrize(
    "time",
    [
        "TIMESTAMP AS OF '2026-01-03' - INTERVAL 1 DAY x",
        "FOR SYSTEM_TIME AS OF date_add(DATE'2026-01-01', :one) AS x",
        "TIMESTAMP AS OF to_timestamp('2026-01-02 00:00:00') + INTERVAL '1' HOUR - INTERVAL '1' MINUTE x",
        "TIMESTAMP AS OF CAST('2026-01-02' AS TIMESTAMP) x",
    ],
)
def test_the_server_computes_points_in_time(delta_connect: SparkSession, table: str, time: str) -> None:
    date_versions(table)
    query = f"SELECT max(x.id) FROM {table} {time}, VALUES (1) LIMIT 1"
    assert rows(delta_connect, query, args={"one": 1}) == [(3,)]
    with pytest.raises(InvalidOperationError, match="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"):
        delta_connect.sql(f"SELECT * FROM {table} TIMESTAMP AS OF to_timestamp(NULL)")


def test_columns_of_queries_are_described(delta_connect: SparkSession, table: str) -> None:
    described = [("n", "bigint", None), ("s", "string", None)]
    for words in ("DESCRIBE QUERY", "DESC"):
        assert rows(delta_connect, f"{words} SELECT id + 1 AS n, s FROM {table}") == described


def test_rows_are_changed(delta_connect: SparkSession, table: str) -> None:
    spark = delta_connect
    assert rows(spark, f"UPDATE {table} AS x SET x.s = concat(x.s, '!') WHERE x.id = 1") == [(1,)]
    assert rows(spark, f"DELETE FROM {table} WHERE {table}.id IN (SELECT max(id) FROM {table})") == [(1,)]
    assert rows(spark, f"INSERT INTO {table} VALUES (7, 'seven')") == []
    assert rows(spark, f"INSERT INTO {table} (s, id) SELECT upper(s), id + 1 FROM {table} WHERE id = 7") == []
    merged = rows(
        spark,
        f"""MERGE INTO {table} AS x USING (SELECT id, 'm' AS s FROM {table} WHERE id > 1 UNION ALL SELECT 9, 'n') AS y
            ON x.id = y.id WHEN MATCHED AND x.id = 8 THEN DELETE WHEN MATCHED THEN UPDATE SET s = y.s
            WHEN NOT MATCHED THEN INSERT *""",
    )
    assert merged == [(3, 1, 1, 1)]
    assert rows(spark, f"SELECT * FROM {table} ORDER BY id") == [(1, "a!"), (7, "m"), (9, "n")]
    spark.sql(f"INSERT INTO {table} REPLACE WHERE id > 1 SELECT 5, 'five'")
    assert rows(spark, f"SELECT id FROM {table} ORDER BY id") == [(1,), (5,)]
    spark.sql(f"INSERT INTO {table} AS t REPLACE ON t.id < n.id (SELECT 5 AS id, 'FIVE' AS s) AS n")
    assert rows(spark, f"SELECT * FROM {table}") == [(5, "five"), (5, "FIVE")]
    spark.sql(f"INSERT OVERWRITE {table} VALUES (0, 'zero')")
    assert rows(spark, f"SELECT id FROM {table}") == [(0,)]
    spark.sql(f"TRUNCATE TABLE {table}")
    assert rows(spark, f"SELECT id FROM {table}") == []


def test_values_are_cast_to_the_types_of_the_columns(delta_connect: SparkSession, tmp_path: Path) -> None:
    """As on classic sessions; DEFAULT is the default of the column."""
    spark, made = delta_connect, f"delta.`{tmp_path}/typed`"
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    spark.sql(
        f"CREATE TABLE {made} (f FLOAT, d DATE, n INT DEFAULT 6, p INT) USING delta PARTITIONED BY (p) {properties}"
    )
    spark.sql(f"INSERT INTO {made} VALUES (1.5, DATE'2026-01-02', DEFAULT, 1), (2, DATE'2026-01-03', 2 + 1, DEFAULT)")
    spark.sql(f"INSERT INTO {made} PARTITION (p = '3') (d, f, n) VALUES ('2026-01-04', '4.5', 5.9D)")
    assert [tuple(map(str, row)) for row in rows(spark, f"SELECT f, d, n, p FROM {made} ORDER BY f")] == [
        ("1.5", "2026-01-02", "6", "1"),
        ("2.0", "2026-01-03", "3", "None"),
        ("4.5", "2026-01-04", "5", "3"),
    ]
    for wrong, found in {
        "(n) VALUES ('seven')": "CAST_INVALID_INPUT.*'seven' does not fit into the column 'n'",
        "(n, N) VALUES (1, 2)": "gets two values",
        "(f) VALUES (1, 2)": "2 columns",
    }.items():
        with pytest.raises(SchemaMismatchError, match=found):
            spark.sql(f"INSERT INTO {made} {wrong}")
    with pytest.raises(InvalidOperationError, match=r"NON_PARTITION_COLUMN.* 'n'"):
        spark.sql(f"INSERT OVERWRITE {made} PARTITION (n = 6) VALUES (1, DATE'2026-01-02', 1)")
    assert len(rows(spark, f"TABLE {made}")) == 3


def test_members_of_structs_by_position(delta_connect: SparkSession, tmp_path: Path) -> None:
    spark, made = delta_connect, f"delta.`{tmp_path}/nested`"
    spark.sql(f"CREATE TABLE {made} (id INT, st STRUCT<a: INT, b: INT>) USING delta")
    spark.sql(f"INSERT INTO {made} SELECT 1, named_struct('b', 1, 'a', 2)")
    spark.sql(f"INSERT INTO {made} BY NAME SELECT named_struct('b', 1, 'a', 2) AS st, 2 AS id")
    assert rows(spark, f"SELECT id, st.a, st.b FROM {made} ORDER BY id") == [(1, 1, 2), (2, 2, 1)]


def test_common_table_expressions_before_changes(delta_connect: SparkSession, table: str) -> None:
    spark = delta_connect
    ctes = f"WITH one AS (SELECT min(id) AS i FROM {table}), more AS (SELECT i + 1 AS i FROM one)"
    assert rows(spark, f"{ctes} UPDATE {table} SET s = (SELECT concat('u', i) FROM more) WHERE id = 2") == [(1,)]
    where = "EXISTS (WITH own AS (TABLE one) SELECT 1 FROM own WHERE own.i = t.id AND id IN (SELECT i FROM one))"
    assert rows(spark, f"{ctes} DELETE FROM {table} AS t WHERE {where}") == [(1,)]
    merge = "ON t.id = n.i WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.i, 'n')"
    assert rows(spark, f"{ctes} MERGE INTO {table} t USING more n {merge}") == [(1, 0, 0, 1)]
    assert rows(spark, f"{ctes} MERGE INTO {table} t USING (SELECT i FROM one) n {merge}") == [(1, 1, 0, 0)]
    assert rows(spark, f"SELECT * FROM {table} ORDER BY id") == [(2, "m"), (3, "n")]


def test_change_feeds(delta_connect: SparkSession, catalog: str, tmp_path: Path) -> None:
    spark, path = delta_connect, tmp_path / "fed"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1), (2)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    selected = "SELECT c._change_type, c.id FROM {} AS c JOIN range(3) AS r ON r.id = c.id ORDER BY 1, 2"
    changes = [("delete", 1), ("insert", 1), ("insert", 2)]
    for call, found in {
        f"table_changes_by_path('{path}', 1)": changes,
        f"table_changes_by_path('{path}', '2001-01-01', :last)": changes[1:],
        f"table_changes('delta.`{path}`', 2, 2)": changes[:1],
    }.items():
        assert rows(spark, selected.format(call), args={"last": 1}) == found, call
    spark.sql(f"CREATE TABLE {catalog}.sales.fed (id BIGINT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"INSERT INTO {catalog}.sales.fed VALUES (2)")
    assert rows(spark, selected.format(f"table_changes('{catalog}.sales.fed', 1)")) == [("insert", 2)]


def test_queries_are_cached_under_a_name(delta_connect: SparkSession, table: str) -> None:
    spark = delta_connect
    spark.sql(f"CACHE TABLE sql_connect_kept AS SELECT id FROM {table}")
    try:
        assert spark.catalog.isCached("sql_connect_kept")
        spark.sql(f"INSERT INTO {table} VALUES (9, 'nine')")
        assert rows(spark, "SELECT id FROM sql_connect_kept ORDER BY id") == [(1,), (2,)]
    finally:
        spark.catalog.dropTempView("sql_connect_kept")


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("CACHE TABLE {}", "CACHE TABLE name AS SELECT"),
        ("BEGIN DELETE FROM {}; END", "one by one"),
        ("EXECUTE IMMEDIATE 'DELETE FROM {}'", "by spark.sql"),
        ("FROM {0} INSERT INTO {0} SELECT id, s INSERT INTO {0} SELECT id, s", "once for each table"),
    ],
)
def test_what_only_the_server_could_run_is_refused(
    delta_connect: SparkSession, table: str, statement: str, advice: str
) -> None:
    with pytest.raises(InvalidOperationError, match=advice):
        delta_connect.sql(statement.format(table))
    assert len(rows(delta_connect, f"TABLE {table}")) == 2


def test_definitions_and_deltas_own_statements_run(delta_connect: SparkSession, table: str, tmp_path: Path) -> None:
    spark = delta_connect
    made = f"delta.`{tmp_path}/made`"
    spark.sql(f"CREATE TABLE {made} USING delta PARTITIONED BY (k) COMMENT 'c' AS SELECT id, id % 2 AS k FROM {table}")
    created = Table.open(tmp_path / "made")
    assert (created.partition_columns, created.metadata.description) == (("k",), "c")
    with pytest.raises(TableAlreadyExistsError):
        spark.sql(f"CREATE TABLE {made} AS SELECT 1 AS a")
    spark.sql(f"ALTER TABLE {made} SET TBLPROPERTIES ('a' = 'b')")
    spark.sql(f"ALTER TABLE {made} ADD COLUMNS (more STRING)")
    assert rows(spark, f"SHOW TBLPROPERTIES {made} (a)") == [("a", "b")]
    assert ("delta.minWriterVersion", "2") in rows(spark, f"SHOW TBLPROPERTIES {made}")
    assert ("Namespace", "delta", "") in rows(spark, f"DESCRIBE EXTENDED {made}")
    assert [row[0] for row in rows(spark, f"DESCRIBE {made}")][:3] == ["id", "k", "more"]
    assert spark.sql(f"DESCRIBE HISTORY {made} LIMIT 1").first()["operation"] == "ADD COLUMNS"  # type: ignore[index]
    assert rows(spark, f"RESTORE {made} TO VERSION AS OF 0")[0][1] == 2
    assert rows(spark, f"FSCK REPAIR TABLE {made} DRY RUN") == []
    assert rows(spark, f"OPTIMIZE '{tmp_path}/made'")[0][0] == f"file:{tmp_path}/made"
    with pytest.raises(SqlSyntaxError, match="expected HOURS"):
        spark.sql(f"VACUUM {made} RETAIN 7")


@pytest.mark.parametrize("rest", ["(id INT) USING delta", "USING deltapy AS SELECT 1 AS id", "LIKE {} USING delta"])
def test_the_servers_catalog_gets_no_delta_tables(delta_connect: SparkSession, table: str, rest: str) -> None:
    with pytest.raises(InvalidOperationError, match=r"Cannot create the Delta table of_server.*connect_catalog"):
        delta_connect.sql(f"CREATE TABLE of_server {rest.format(table)}")
    assert not delta_connect.catalog.tableExists("of_server")


def test_views_are_temporary(delta_connect: SparkSession, table: str) -> None:
    spark = delta_connect
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sql_connect_view AS SELECT id FROM {table} WHERE s = 'a'")
    assert rows(spark, "SELECT * FROM sql_connect_view") == [(1,)]
    spark.catalog.dropTempView("sql_connect_view")
    with pytest.raises(InvalidOperationError, match="would be permanent"):
        spark.sql(f"CREATE VIEW v AS SELECT * FROM {table}")


@pytest.mark.parametrize("statement", ["CREATE OR REPLACE TEMP VIEW once_view AS", "CACHE TABLE once_view AS"])
def test_views_compute_a_point_in_time_once(
    delta_connect: SparkSession, table: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, real = list[str](), rewrite._computed
    monkeypatch.setattr(rewrite, "_computed", lambda names, text: computed.append(text) or real(names, text))
    date_versions(table)
    delta_connect.sql(f"{statement} SELECT id FROM {table} TIMESTAMP AS OF CAST('2026-01-02' AS TIMESTAMP)")
    delta_connect.catalog.dropTempView("once_view")
    assert len(computed) == 1


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM target_view WHERE id = 1",
        "UPDATE target_view SET id = 1",
        "INSERT INTO target_view VALUES (1)",
        "MERGE INTO target_view USING target_view s ON target_view.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_rows_are_not_changed_through_views(delta_connect: SparkSession, table: str, change: str) -> None:
    delta_connect.sql(f"CREATE OR REPLACE TEMPORARY VIEW target_view AS SELECT id FROM {table}")
    with pytest.raises(InvalidOperationError, match=r"'target_view' is a temporary view.*Name the table itself"):
        delta_connect.sql(change).collect()
    delta_connect.catalog.dropTempView("target_view")


def test_views_name_their_columns(delta_connect: SparkSession, table: str) -> None:
    spark = delta_connect
    spark.sql(f"CREATE OR REPLACE TEMP VIEW named_view (key COMMENT 'of k', `a b`) AS SELECT id, s FROM {table}")
    assert rows(spark, "SELECT `a b` FROM named_view WHERE key = 2") == [("b",)]
    assert rows(spark, "DESCRIBE named_view")[0] == ("key", "bigint", "of k")
    spark.catalog.dropTempView("named_view")
    with pytest.raises(InvalidOperationError, match="The view has 1 columns, and its query 2"):
        spark.sql(f"CREATE TEMP VIEW other_view (key) AS SELECT id, s FROM {table}")


def test_names_of_catalogs(delta_connect: SparkSession, catalog: str, table: str) -> None:
    spark = delta_connect
    spark.sql("CREATE TABLE shop.sales.o (id BIGINT)")
    spark.sql("USE shop.sales")
    spark.sql("INSERT INTO o SELECT id FROM range(3)")
    assert rows(spark, "SELECT o.id, shop.sales.o.id FROM o WHERE id > 1") == [(2, 2)]
    spark.sql(f"CREATE TABLE p AS SELECT id FROM {table}")
    assert rows(spark, "DELETE FROM p WHERE id = 1") == [(1,)]
    assert [row[1] for row in rows(spark, "SHOW TABLES")] == ["o", "p"]
    assert ("shop",) in rows(spark, "SHOW CATALOGS")
    spark.sql("DROP TABLE p")
    spark.sql("USE spark_catalog.default")
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM o").collect()
    assert rows(spark, "SELECT count(*) FROM shop.sales.o") == [(3,)]


def test_other_statements_are_the_servers(delta_connect: SparkSession) -> None:
    spark = delta_connect
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW delta_of_nothing AS SELECT 1 AS delta")
    assert spark.sql("SELECT delta, ':x' FROM delta_of_nothing WHERE delta = ?", args=[1]).collect() == [Row(1, ":x")]
    with pytest.raises(AnalysisException, match="delta_nope"):
        spark.sql("DELETE FROM delta_nope WHERE a = 1")
    spark.catalog.dropTempView("delta_of_nothing")
    assert rows(spark, "BEGIN DECLARE delta INT DEFAULT 3; SELECT delta; END") == [(3,)]
