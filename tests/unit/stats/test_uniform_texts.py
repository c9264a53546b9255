"""Statistics that are cut out of texts of one shape must be those that a JSON parser finds."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.types import DATE, DOUBLE, LONG, STRING, DecimalType
from pyspark_delta.stats import parse, uniform_texts
from pyspark_delta.stats.parse import parse_stats

LEAVES = (
    Column(("numRecords",), LONG),
    Column(("minValues", "s", "x"), LONG),
    Column(("minValues", "name"), STRING),
    Column(("maxValues", "price"), DOUBLE),
    Column(("maxValues", "s", "day"), DATE),
    Column(("nullCount", "s", "x"), LONG),
)


def stats(number: int, **changed: Any) -> dict[str, Any]:
    """The statistics of one file."""
    values = {"s": {"x": number, "day": "2024-01-31"}, "name": f"näme {number}", "price": number / 4}
    nulls = {"s": {"x": 0, "day": number % 3}, "name": 1, "price": 0}
    return {"numRecords": number, "minValues": values, "maxValues": values, "nullCount": nulls, **changed}


def spelled(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def both(texts: list[str | None], leaves: tuple[Column, ...] = LEAVES) -> pa.RecordBatch:
    """The statistics, which must be the same without the short cut."""
    array = pa.array(texts, pa.string())
    found = parse_stats(array, leaves)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "slice_uniform", lambda *_: None)
        assert parse_stats(array, leaves).to_pylist() == found.to_pylist()
    return found


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets nothing be parsed as JSON."""

    def refuse(*_: Any) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(parse, "_read_block", refuse)
    monkeypatch.setattr(parse, "_parse_singly", refuse)


@pytest.mark.usefixtures("no_parser")
@pytest.mark.parametrize("before", [0, 7])
def test_c414_texts_of_one_shape_are_not_parsed(before: int) -> None:
    texts = [spelled(stats(number)) for number in range(-5, 1000)]
    array = pa.array(["{}"] * before + texts, pa.string()).slice(before)
    for row, number in zip(parse_stats(array, LEAVES).to_pylist(), range(-5, 1000), strict=True):
        expected = stats(number)
        assert row["numRecords"] == number
        assert row["minValues"] == {"s": {"x": number}, "name": expected["minValues"]["name"]}
        assert row["maxValues"]["price"] == number / 4
        assert str(row["maxValues"]["s"]["day"]) == "2024-01-31"
        assert row["nullCount"]["s"]["x"] == 0


@pytest.mark.usefixtures("no_parser")
def test_rows_without_a_text_are_passed_over() -> None:
    texts = [None if number % 3 == 0 else spelled(stats(number)) for number in range(999)]
    found = parse_stats(pa.array(texts, pa.string()), LEAVES).column("numRecords").to_pylist()
    assert found == [None if number % 3 == 0 else number for number in range(999)]


@pytest.mark.usefixtures("no_parser")
def test_more_leaves_than_it_pays_for_are_parsed() -> None:
    texts = pa.array([spelled(stats(number)) for number in range(999)], pa.string())
    with pytest.raises(AssertionError, match="parsed"):
        parse_stats(texts, (*LEAVES, Column(("maxValues", "name"), STRING)))


def test_the_parser_is_left_to_what_it_is_for() -> None:
    texts = [spelled(stats(number)) for number in range(400)]
    assert both(texts, (Column(("minValues", "absent"), LONG),)).column(0).null_count == 0
    assert both(texts, (Column(("minValues", "price"), DecimalType(10, 2)),)).num_rows == 400
    assert both(texts, (Column(("minValues", "name"), LONG), Column(("minValues", "price"), STRING))).num_rows == 400
    assert both(texts[:100]).num_rows == 100


_NAMES = st.sampled_from(["a", "}", "{", '"', "\\", ',"x":{', '},"maxValues":{"name":"', ":", "[", "é", "", "a:{b}"])
_CHANGES = st.sampled_from(
    [
        {"numRecords": None},
        {"numRecords": 1.5},
        {"numRecords": "7"},
        {"numRecords": [1, 2]},
        {"minValues": {}},
        {"minValues": {"name": "n", "s": {"x": 1, "day": "2024-01-31"}, "price": 1}},
        {"minValues": {"s": {"day": "2024-01-31", "x": 1}, "name": "n", "price": 1}},
        {"minValues": {"s": {"x": 1}, "day": "2024-01-31", "name": "n", "price": 1}},
        {"minValues": {"t": {"x": 1, "day": "2024-01-31"}, "name": "n", "price": 1}},
        {"minValues": {"s": {"x": 1, "day": "2024-01-31", "name": "n"}, "price": 1}},
        {"maxValues": {"s": {"x": 1, "day": "2024-01-31"}, "name": None, "price": 1}},
        {"maxValues": {"s": {"x": 1, "day": "2024-01-31"}, "name": "n", "price": {"x": 1}}},
        {"nullCount": {"s": {"x": 0, "day": 0}, "name": {"price": 1}}},
        {"nullCount": 3},
        {"tightBounds": True},
        {"tightBounds": "{}"},
    ]
)


@settings(max_examples=300, deadline=None)
@given(names=st.lists(_NAMES, min_size=2, max_size=6), change=st.none() | _CHANGES, at=st.integers(0, 5))
def test_other_texts_among_them_change_nothing(names: list[str], change: dict[str, Any] | None, at: int) -> None:
    rows = [stats(number) for number in range(len(names))]
    for row, name in zip(rows, names, strict=True):
        row["maxValues"] = {**row["maxValues"], "name": name}
    if change is not None:
        at %= len(rows)
        rows[at] = {**rows[at], **change}
        if at % 2:
            rows[at] = dict(reversed(rows[at].items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform_texts, "_FEWEST", 1)
        both([spelled(row) for row in rows])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"a"}',
        '{"a":}',
        '{"a":1',
        '{"a":1}}',
        '{"a":{"b":1}',
        '{"a":{}}',
        '{"a": 1}',
        '{"a":[1]}',
        '{"a":1,}',
        '{"a":1,"a":2}',
        '{"a":"x"',
        '{"a":"x",}',
        '{"a":"x"}}',
        '{"a":"x":1}',
    ],
)
def test_there_is_no_shape_in_other_texts(text: str) -> None:
    assert uniform_texts._shape(text.encode()) is None


def test_c414_a_bracket_too_many_makes_a_text_malformed() -> None:
    texts = [spelled(stats(number)) for number in range(400)]
    texts[7] = texts[7].replace('},"maxValues"', '}},"maxValues"')
    found = both(texts).column("numRecords").to_pylist()
    assert found == [None if number == 7 else number for number in range(400)]
