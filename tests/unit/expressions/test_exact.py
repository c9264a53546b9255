"""Conditions and values that mean the same in every session of Spark, so that Arrow may compute them instead."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.exact import exact_condition, exact_value, names_of_table
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.schema.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    DataType,
    StructField,
    StructType,
)

INNER = StructType((StructField("x", INTEGER),))
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("small", BYTE),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("name", STRING),
        StructField("st", INNER),
        StructField("u", INNER),
        StructField("folded", STRING, metadata={"__COLLATIONS": {"folded": "spark.UTF8_LCASE"}}),
    )
)


def condition(text: str, alias: str | None = "t") -> str | None:
    bound = exact_condition(text, SCHEMA, names_of_table(SCHEMA, alias), "UTC")
    return None if bound is None else to_sql(bound)


def value(text: str, data_type: DataType) -> str | None:
    bound = exact_value(text, data_type, SCHEMA, names_of_table(SCHEMA, "t"), "UTC")
    return None if bound is None else to_sql(bound)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("id % 10 = 7", "(id % 10L) = 7L"),
        ("T.ID > 5 AND t.st.x IS NULL", "id > 5L AND st.x IS NULL"),
        ("((t.id % CAST(10 AS BIGINT)) = 7L)", "(id % 10L) = 7L"),
        ("id / 2 > 1", "(CAST(id AS DOUBLE) / 2.0D) > 1.0D"),
        ("upper(name) = 'A'", "upper(name) = 'A'"),
        ("small + id > d", "CAST((CAST(small AS BIGINT) + id) AS DOUBLE) > d"),
        ("f > 1.5", "f > CAST('1.5' AS FLOAT)"),
        ("name LIKE 'a%' OR name IN ('b', NULL)", "startswith(name, 'a') OR name IN ('b', NULL)"),
    ],
)
def test_conditions_that_mean_the_same_in_every_session(text: str, bound: str) -> None:
    assert condition(text) == bound


@pytest.mark.parametrize(
    "text",
    [
        "f + 1 > 2",  # in doubles, or in floats without ANSI
        "f > d",
        "id / 1.5 > 1",  # a quotient of decimals
        "id % d = 1",
        "soundex(name) = 'A'",
        "size(split(name, ',')) = 2",  # -1 for null, without ANSI
        "folded = 'a'",
        "other.id = 1",
        "missing = 1",
        "id +",
        "id",
        "id IN (SELECT 1)",
        "id = '1'",  # in the type of the column, or in BIGINT with ANSI
        "id IN (1, '02')",  # texts, without ANSI
        "name = 5",
    ],
)
def test_conditions_that_are_left_to_spark(text: str) -> None:
    assert condition(text) is None


def test_a_name_that_may_be_two_columns_is_left_to_spark() -> None:
    """`u.x` is a part of the column `u`, and might be a column of the table by its alias."""
    assert condition("u.x = 1", alias="t") == "u.x = 1"
    assert condition("u.x = 1", alias="u") is None
    assert condition("u.id = 1", alias="u") == "id = 1L"
    assert condition("t.id = 1", alias=None) is None


def test_values_are_brought_to_the_type_of_their_column() -> None:
    assert value("id + 1", LONG) == "(id + 1L)"
    assert value("5", LONG) == "5L"
    assert value("small", LONG) == "CAST(small AS BIGINT)"
    assert value("NULL", STRING) == "NULL"
    assert value("t.st", INNER) == "st"
    assert value("id", BYTE) == "CAST(id AS TINYINT)"
    assert value("d", LONG) is None
    assert value("name", LONG) is None
    assert value("300", BYTE) is None
    assert value("current_timestamp()", STRING) is None


@pytest.mark.parametrize(
    ("text", "data_type", "expected"),
    [
        ("-d", DOUBLE, [-0.0, 0.0, -2.5]),
        ("-f", FLOAT, [-0.0, 0.0, -2.5]),
        ("negative(d)", DOUBLE, [-0.0, 0.0, -2.5]),  # as Spark writes it
        ("negative(1.5BD)", DOUBLE, [-1.5] * 3),
        ("-0.0", DOUBLE, [0.0] * 3),  # a decimal, which has no negative zero
        ("-0.0D", DOUBLE, [-0.0] * 3),
        ("-0e0", DOUBLE, [-0.0] * 3),
        ("-1.5BD", DOUBLE, [-1.5] * 3),
        ("1.00000017881393432617187499999", FLOAT, [1.0000001192092896] * 3),  # rounded once, not to a double before
        ("16777217", FLOAT, [16777216.0] * 3),
    ],
)
def test_zero_has_a_sign_and_constants_are_rounded_once(text: str, data_type: DataType, expected: list[float]) -> None:
    rows = pa.RecordBatch.from_pydict({"d": pa.array([0.0, -0.0, 2.5]), "f": pa.array([0.0, -0.0, 2.5], pa.float32())})
    bound = exact_value(text, data_type, SCHEMA, names_of_table(SCHEMA, None), "UTC")
    assert bound is not None
    assert [str(one) for one in compute(bound, rows).to_pylist()] == [str(one) for one in expected]


def test_computed_values_have_a_row_for_each_row() -> None:
    rows = pa.RecordBatch.from_pydict({"id": pa.array([1, None, -7]), "st": pa.array([{"x": 1}, None, {"x": None}])})

    def computed(text: str, data_type: DataType) -> pa.Array:
        bound = exact_value(text, data_type, SCHEMA, names_of_table(SCHEMA, None), "UTC")
        assert bound is not None
        return compute(bound, rows)

    assert computed("id * 2", LONG).to_pylist() == [2, None, -14]
    assert computed("id % 3", LONG).to_pylist() == [1, None, -1]
    assert computed("'a'", STRING).to_pylist() == ["a"] * 3
    assert computed("NULL", LONG).equals(pa.nulls(3, pa.int64()))
    assert computed("st", INNER).to_pylist() == [{"x": 1}, None, {"x": None}]
    with pytest.raises(InvalidPredicateError, match="overflow"):
        computed("id * 9223372036854775807", LONG)
