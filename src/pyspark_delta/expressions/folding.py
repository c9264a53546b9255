"""Calls of constants are computed once: files are skipped by constants, not by calls."""

from __future__ import annotations

import pyarrow as pa

from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.tree import Call, Expression, Literal
from pyspark_delta.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ

_ONE_ROW = pa.record_batch([pa.nulls(1)], names=["_"])


def folded(expression: Expression) -> Expression:
    """Return a date or time computed from constants as a constant; any other expression unchanged.

    A computation that fails, or whose result Python has no value for, is left for the rows.
    """
    if not isinstance(expression, Call) or expression.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return expression
    if not all(isinstance(argument, Literal) for argument in expression.arguments):
        return expression
    try:
        return Literal(compute(expression, _ONE_ROW)[0].as_py(), expression.type)
    except (pa.ArrowException, ArithmeticError, ValueError):
        return expression
