"""Queries over tables by DuckDB and Polars."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta import Table, sql
from pyspark_delta.errors import (
    DeltaError,
    InvalidOperationError,
    InvalidOptionError,
    MissingDependencyError,
    SqlSyntaxError,
    TableNotFoundError,
    VersionNotFoundError,
)

Run = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT k, count(*), sum(id) AS s FROM orders GROUP BY k ORDER BY k", [(1, 2, 3), (2, 1, 3)]),
        ("SELECT o.id FROM orders AS o WHERE o.s = 'a'", [(1,)]),
        ("SELECT orders.id FROM orders WHERE `s` = 'a'", [(1,)]),
        ("SELECT count(*) FROM orders VERSION AS OF 0", [(0,)]),
        ("SELECT a.id FROM orders a JOIN orders b ON a.id = b.k ORDER BY a.id", [(1,), (1,), (2,)]),
        ("WITH orders AS (SELECT * FROM orders WHERE k = 2) SELECT id FROM orders", [(3,)]),
        ("SELECT id FROM (SELECT * FROM orders) q WHERE id IN (SELECT k FROM orders) ORDER BY id", [(1,), (2,)]),
        ("TABLE orders VERSION AS OF 0", []),
        ("VALUES (1, 'it''s'), (2, 'b')", [(1, "it's"), (2, "b")]),
        ("SELECT id + 1 FROM orders ORDER BY id DESC LIMIT 1", [(4,)]),
        ("SELECT col1 FROM VALUES (1, 2)", [(1,)]),
        ("SELECT v.col2, w.x FROM (VALUES (1, 2)) v JOIN VALUES (3) AS w(x) ON true", [(2, 3)]),
    ],
)
def test_query_has_its_rows(orders: Run, text: str, rows: list[tuple[Any, ...]], engine: str) -> None:
    assert [tuple(row.values()) for row in orders(text, engine=engine)] == rows


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("text", "args", "rows"),
    [
        ("SELECT id FROM IDENTIFIER(?) WHERE id > ? ORDER BY id", ["orders", 1], [(2,), (3,)]),
        ("SELECT count(*) FROM IDENTIFIER(:t) VERSION AS OF 0", {"t": "orders"}, [(0,)]),
        ("SELECT o.id FROM IDENTIFIER(:t) o JOIN IDENTIFIER(:t) p ON o.id = p.k AND p.id = 3", {"t": "orders"}, [(2,)]),
        ("SELECT orders.id FROM IDENTIFIER('o' || :rest) WHERE id = 1", {"rest": "rders"}, [(1,)]),
        ("SELECT IDENTIFIER(:c) AS c FROM orders WHERE IDENTIFIER(:c) = 3", {"c": "orders.id"}, [(3,)]),
        ("WITH a AS (SELECT 7 AS x) SELECT x FROM IDENTIFIER('`a`')", None, [(7,)]),
        ("SELECT 'IDENTIFIER(1)' AS identifier", None, [("IDENTIFIER(1)",)]),
    ],
)
def test_identifier_holds_a_name(orders: Run, text: str, args: Any, rows: list[tuple[Any, ...]], engine: str) -> None:
    assert [tuple(row.values()) for row in orders(text, engine=engine, args=args)] == rows


def test_identifier_holds_a_path(orders: Run, tmp_path: Path) -> None:
    Table.create(tmp_path / "a `b", "id INT").append([{"id": 5}])
    name = f"delta.`{tmp_path}/a ``b`"
    assert orders("SELECT id FROM IDENTIFIER(:t)", args={"t": name}) == [{"id": 5}]
    assert orders("SELECT count(*) AS n FROM IDENTIFIER(:t) VERSION AS OF 0", args={"t": name}) == [{"n": 0}]
    orders("INSERT INTO IDENTIFIER(:t) SELECT id + 1 FROM IDENTIFIER(:t)", args={"t": name})
    assert orders("SELECT max(id) AS m FROM IDENTIFIER(:t)", args={"t": name}) == [{"m": 6}]


@pytest.mark.parametrize(
    ("value", "error_class", "match"),
    [
        (None, "NOT_A_CONSTANT_STRING.NULL", "it is null. Give a name as a string"),
        (3, "NOT_A_CONSTANT_STRING.WRONG_TYPE", "it is no string"),
        (True, "NOT_A_CONSTANT_STRING.WRONG_TYPE", "it is no string"),
        ("", "PARSE_SYNTAX_ERROR", "expected a name. Give"),
        ("a..b", "PARSE_SYNTAX_ERROR", "expected a name after a . Give"),
        ("a b", "PARSE_SYNTAX_ERROR", "near 'b'"),
        ("orders WHERE id = 1", "PARSE_SYNTAX_ERROR", "near 'WHERE'"),
    ],
)
def test_identifier_without_a_name_is_refused(orders: Run, value: object, error_class: str, match: str) -> None:
    with pytest.raises(InvalidOperationError, match=re.escape(match)) as refused:
        orders("SELECT * FROM IDENTIFIER(:t)", args={"t": value})
    assert refused.value.error_class == error_class


@pytest.mark.parametrize(
    ("inner", "error_class"),
    [("id", "NOT_CONSTANT"), ("concat('a', id)", "NOT_CONSTANT"), ("'a' || NULL", "NULL"), ("1.5", "WRONG_TYPE")],
)
def test_identifier_of_no_constant_string_is_refused(orders: Run, inner: str, error_class: str) -> None:
    with pytest.raises(InvalidOperationError) as refused:
        orders(f"SELECT * FROM IDENTIFIER({inner})")
    assert refused.value.error_class == f"NOT_A_CONSTANT_STRING.{error_class}"


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("l.b.c", 3), ("t.l.b.c", 3), ("a.t.l.b.c", 3), ("l.b.e.f", 5), ("b.c", 9), ("a.t.b.c", 9), ("A.T.n", 1)],
)
def test_a_dotted_name_is_of_a_member_unless_it_begins_with_the_table(
    orders: Run, name: str, value: int, engine: str
) -> None:
    orders("CREATE TABLE a.t (n INT, l STRUCT<b: STRUCT<c: INT, e: STRUCT<f: INT>>>, b STRUCT<c: INT>)")
    values = "1, named_struct('b', named_struct('c', 3, 'e', named_struct('f', 5))), named_struct('c', 9)"
    orders(f"INSERT INTO a.t VALUES ({values})")
    assert orders(f"SELECT {name} AS v FROM a.t WHERE {name} = {value}", engine=engine) == [{"v": value}]


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_the_change_feed_is_a_table_function(orders: Run, tmp_path: Path, engine: str) -> None:
    orders("CREATE TABLE fed (id BIGINT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    orders("INSERT INTO fed VALUES (1), (2)")
    orders("DELETE FROM fed WHERE id = 1")
    for call, kinds in {
        "table_changes('fed', 1)": [("delete", 1), ("insert", 1), ("insert", 2)],
        "table_changes('fed', 1, :last)": [("insert", 1), ("insert", 2)],
        f"TABLE_CHANGES_BY_PATH('{tmp_path}/fed', 2)": [("delete", 1)],
        "table_changes('fed', '2001-01-01', null)": [("delete", 1), ("insert", 1), ("insert", 2)],
    }.items():
        text = f"SELECT c._change_type AS k, c.id AS i FROM {call} AS c JOIN orders ON orders.id = c.id ORDER BY k, i"
        found = orders(text, engine=engine, args={"last": 1})
        assert [tuple(row.values()) for row in found] == kinds, call


def test_a_path_may_select_a_version(orders: Run, tmp_path: Path) -> None:
    path = tmp_path / "orders"
    [newest] = Table.open(str(path)).history(1)
    time = newest["timestamp"]
    for suffix, count in (("@v0", 0), (f"@{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03}", 3)):
        assert orders(f"SELECT count(*) AS n FROM delta.`{path}{suffix}`") == [{"n": count}], suffix


def test_the_time_of_a_version_may_be_computed(orders: Run, tmp_path: Path) -> None:
    [*_, created] = Table.open(tmp_path / "orders").history()
    last = int(created["timestamp"].timestamp() * 1000) + 1
    for time in (f"timestamp_millis({last})", f"timestamp_millis({last + 3_600_000}) - INTERVAL 1 HOUR"):
        assert orders(f"SELECT count(*) AS n FROM orders TIMESTAMP AS OF {time} AS o") == [{"n": 0}], time
    with pytest.raises(DeltaError, match="before"):
        orders("SELECT * FROM orders TIMESTAMP AS OF now() - INTERVAL 1 DAY")


def test_columns_have_sparks_names_and_types(orders: Run, tmp_path: Path) -> None:
    found = sql("SELECT count(*), sum(id), id + 1, s FROM orders GROUP BY id, s", tmp_path)
    assert found.schema.names == ["count(1)", "sum(id)", "(id + 1)", "s"]
    assert [str(field.type) for field in found.schema][:3] == ["int64", "int64", "int64"]
    assert sql("VALUES (1, 2)").schema.names == ["col1", "col2"]


def test_a_table_is_named_by_its_path_and_columns_by_the_whole_name(orders: Run, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/orders`"
    assert sql(f"SELECT {name}.id FROM {name} WHERE k = 2").to_pylist() == [{"id": 3}]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT * FROM nope", TableNotFoundError, "nope"),
        ("SELECT nope FROM orders", InvalidOperationError, "nope"),
        ("SELECT * FROM orders VERSION AS OF 9", VersionNotFoundError, "9"),
        ("SELECT * FROM orders TIMESTAMP AS OF soundex('x')", InvalidOperationError, "soundex.* Give a literal"),
        ("SELECT * FROM orders TIMESTAMP AS OF CAST(NULL AS TIMESTAMP)", InvalidOperationError, "is NULL"),
        ("SELECT * FROM orders TIMESTAMP AS OF timestamp_seconds(999999999999)", InvalidOperationError, "1 to 9999"),
        ("SELECT * FROM orders VERSION AS OF 1 + 1", InvalidOperationError, "must have a number"),
        ("SELECT (1", InvalidOperationError, "expected \\)"),
        ("SELECT * FROM read_csv('/etc/passwd')", InvalidOperationError, "disabled"),
        ("SELECT * FROM `../orders`", InvalidOperationError, "not the name of a table"),
        ("SELECT * FROM table_changes('orders', 1 + 1)", SqlSyntaxError, "expected"),
        ("SELECT * FROM table_changes('orders', k)", InvalidOptionError, "are constants"),
        ("SELECT * FROM table_changes('orders')", InvalidOptionError, "the first version or time"),
        ("SELECT * FROM a.b.c", InvalidOperationError, "no catalog of that name is connected"),
        ("CREATE VIEW v AS SELECT 1", InvalidOperationError, "'CREATE VIEW v ...' is not supported without Spark"),
        (" -- nothing", InvalidOperationError, "no statement"),
    ],
)
def test_what_cannot_be_run_says_why(orders: Run, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        orders(text, engine="duckdb")


def test_variables_of_python_are_no_tables(orders: Run) -> None:
    secret = sql("SELECT 1")
    with pytest.raises(TableNotFoundError):
        orders("SELECT * FROM secret")
    assert secret.num_rows == 1


def test_without_an_engine_the_error_names_both(orders: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match="pip install duckdb, or pip install polars"):
        orders("SELECT 1")


def test_an_unknown_engine_is_an_error(orders: Run) -> None:
    with pytest.raises(InvalidOptionError, match="'duckdb', 'polars' or None"):
        orders("SELECT 1", engine="spark")
