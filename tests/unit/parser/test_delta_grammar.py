"""Delta's own grammar: every statement by its value, every beginning of one, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.sql_corpus import CASES, NOT_DELTAS, REFUSED, Case

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, SqlSyntaxError
from pyspark_delta.parser import parse
from pyspark_delta.parser.statements import AddConstraint, DescribeHistory, Optimize, Restore, Vacuum
from pyspark_delta.parser.tokens import Kind, line_and_column, tokenize
from pyspark_delta.parser.values import SqlText, TableName, TablePath, TimestampAsOf, VersionAsOf

T = TableName(("t",))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_statement_has_its_value(case: Case) -> None:
    assert parse(case.text) == case.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_a_beginning_is_an_error_at_its_end_or_a_statement_that_is_listed(case: Case) -> None:
    """Spark judges a beginning that does not say yet whose statement it is."""
    outcomes = {}
    for token in tokenize(case.text)[:-2]:
        beginning = case.text[: token.end]
        try:
            outcomes[beginning] = "statement" if parse(beginning) is not None else "Spark's"
        except SqlSyntaxError as error:
            outcomes[beginning] = f"{error.line}:{error.position}"
    assert tuple(text for text, found in outcomes.items() if found == "statement") == case.legal
    errors = {text: found for text, found in outcomes.items() if ":" in found}
    assert errors == {text: "{}:{}".format(*line_and_column(text, len(text))) for text in errors}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_statement_names_the_place_and_what_was_expected(text: str) -> None:
    place, expected = REFUSED[text]
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    assert (caught.value.position, expected in caught.value.message) == (place, True), caught.value


@pytest.mark.parametrize("text", NOT_DELTAS)
def test_other_statements_are_left_to_spark(text: str) -> None:
    assert parse(text) is None


def test_error_shows_the_line_with_a_marker() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse("VACUUM t\n  RETAIN seven HOURS\n  DRY RUN")
    assert str(caught.value) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'seven': expected a number of hours after t RETAIN. "
        "SQLSTATE: 42601 (line 2, pos 9)\n\n== SQL ==\nVACUUM t\n  RETAIN seven HOURS\n---------^^^^^\n  DRY RUN"
    )


def test_texts_know_their_place_in_the_statement() -> None:
    text = "ALTER TABLE main.t ADD CONSTRAINT c CHECK (  a > 1 -- positive\n )"
    found = parse(text)
    assert isinstance(found, AddConstraint)
    assert text[found.condition.start :].startswith(found.condition.text + " --")
    assert isinstance(found.table, TableName)
    assert text[found.table.start : found.table.end] == "main.t"


@pytest.mark.parametrize(
    ("text", "arguments", "value"),
    [
        ("VACUUM :p RETAIN :h HOURS", {"p": "/a'b", "h": 7}, Vacuum(TablePath("/a'b"), retain_hours=7)),
        ("VACUUM ? RETAIN ? HOURS", ["/p", Decimal("1.5")], Vacuum(TablePath("/p"), retain_hours=Decimal("1.5"))),
        ("DESCRIBE HISTORY t LIMIT :n", {"n": 3}, DescribeHistory(T, 3)),
        ("RESTORE t VERSION AS OF :v", {"v": 2}, Restore(T, VersionAsOf(2))),
        (
            "RESTORE t TIMESTAMP AS OF :d",
            {"d": date(2026, 1, 2)},
            Restore(T, TimestampAsOf(datetime(2026, 1, 2, tzinfo=UTC))),
        ),
        ("VACUUM IDENTIFIER(:t)", {"t": "a.`b.c`"}, Vacuum(TableName(("a", "b.c")))),
    ],
)
def test_arguments_take_the_place_of_literals(text: str, arguments: Any, value: object) -> None:
    assert parse(text, arguments) == value


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("x' OR '1'='1\\", r"'x\' OR \'1\'=\'1\\'"),
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "-3"),
        (1.5, "1.5D"),
        (float("nan"), "DOUBLE('nan')"),
        (Decimal("1.50"), "1.50BD"),
        (b"\x01\xff", "X'01ff'"),
        (date(2026, 1, 2), "DATE'2026-01-02'"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "TIMESTAMP'2026-01-02 03:04:00Z'"),
        (datetime(2026, 1, 2, 3, 4), "TIMESTAMP_NTZ'2026-01-02 03:04:00'"),
        ([1, "b"], "array(1, 'b')"),
        ({"k": [True]}, "map('k', array(TRUE))"),
    ],
)
def test_argument_in_a_predicate_is_a_literal(value: object, literal: str) -> None:
    assert parse("OPTIMIZE t WHERE a = :x AND s:x = b", {"x": value}) == Optimize(
        T, where=SqlText(f"a = {literal} AND s:x = b")
    )


@pytest.mark.parametrize(
    ("text", "arguments"), [("VACUUM t RETAIN :h HOURS", {}), ("VACUUM ?", None), ("VACUUM ?", {"x": 1})]
)
def test_parameter_without_an_argument_is_an_error(text: str, arguments: Any) -> None:
    with pytest.raises(InvalidOperationError, match="UNBOUND_SQL_PARAMETER"):
        parse(text, arguments)


def test_argument_without_a_literal_is_an_error_only_where_the_statement_is_deltas() -> None:
    with pytest.raises(InvalidOptionError, match="type set has no SQL literal"):
        parse("OPTIMIZE t WHERE a = :x", {"x": {1}})
    assert parse("CREATE TABLE clone AS SELECT :x", {"x": [1]}) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (r"'it''s' r'a\n' 'a\n' 'a\'''b' R\"\"", ["it's", "a\\n", "a\n", "a''b", ""]),
        (r"'\u0041\101\%\_\0'", ["AA\\%\\_\0"]),
        ('"a""b" "it\'s"', ['a"b', "it's"]),
        ("'line -- no comment'", ["line -- no comment"]),
    ],
)
def test_strings_lose_quotes_and_escapes(text: str, values: list[str]) -> None:
    text = text.replace('\\"', '"')
    assert [token.value for token in tokenize(text) if token.kind is Kind.STRING] == values


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("a.1x 1.5 .5 1e5 10L 1.5D 2BD", ["a", ".", "1x", "1.5", ".5", "1e5", "10L", "1.5D", "2BD"]),
        ("a<=>b||c->d::e|>f", ["a", "<=>", "b", "||", "c", "->", "d", "::", "e", "|>", "f"]),
        ("v:x :y (a):z ?", ["v", ":", "x", ":y", "(", "a", ")", ":", "z", "?"]),
        ("/*+ hint */ x -- y\\\n still\nz", ["/*+", "hint", "*/", "x", "z"]),
        ("größe täg1", ["größe", "täg1"]),
    ],
)
def test_tokens(text: str, texts: list[str]) -> None:
    assert [token.text for token in tokenize(text)[:-1]] == texts
