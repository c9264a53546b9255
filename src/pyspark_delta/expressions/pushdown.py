"""Conditions that other libraries push into a read, as expressions: only what means exactly the same here.

Other libraries compare strings byte by byte, so a column with a collation, or with padding, is not compared. Constants
have the type of the column; decimals may differ in precision and scale, because they compare by value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.literals import NotExactError
from pyspark_delta.expressions.name_resolution import column_of, is_collated, is_padded
from pyspark_delta.expressions.tree import Column, Expression, In, Literal, StartsWith
from pyspark_delta.schema.arrow import from_arrow, to_arrow
from pyspark_delta.schema.types import BOOLEAN, STRING, DecimalType, StructField, StructType


def column(path: Sequence[str], schema: StructType) -> Column | None:
    """Return the column or nested field with exactly these names; None if it is not compared byte by byte."""
    fields: list[StructField] = []
    level: Any = schema
    for name in path:
        found = level.find(name) if isinstance(level, StructType) else None
        if found is None or found.name != name:
            return None
        fields.append(found)
        level = found.type
    return None if not fields or is_collated(fields) or is_padded(fields) else column_of(fields)


def condition(path: Sequence[str], schema: StructType) -> Column | None:
    """Return a boolean column, which is a condition by itself."""
    found = column(path, schema)
    return found if found is not None and found.type == BOOLEAN else None


def constant(value: pa.Scalar) -> Literal | None:
    """Return an Arrow value as a constant; None if it is null, NaN, or not a value of a Delta type."""
    try:
        data_type = from_arrow(value.type)
        python = value.cast(to_arrow(data_type)).as_py()
    except (SchemaMismatchError, pa.ArrowException, ValueError, OverflowError):
        return None
    if python is None or (isinstance(python, float) and math.isnan(python)):
        return None
    if getattr(python, "tzinfo", None) is not None:
        python = python.astimezone(UTC)
    return Literal(python, data_type)


def comparison(op: str, left: Column, right: Literal) -> Expression | None:
    """Return the comparison of a column with a constant; None if the types differ."""
    if not coercion.is_comparable(left.type) or not _is_same(left, right):
        return None
    try:
        return coercion.compare(op, left, right, UTC)
    except NotExactError:
        return None


def membership(operand: Column, values: Sequence[Literal | None]) -> Expression | None:
    """Return `operand IN (values)`, unknown for a null operand; None for values of other types, and for nulls."""
    found = [value for value in values if value is not None and value.type == operand.type]
    if not found or len(found) < len(values) or not coercion.is_comparable(operand.type):
        return None
    return In(operand, tuple(found))


def prefix(operand: Column, text: Literal) -> Expression | None:
    """Return the condition that a string begins with a text."""
    if operand.type != STRING or text.type != STRING:
        return None
    return StartsWith(operand, text.value)


def _is_same(left: Column, right: Literal) -> bool:
    return left.type == right.type or (isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType))
