"""Comparisons over Arrow values in Spark's order: NaN equals NaN and is above every number; -0.0 equals 0.0."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

_Value: TypeAlias = Any  # pa.Array | pa.Scalar
_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(op: str, left: _Value, right: _Value) -> _Value:
    """Return the comparison of two values of one type; null if a side is null, except for `<=>`."""
    if op == "<=>":
        found = compare("=", left, right)
        equal = pc.fill_null(found.cast(pa.bool_()) if found.type == pa.null() else found, False)
        return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        return _compare_floats(op, left, right)
    return _KERNELS[op](left, right)


def _compare_floats(op: str, left: _Value, right: _Value) -> _Value:
    """Compare in a total order, NaN above everything: `>` and `>=` negate `<=` and `<`, which are false for NaN."""
    if isinstance(right, pa.Scalar) and right.is_valid and not math.isnan(right.as_py()):
        if op == ">":
            return pc.invert(pc.less_equal(left, right))
        return pc.invert(pc.less(left, right)) if op == ">=" else _KERNELS[op](left, right)
    match op:
        case "=":
            return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))
        case "<":
            return pc.or_(pc.less(left, right), pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
        case ">":
            return _compare_floats("<", right, left)
        case "<>" | ">=" | "<=":
            return pc.invert(_compare_floats({"<>": "=", ">=": "<", "<=": ">"}[op], left, right))
    raise AssertionError(op)
