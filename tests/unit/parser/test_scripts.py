"""Delta's own statements inside of scripts, and common table expressions inside of conditions."""

from __future__ import annotations

import pytest

from pyspark_delta.errors import SqlSyntaxError
from pyspark_delta.parser.common_tables import cte_names, with_ctes
from pyspark_delta.parser.scripts import is_script, with_placeholders
from pyspark_delta.parser.statements import DescribeHistory, Optimize, Undo, Vacuum
from pyspark_delta.parser.values import SqlText

SCRIPT = """BEGIN
  DECLARE optimize INT DEFAULT 0;
  VACUUM delta.`/a;b`
    RETAIN 1 HOURS;
  IF CASE WHEN optimize = 0 THEN optimize ELSE vacuum END = 0 THEN
    OPTIMIZE t WHERE a = ';';
  END IF;
  restore: BEGIN UNDO t; END restore;
  DESCRIBE HISTORY t LIMIT :n;
END"""
REWRITTEN = """BEGIN
  DECLARE optimize INT DEFAULT 0;
  CALL pyspark_delta_statement_0()
;
  IF CASE WHEN optimize = 0 THEN optimize ELSE vacuum END = 0 THEN
    CALL pyspark_delta_statement_1();
  END IF;
  restore: BEGIN CALL pyspark_delta_statement_2(); END restore;
  CALL pyspark_delta_statement_3();
END"""


def test_scripts_call_the_statements_that_spark_does_not_know() -> None:
    text, statements = with_placeholders(SCRIPT, lambda _: True, {"n": 3})
    assert text == REWRITTEN
    assert [type(one) for one in statements.values()] == [Vacuum, Optimize, Undo, DescribeHistory]
    assert with_placeholders(SCRIPT, lambda one: isinstance(one, Undo), {"n": 3})[1].keys() == {
        "pyspark_delta_statement_0"
    }
    with pytest.raises(SqlSyntaxError, match="line 2, pos 18"):
        with_placeholders("BEGIN\n  VACUUM t RETAIN x HOURS; END", lambda _: True)


def test_a_script_begins_with_begin() -> None:
    assert [is_script(text) for text in ("begin end", " l : BEGIN END", "SELECT 1", "BEGINNING")] == [
        True,
        True,
        False,
        False,
    ]


def test_subqueries_see_common_table_expressions() -> None:
    ctes = SqlText("WITH a AS (SELECT ',' AS x), b (y) AS (TABLE a)")
    assert cte_names(ctes) == {"a", "b"}
    text = "i IN (SELECT (SELECT max(x) FROM a) FROM b) AND (j + (1)) > 2 OR EXISTS (WITH c AS (TABLE a) TABLE c)"
    assert with_ctes(text, ctes) == (
        f"i IN ({ctes.text} SELECT (SELECT max(x) FROM a) FROM b) AND (j + (1)) > 2 OR "
        f"EXISTS ({ctes.text}, c AS (TABLE a) TABLE c)"
    )
