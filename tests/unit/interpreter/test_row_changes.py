"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta import Table, sql
from pyspark_delta.errors import (
    CommitConflictError,
    ConstraintViolationError,
    InvalidOperationError,
    InvalidPredicateError,
)
from pyspark_delta.interpreter.queries import run_query

Run = Callable[..., list[dict[str, Any]]]
ALL = "SELECT * FROM orders ORDER BY id"


def row(number: int, k: int | None, s: str | None) -> dict[str, Any]:
    return {"id": number, "k": k, "s": s}


def test_values_are_computed_as_spark_does(orders: Run) -> None:
    assert orders(ALL) == [row(1, 1, "a"), row(2, 1, None), row(3, 2, "B")]


def test_nested_values_have_the_types_of_the_table(run: Run) -> None:
    run("CREATE TABLE t (a ARRAY<BIGINT>, m MAP<STRING, DATE>, s STRUCT<x: INT, y: ARRAY<STRING>>)")
    run(
        "INSERT INTO t VALUES (array(1, 1 + 1, NULL), map('k', DATE'2026-01-02'), named_struct('x', 1, 'y', array('')))"
    )
    run("INSERT INTO t VALUES (array(), NULL, struct(2, NULL))")
    assert run("SELECT * FROM t ORDER BY s.x") == [
        {"a": [1, 2, None], "m": [("k", date(2026, 1, 2))], "s": {"x": 1, "y": [""]}},
        {"a": [], "m": None, "s": {"x": 2, "y": None}},
    ]


def test_listed_columns_take_values_in_their_order(orders: Run) -> None:
    assert orders("INSERT INTO orders (s, id) VALUES ('x', 9)") == []
    assert orders(ALL)[-1] == row(9, None, "x")


def test_a_query_is_inserted_by_position(orders: Run) -> None:
    orders("INSERT INTO orders SELECT id + 10 AS s, k AS id, s AS k FROM orders WHERE k = 1")
    assert orders(ALL)[-2:] == [row(11, 1, "a"), row(12, 1, None)]


def test_by_name_a_query_is_inserted_by_name(orders: Run) -> None:
    orders("INSERT INTO orders BY NAME SELECT 'n' AS s, 7 AS id")
    assert orders(ALL)[-1] == row(7, None, "n")


def test_columns_without_a_value_get_their_default(run: Run) -> None:
    run("CREATE TABLE t (a INT, b INT DEFAULT 7) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    run("INSERT INTO t VALUES (1, DEFAULT)")
    assert run("SELECT * FROM t") == [{"a": 1, "b": 7}]


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("INSERT OVERWRITE orders VALUES (8, 1, 'z')", []),
        ("INSERT OVERWRITE orders PARTITION (k = 1) VALUES (8, 'z')", [row(3, 2, "B")]),
        ("INSERT INTO orders REPLACE WHERE orders.k = 1 SELECT 8, 1, 'z'", [row(3, 2, "B")]),
    ],
)
def test_replaced_rows(orders: Run, statement: str, kept: list[dict[str, Any]]) -> None:
    orders(statement)
    assert orders(ALL) == [*kept, row(8, 1, "z")]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO orders VALUES (1, 2)", "2 values are given for 3 columns: id, k, s"),
        ("INSERT INTO orders SELECT 1", "1 values are given for 3 columns"),
        ("INSERT INTO orders (id, ID) VALUES (1, 2)", "'id' is listed twice"),
        ("INSERT INTO orders (nope) VALUES (1)", "no column nope"),
        ("INSERT INTO orders VALUES (1, 99999999999, 's')", "cannot be stored in the column 'k'"),
        ("INSERT INTO orders VALUES (1, 1, soundex('s'))", "soundex"),
        ("DELETE FROM orders WHERE id IN (SELECT 1)", "(?i)subquer|select|condition"),
        ("WITH x AS (SELECT 1) DELETE FROM orders", "WITH is supported before queries"),
    ],
)
def test_a_statement_that_fails_changes_nothing(orders: Run, tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(InvalidOperationError, match=message):
        orders(statement)
    assert Table.open(tmp_path / "orders").version == 1


def test_rows_that_violate_a_constraint_are_refused(orders: Run) -> None:
    with pytest.raises(ConstraintViolationError):
        orders("INSERT INTO orders (k) VALUES (1)")


def test_delete_and_update_return_the_number_of_rows(orders: Run) -> None:
    assert orders("DELETE FROM orders AS o WHERE o.id = 1 AND `O`.k = 1") == [{"num_affected_rows": 1}]
    assert orders("UPDATE orders SET orders.s = concat(coalesce(orders.s, ''), '!'), k = 5 WHERE s IS NULL") == [
        {"num_affected_rows": 1}
    ]
    assert orders(ALL) == [row(2, 5, "!"), row(3, 2, "B")]


def test_a_path_qualifies_columns(orders: Run, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/orders`"
    assert sql(f"DELETE FROM {name} WHERE {name}.id > 1").to_pylist() == [{"num_affected_rows": 2}]


def test_an_alias_hides_the_name_of_the_table(orders: Run) -> None:
    with pytest.raises(InvalidPredicateError):
        orders("DELETE FROM orders AS o WHERE orders.id = 1")


def test_a_column_keeps_a_name_that_a_table_has_too(run: Run) -> None:
    run("CREATE TABLE t (t STRUCT<t: INT>, i INT)")
    run("INSERT INTO t VALUES (named_struct('t', 1), 1), (named_struct('t', 2), 2)")
    assert run("DELETE FROM t WHERE t.t.t = 2") == [{"num_affected_rows": 1}]


def test_partition_names_partition_columns(orders: Run) -> None:
    with pytest.raises(InvalidOperationError, match=r"NON_PARTITION_COLUMN.* 's'"):
        orders("INSERT OVERWRITE orders PARTITION (s = 'a') VALUES (1, 1)")


def test_members_of_structs_by_position_and_by_name(run: Run) -> None:
    """As in Spark."""
    run("CREATE TABLE t (i INT, s STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<c: INT>>, m MAP<STRING, STRUCT<d: INT>>)")
    nested = "ARRAY(STRUCT(3 AS x)) AS l, MAP('k', STRUCT(4 AS y)) AS m"
    run(f"INSERT INTO t SELECT 1, STRUCT(1 AS b, 2 AS a), {nested}")
    run("INSERT INTO t (s, i) SELECT STRUCT(1 AS b, 2 AS a), 2")
    run("INSERT INTO t BY NAME SELECT STRUCT(1 AS b, 2 AS a) AS s, 3 AS i")
    assert run("SELECT i, s FROM t ORDER BY i") == [
        {"i": 1, "s": {"a": 1, "b": 2}},
        {"i": 2, "s": {"a": 1, "b": 2}},
        {"i": 3, "s": {"a": 2, "b": 1}},
    ]
    assert run("SELECT l, m FROM t WHERE i = 1") == [{"l": [{"c": 3}], "m": [("k", {"d": 4})]}]
    with pytest.raises(InvalidOperationError, match="1 values are given for 2 columns: a, b"):
        run("INSERT INTO t (i, s) SELECT 4, STRUCT(1 AS b)")


def test_truncate_deletes_all_rows(orders: Run) -> None:
    assert orders("TRUNCATE TABLE orders") == []
    assert orders(ALL) == []
    (last,) = orders("DESCRIBE HISTORY orders LIMIT 1")
    assert (last["operation"], dict(last["operationParameters"])) == ("TRUNCATE", {})
    orders("TRUNCATE TABLE orders")
    assert orders("DESCRIBE HISTORY orders LIMIT 1") == [last]


def test_a_table_that_is_read_and_changed_by_another_writer_meanwhile_is_a_conflict(
    orders: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> Any:
        found = run_query(*arguments)
        Table.open(tmp_path / "orders").delete("id = 1")
        return found

    monkeypatch.setattr("pyspark_delta.interpreter.session.run_query", slow)
    with pytest.raises(CommitConflictError):
        orders("INSERT INTO orders SELECT id + 10, k, s FROM orders")
    assert Table.open(tmp_path / "orders").count() == 2


def test_merge_counts_rows_by_clause(orders: Run) -> None:
    merged = orders(
        """MERGE INTO orders USING (SELECT 1 AS id, 'm' AS s UNION ALL SELECT 2, 'd' UNION ALL SELECT 4, 'i') AS q
           ON orders.id = q.id
           WHEN MATCHED AND q.s = 'd' THEN DELETE
           WHEN MATCHED THEN UPDATE SET orders.s = q.s
           WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.id, q.s)
           WHEN NOT MATCHED BY SOURCE THEN UPDATE SET k = orders.k + 10"""
    )
    assert merged == [{"num_affected_rows": 4, "num_updated_rows": 2, "num_deleted_rows": 1, "num_inserted_rows": 1}]
    assert orders(ALL) == [row(1, 1, "m"), row(3, 12, "B"), row(4, None, "i")]


def test_merge_takes_a_version_of_a_table_as_its_source(orders: Run) -> None:
    orders("DELETE FROM orders WHERE id < 3")
    merged = orders("MERGE INTO orders t USING orders VERSION AS OF 1 s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert merged[0]["num_inserted_rows"] == 2
    assert len(orders(ALL)) == 3


def test_merge_with_schema_evolution_adds_columns(orders: Run) -> None:
    orders(
        "MERGE WITH SCHEMA EVOLUTION INTO orders USING (SELECT 5 AS id, 1 AS k, 'e' AS s, 2.5D AS more) q "
        "ON orders.id = q.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert orders(ALL)[-1] == {**row(5, 1, "e"), "more": 2.5}


def test_arguments_never_become_sql(orders: Run) -> None:
    assert orders("DELETE FROM orders WHERE s = :s", args={"s": "x' OR '1' = '1"}) == [{"num_affected_rows": 0}]
    assert orders("INSERT INTO orders VALUES (?, ?, ?)", args=[6, None, "it's \\"]) == []
    assert orders(ALL)[-1] == row(6, None, "it's \\")


@pytest.mark.parametrize("text", ["BEGIN TRANSACTION", "COMMIT", "ROLLBACK"])
def test_a_statement_is_a_commit_of_its_own(orders: Run, text: str) -> None:
    with pytest.raises(InvalidOperationError, match=r"use pyspark_delta\.Transaction"):
        orders(text)


def test_the_current_time_is_one_moment_for_a_statement(run: Run, tmp_path: Path) -> None:
    before = datetime.now(UTC)
    run("CREATE TABLE t (id INT, at TIMESTAMP, day DATE, made TIMESTAMP DEFAULT now())")
    run("INSERT INTO t VALUES (1, now(), current_date(), DEFAULT)")
    run("INSERT INTO t (id, at, day) VALUES (2, current_timestamp, curdate()), (3, now(), date_sub(current_date, 1))")
    run("INSERT INTO t (id, at, day) SELECT 4, current_timestamp(), current_date()")
    first, *two, last = run("SELECT at, made FROM t ORDER BY id")
    assert [row["at"] for row in two] == [row["made"] for row in two] == [two[0]["at"]] * 2
    assert before < first["at"] < two[0]["at"] < last["made"] < datetime.now(UTC)
    run("UPDATE t SET at = now() - INTERVAL 1 HOUR, made = current_timestamp() WHERE at <= now()")
    assert {row["made"] - row["at"] for row in run("SELECT * FROM t")} == {timedelta(hours=1)}
    run("MERGE INTO t USING (SELECT 1 AS i) ON t.id = i WHEN MATCHED THEN UPDATE SET at = now(), made = now()")
    assert run("SELECT count(*) AS n FROM t WHERE at = made") == [{"n": 1}]


def test_files_are_skipped_by_the_current_time(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t (at TIMESTAMP)")
    run("INSERT INTO t VALUES (TIMESTAMP'2020-01-01 00:00:00')")
    run("INSERT INTO t VALUES (now())")
    for file in Table.open(tmp_path / "t").files()["path"].to_pylist():
        (tmp_path / "t" / file).unlink()  # statistics say which files have the rows, so none is read
    assert run("DELETE FROM t WHERE at < now() - INTERVAL 7 DAYS") == [{"num_affected_rows": 1}]
    assert Table.open(tmp_path / "t").snapshot.num_files() == 1


def test_a_column_goes_before_a_function_without_brackets(run: Run) -> None:
    run("CREATE TABLE t (`current_date` DATE)")
    run("INSERT INTO t VALUES (DATE'2020-01-01')")
    with pytest.raises(InvalidOperationError, match=r"the column is `current_date` in backticks"):
        run("DELETE FROM t WHERE current_date < DATE'2021-01-01'")
    assert run("DELETE FROM t WHERE `current_date` < current_date()") == [{"num_affected_rows": 1}]
