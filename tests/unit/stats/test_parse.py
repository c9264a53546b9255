"""Statistics from JSON text to typed columns: the fast way, and the way around what is out of the ordinary."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from pyspark_delta.stats import parse
from pyspark_delta.stats.parse import parse_stats


def one(text: str | None, data_type: DataType, *path: str) -> Any:
    """The value at `minValues.x`, or at another path, of one text; with neighbours it must be the same."""
    leaf = Column(path or ("minValues", "x"), data_type)
    values = []
    for texts in ([text], ["", text, None], ['{"minValues":{"x":null}}', text]):
        batch = parse_stats(pa.array(texts, pa.string()), [leaf])
        row = batch.to_pylist()[texts.index(text)]
        for part in leaf.path:
            row = row[part]
        values.append(row)
    assert repr(values[0]) == repr(values[1]) == repr(values[2])
    return values[0]


def minimum(value: str) -> str:
    return f'{{"numRecords":3,"minValues":{{"x":{value}}}}}'


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        ("5", LONG, 5),
        ("-9223372036854775808", LONG, -(2**63)),
        ("9223372036854775808", LONG, None),
        ("1.0", LONG, 1),
        ("1.5", LONG, None),
        ("9007199254740991.0", LONG, 2**53 - 1),
        ("9007199254740993.0", LONG, None),  # which may have been read as ...992
        ('"5"', LONG, None),
        ("true", LONG, None),
        ("127", BYTE, 127),
        ("128", BYTE, None),
        ("1e400", DOUBLE, math.inf),
        ("2", DOUBLE, 2.0),
        ('"NaN"', DOUBLE, math.nan),
        ('"-Infinity"', FLOAT, -math.inf),
        ("NaN", DOUBLE, math.nan),
        ('"é\\n\\u0041"', STRING, "é\nA"),
        ("7", STRING, None),
        ('"a\\ud83d"', STRING, None),
        ('"\\ud83d\\ude00"', STRING, "\U0001f600"),
        ('"\\udc00"', DATE, None),
        ('"2024-02-29"', DATE, date(2024, 2, 29)),
        ('"2024-02-30"', DATE, None),
        ('"2024-01-01T10:00:00.000Z"', TIMESTAMP, datetime(2024, 1, 1, 10, tzinfo=UTC)),
        ('"2024-01-01T10:00:00.000+02:00"', TIMESTAMP, datetime(2024, 1, 1, 8, tzinfo=UTC)),
        ('"2024-01-01T10:00:00.000"', TIMESTAMP, None),
        ('"2024-01-01T10:00:00.123456"', TIMESTAMP_NTZ, datetime(2024, 1, 1, 10, 0, 0, 123456)),
        ('"yesterday"', TIMESTAMP, None),
        ("12345678901234567890.123456789", DecimalType(38, 9), Decimal("12345678901234567890.123456789")),
        ("1.23", DecimalType(10, 1), None),
        ("1e3", DecimalType(10, 2), Decimal("1000.00")),
        ("null", LONG, None),
        ("{}", LONG, None),
        ("[1]", LONG, None),
    ],
)
def test_c415_values(value: str, data_type: DataType, expected: Any) -> None:
    found = one(minimum(value), data_type)
    assert repr(found) == repr(expected) or found == expected


@pytest.mark.parametrize("text", ["", None, "{", "null", "[]", "7", '{"minValues":5}', "{}{}", "{}x", " ", "\x00"])
def test_c414_malformed_texts_count_as_missing(text: str | None) -> None:
    assert one(text, LONG) is None


def test_c414_half_a_surrogate_pair_makes_its_own_value_missing() -> None:
    text = '{"numRecords":3,"\\ud83d":1,"minValues":{"x":"a\\ud83d","y":"b"},"nullCount":{"x":2}}'
    assert one(text, STRING) is None
    assert one(text, STRING, "minValues", "y") == "b"
    assert one(text, LONG, "nullCount", "x") == 2


def test_duplicate_keys_take_the_last_value() -> None:
    assert one('{"minValues":{"x":1,"x":2}}', LONG) == 2


def test_nested_and_unknown_fields() -> None:
    text = '{"minValues":{"a":{"b":{"c":4}},"z":[1,{"q":2}]},"other":{"deep":[[]]},"numRecords":9,"tightBounds":false}'
    assert one(text, LONG, "minValues", "a", "b", "c") == 4
    assert one(text, LONG, "numRecords") == 9
    assert one(text, LONG, "nullCount", "a") is None


def test_slices_are_read_at_their_place() -> None:
    texts = pa.array([minimum(str(n)) for n in range(10)]).slice(3, 4)
    batch = parse_stats(texts, [Column(("minValues", "x"), LONG)])
    assert batch.column(0).field(0).to_pylist() == [3, 4, 5, 6]


def test_no_text_at_all() -> None:
    assert parse_stats(pa.array([], pa.string()), [Column(("numRecords",), LONG)]).num_rows == 0
    assert parse_stats(pa.nulls(3, pa.string()), [Column(("numRecords",), LONG)]).column(0).null_count == 3


_VALUES = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(), st.text(), st.booleans(), st.just("NaN"))


@given(
    rows=st.lists(
        st.one_of(
            st.none(), st.text(), st.builds(lambda x, y: json.dumps({"minValues": {"x": x, "y": y}}), _VALUES, _VALUES)
        )
    )
)
def test_both_ways_agree(rows: list[str | None]) -> None:
    texts = pa.array(
        [r for r in rows if r is None or "\ud800" not in r.encode("utf-8", "replace").decode()], pa.string()
    )
    leaves = [Column(("minValues", "x"), LONG), Column(("minValues", "y"), STRING), Column(("numRecords",), LONG)]
    singly = parse.assemble(parse.leaf_tree(leaves), parse._parse_singly(texts, leaves), len(texts))
    assert parse_stats(texts, leaves).equals(singly)
