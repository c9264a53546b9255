"""How values are printed: one line a row, whatever they hold."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pyspark_delta.cli.output import cell, jsonable, print_facts, print_json, print_json_lines, print_rows


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (1, "1"),
        (1.5, "1.5"),
        ("plain", "plain"),
        ("tab\tline\nback\\slash\r", "tab\\tline\\nback\\\\slash\\r"),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02 03:04:05+00:00"),
        (date(2024, 1, 2), "2024-01-02"),
        (Decimal("1E+3"), "1E+3"),
        ([1, None], "[1,null]"),
        ({"a": "\t"}, '{"a":"\\t"}'),
        (b"\xff\x00", "/wA="),
    ],
)
def test_a_value_is_one_line(value: Any, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (Decimal("1E+3"), "1000"),
        (Decimal("12345678901234567890123456789012345.678"), "12345678901234567890123456789012345.678"),
        (b"ab", "YWI="),
        (datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02T00:00:00+00:00"),
        (timedelta(days=1, microseconds=1), "1 day, 0:00:00.000001"),
        ({1: {"x": b""}}, {"1": {"x": ""}}),
        (("a", {3, 1}), ["a", [1, 3]]),
        (9007199254740993, 9007199254740993),
        ("lone \udcff surrogate", "lone \\udcff surrogate"),
    ],
)
def test_a_value_in_the_types_of_json(value: Any, plain: Any) -> None:
    assert jsonable(value) == plain


def test_rows_in_a_pipe_are_separated_by_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("a", "b"), [(1, "x\ty"), (None, True)])
    assert capsys.readouterr().out == "a\tb\n1\tx\\ty\n\ttrue\n"


def test_facts_in_a_pipe_are_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"name": None, "size": 3})
    assert capsys.readouterr().out == "name\t\nsize\t3\n"


def test_json_is_one_document_and_json_lines_are_many(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1, float("nan")]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, "NaN"]}
    print_json_lines([{"a": "x\ny"}, {"a": None}])
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": "x\ny"}, {"a": None}]
