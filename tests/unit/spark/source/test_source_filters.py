"""Spark's filters as predicates; what has no exact form is left to Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from pyspark_delta.expressions import tree
from pyspark_delta.schema import types as t
from pyspark_delta.spark.source.filters import to_expressions

INNER = t.StructType((t.StructField("x", t.LONG),))
SCHEMA = t.StructType(
    (
        t.StructField("i", t.INTEGER),
        t.StructField("Name", t.STRING),
        t.StructField("f", t.FLOAT),
        t.StructField("d", t.DATE),
        t.StructField("ts", t.TIMESTAMP),
        t.StructField("ntz", t.TIMESTAMP_NTZ),
        t.StructField("dec", t.DecimalType(6, 2)),
        t.StructField("wide", t.DecimalType(38, 10)),
        t.StructField("b", t.BOOLEAN),
        t.StructField("s", INNER),
        t.StructField("v", t.VARIANT),
    )
)
INT, NAME = tree.Column(("i",), t.INTEGER), tree.Column(("Name",), t.STRING)
AWARE, NAIVE = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("given", "predicate"),
    [
        (EqualTo(("i",), 3), tree.Comparison("=", INT, tree.Literal(3, t.INTEGER))),
        (EqualNullSafe(("i",), None), tree.Comparison("<=>", INT, tree.Literal(None, t.INTEGER))),
        (GreaterThan(("i",), 3), tree.Comparison(">", INT, tree.Literal(3, t.INTEGER))),
        (GreaterThanOrEqual(("i",), 3), tree.Comparison(">=", INT, tree.Literal(3, t.INTEGER))),
        (LessThan(("i",), 3), tree.Comparison("<", INT, tree.Literal(3, t.INTEGER))),
        (LessThanOrEqual(("i",), 3), tree.Comparison("<=", INT, tree.Literal(3, t.INTEGER))),
        (In(("i",), (1, 2)), tree.In(INT, (tree.Literal(1, t.INTEGER), tree.Literal(2, t.INTEGER)))),
        (IsNull(("name",)), tree.IsNull(NAME)),
        (IsNotNull(("name",)), tree.Not(tree.IsNull(NAME))),
        (Not(IsNull(("i",))), tree.Not(tree.IsNull(INT))),
        (StringStartsWith(("NAME",), "ab"), tree.StartsWith(NAME, "ab")),
        (IsNull(("s", "x")), tree.IsNull(tree.Column(("s", "x"), t.LONG))),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Filter) else "",
)
def test_filters_become_predicates(given: Filter, predicate: tree.Expression) -> None:
    assert to_expressions([given], SCHEMA) == (predicate,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("d", date(2024, 1, 1)),
        ("ts", AWARE),
        ("ntz", NAIVE),
        ("dec", Decimal("1.5")),
        ("wide", Decimal("1E+26")),
        ("f", 0.5),
        ("b", True),
    ],
)
def test_constants_take_the_type_of_the_column(name: str, value: object) -> None:
    (found,) = to_expressions([EqualTo((name,), value)], SCHEMA)
    field = SCHEMA.find(name)
    assert field is not None
    assert found == tree.Comparison("=", tree.Column((name,), field.type), tree.Literal(value, field.type))


@pytest.mark.parametrize(
    "given",
    [
        EqualTo(("missing",), 1),
        EqualTo(("s", "missing"), 1),
        EqualTo(("i", "x"), 1),
        EqualTo(("i",), "3"),
        EqualTo(("i",), True),
        EqualTo(("b",), 1),
        EqualTo(("d",), AWARE),
        EqualTo(("ts",), NAIVE),
        EqualTo(("ntz",), AWARE),
        EqualTo(("dec",), Decimal("1.005")),
        EqualTo(("dec",), Decimal("12345")),
        EqualTo(("dec",), Decimal("Infinity")),
        EqualTo(("wide",), Decimal("1E+28")),
        EqualTo(("wide",), Decimal("123456789012345678901234567.5")),  # perhaps rounded, as 28 digits may be
        EqualTo(("dec",), 1),
        EqualTo(("f",), float("nan")),
        EqualTo(("v",), 1),
        In(("i",), (1, "x")),
        StringContains(("name",), "a"),
        StringEndsWith(("name",), "a"),
        StringStartsWith(("i",), "a"),
        Not(StringContains(("name",), "a")),
    ],
    ids=str,
)
def test_what_has_no_exact_form_is_left_out(given: Filter) -> None:
    assert to_expressions([given], SCHEMA) == ()
