"""Evaluation over Arrow: encodings, nested columns, nulls, and data that does not fit."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import And, Column, Comparison, Literal, Not, Opaque, Or
from pyspark_delta.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    StructField,
    StructType,
)

SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("d", DOUBLE),
        StructField("f", FLOAT),
        StructField("s", STRING),
        StructField("dt", DATE),
        StructField("ts", TIMESTAMP),
        StructField("dec", DecimalType(10, 2)),
        StructField("st", StructType((StructField("x", INTEGER),))),
    )
)
NAN = float("nan")


def outcome(text: str, **columns: pa.Array) -> list[bool | None]:
    return evaluate(parse_predicate(text, SCHEMA), pa.table(columns)).to_pylist()


def test_nan_is_equal_to_itself_and_above_everything() -> None:
    d = pa.array([NAN, float("inf"), -0.0, None])
    assert outcome("d > 1", d=d) == [True, True, False, None]
    assert outcome("d = 'NaN'", d=d) == [True, False, False, None]
    assert outcome("d < 'NaN'", d=d) == [False, True, True, None]
    assert outcome("d <= 'NaN'", d=d) == [True, True, True, None]
    assert outcome("d >= 'Infinity'", d=d) == [True, True, False, None]
    assert outcome("d = 0", d=d) == [False, False, True, None]
    assert outcome("d IN (0, 'NaN')", d=d) == [True, False, True, None]
    assert outcome("isnan(d)", d=d) == [True, False, False, False]
    assert outcome("d = f", d=d, f=pa.array([NAN, 1.0, 0.0, 1.0], pa.float32())) == [True, False, True, None]


def test_three_valued_logic() -> None:
    unknown, true, false = Opaque("?"), Literal(True, BOOLEAN), Literal(False, BOOLEAN)
    data = pa.table({"i": [1, 2]})
    for expression, expected in (
        (unknown, None),
        (Not(unknown), None),
        (And((unknown, true)), None),
        (And((unknown, false)), False),
        (Or((unknown, true)), True),
        (Or((unknown, false)), None),
        (Comparison("<=>", unknown, true), False),
    ):
        assert evaluate(expression, data).to_pylist() == [expected, expected]


def test_a_null_in_a_list_makes_a_miss_unknown() -> None:
    i = pa.array([1, 2, None], pa.int32())
    assert outcome("i IN (1, NULL)", i=i) == [True, None, None]
    assert outcome("i NOT IN (1, NULL)", i=i) == [False, None, None]
    assert outcome("i IN (NULL)", i=i) == [None, None, None]


@pytest.mark.parametrize(
    "arrow", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_strings_in_any_encoding_compare_by_their_bytes(arrow: pa.DataType) -> None:
    s = (
        pa.array(["\uffff", "\U00010000", "a", None, "a"]).cast(arrow)
        if arrow != pa.string_view()
        else pa.array(["\uffff", "\U00010000", "a", None, "a"], arrow)
    )
    assert outcome("s > '\uffff'", s=s) == [False, True, False, None, False]
    assert outcome("s LIKE 'a%'", s=s) == [False, False, True, None, True]
    assert outcome("s IS NULL", s=s) == [False, False, False, True, False]


def test_a_dictionary_is_evaluated_once_per_value() -> None:
    days = pa.array([date(2024, 1, 1), None, date(2024, 2, 1), date(2024, 1, 1)])
    encoded = days.dictionary_encode()
    for text in ("dt = '2024-01-01'", "dt IS NULL", "NOT (dt = '2024-01-01')", "dt IS NULL OR dt > '2024-01-15'"):
        assert outcome(text, dt=encoded) == outcome(text, dt=days)
    other = pa.array(["a", "b", "a", "a"]).dictionary_encode()
    assert outcome("dt = '2024-01-01' AND s = 'a'", dt=encoded, s=other) == [True, False, False, True]
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), pa.array(["a", None]))
    assert outcome("s IS NULL", s=with_null) == [False, True, True, False]


def test_fields_of_a_null_struct_are_null() -> None:
    st = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())]))
    assert outcome("st.x = 1", st=st) == [True, None, None]
    assert outcome("st.x IS NULL", st=st) == [False, True, True]
    assert outcome("st IS NULL", st=st) == [False, True, False]


def test_times_and_decimals_of_other_units_are_converted() -> None:
    ts = pa.array([0, 1_704_067_200_000_000_000], pa.timestamp("ns", "Europe/Berlin"))
    assert outcome("ts = '2024-01-01'", ts=ts) == [False, True]
    dec = pa.array([Decimal("1.5"), None], pa.decimal128(5, 1))
    assert outcome("dec = 1.50", dec=dec) == [True, None]
    assert outcome("dec = 0.1D", dec=pa.array([Decimal("0.10")], pa.decimal128(10, 2))) == [True]


def test_tables_batches_and_struct_arrays_give_the_same() -> None:
    table = pa.table({"i": pa.chunked_array([pa.array([1], pa.int32()), pa.array([2, None], pa.int32())])})
    expression = parse_predicate("i > 1", SCHEMA)
    batch = table.combine_chunks().to_batches()[0]
    for data in (table, batch, batch.to_struct_array()):
        assert evaluate(expression, data).to_pylist() == [False, True, None]
    assert evaluate(expression, table.slice(0, 0)).to_pylist() == []


def test_data_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(InvalidPredicateError, match="no column 'i'"):
        outcome("i = 1", x=pa.array([1]))
    with pytest.raises(InvalidPredicateError, match=r"no column 'st\.x'"):
        outcome("st.x = 1", st=pa.array([{"y": 1}]))
    with pytest.raises(InvalidPredicateError, match="expected integer"):
        outcome("i = 1", i=pa.array([[1]]))
    with pytest.raises(InvalidPredicateError, match="overflow"):
        outcome("i + 1 > 0", i=pa.array([2**31 - 1], pa.int32()))
    with pytest.raises(InvalidPredicateError, match="not a condition"):
        evaluate(Column(("i",), INTEGER), pa.table({"i": [1]}))
