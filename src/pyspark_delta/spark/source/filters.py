"""Converts Spark's data source filters to the predicate tree.

Spark evaluates every filter again on the rows it receives, so a filter without a counterpart is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal, DefaultContext
from typing import Any

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
    StringStartsWith,
)

from pyspark_delta.expressions import tree
from pyspark_delta.schema.types import DataType, DecimalType, PrimitiveType, StructType

_OPERATORS: dict[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "<=>",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_VALUES: dict[str, type] = {
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": bool,
    "string": str,
    "binary": bytes,
    "date": date,
    "timestamp": datetime,
    "timestamp_ntz": datetime,
}


def to_expressions(filters: Iterable[Filter], schema: StructType) -> tuple[tree.Expression, ...]:
    """Return the filters that have a counterpart in the predicate tree, bound to the logical schema."""
    found = (_convert(item, schema) for item in filters)
    return tuple(expression for expression in found if expression is not None)


def _convert(item: Filter, schema: StructType) -> tree.Expression | None:
    if isinstance(item, Not):
        operand = _convert(item.child, schema)
        return None if operand is None else tree.Not(operand)
    path: tuple[str, ...] = getattr(item, "attribute", ())
    column = _column(schema, path)
    if column is None:
        return None
    match item:
        case IsNull():
            return tree.IsNull(column)
        case IsNotNull():
            return tree.Not(tree.IsNull(column))
        case StringStartsWith(_, str(prefix)) if column.type == PrimitiveType("string"):
            return tree.StartsWith(column, prefix)
        case In(_, values):
            literals = [_literal(value, column.type) for value in values]
            known = tuple(literal for literal in literals if literal is not None)
            return tree.In(column, known) if len(known) == len(literals) else None
        case EqualTo() | EqualNullSafe() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            literal = _literal(item.value, column.type)
            return None if literal is None else tree.Comparison(_OPERATORS[type(item)], column, literal)
        case _:
            return None


def _column(schema: StructType, path: tuple[str, ...]) -> tree.Column | None:
    """Return the column or nested field of a path, spelled as in the schema; None if there is none."""
    names: list[str] = []
    found: DataType = schema
    for name in path:
        field = found.find(name) if isinstance(found, StructType) else None
        if field is None:
            return None
        names.append(field.name)
        found = field.type
    return tree.Column(tuple(names), found) if names else None


def _literal(value: Any, data_type: DataType) -> tree.Literal | None:
    """Return a constant in the type of the column; None for NaN, and if Spark may compare in another type."""
    if value is None:
        return tree.Literal(None, data_type)
    if isinstance(data_type, DecimalType):
        return tree.Literal(value, data_type) if _fits(value, data_type) else None
    expected = _VALUES.get(data_type.name) if isinstance(data_type, PrimitiveType) else None
    if expected is None or type(value) is not expected:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime) and (value.tzinfo is None) != (data_type == PrimitiveType("timestamp_ntz")):
        return None
    return tree.Literal(value, data_type)


def _fits(value: Any, data_type: DecimalType) -> bool:
    """Return True if Spark compares with exactly this value.

    PySpark rounds constants to the precision of Python's default decimal context, 28 digits.
    """
    if not isinstance(value, Decimal) or not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()
    if len(digits) >= DefaultContext.prec or not isinstance(exponent, int):
        return False
    return -exponent <= data_type.scale and value.adjusted() < data_type.precision - data_type.scale
