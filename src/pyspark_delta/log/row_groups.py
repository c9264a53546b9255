"""Select row groups of a checkpoint that may hold a file that a predicate keeps, by statistics of the Parquet footer.

A predicate on files is evaluated over the ranges of its columns within a row group: the outcome is the set of truth
values that some row may have. A row group is skipped if neither true nor unknown is among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from pyspark_delta.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
)


@dataclass(frozen=True, slots=True)
class Range:
    """Facts of a column within a row group: bounds (None: unknown), and whether nulls and values may occur."""

    low: Any = None
    high: Any = None
    has_nulls: bool = True
    has_values: bool = True


class Outcomes(NamedTuple):
    """The truth values that some row may have."""

    true: bool
    false: bool
    unknown: bool


Ranges: TypeAlias = Mapping[tuple[str, ...], Range]

_ANY = Outcomes(True, True, True)
_ANYTHING = Range()


def may_keep(predicate: Expression, ranges: Ranges) -> bool:
    """True if some row of a row group may be kept: its outcome may be true, or unknown."""
    outcomes = _outcomes(predicate, ranges)
    return outcomes.true or outcomes.unknown


def _outcomes(expression: Expression, ranges: Ranges) -> Outcomes:
    match expression:
        case And(operands):
            parts = [_outcomes(o, ranges) for o in operands]
            false = any(p.false for p in parts)
            return Outcomes(
                all(p.true for p in parts),
                false,
                any(p.unknown for p in parts) and all(p.true or p.unknown for p in parts),
            )
        case Or(operands):
            parts = [_outcomes(o, ranges) for o in operands]
            true = any(p.true for p in parts)
            return Outcomes(
                true,
                all(p.false for p in parts),
                any(p.unknown for p in parts) and all(p.false or p.unknown for p in parts),
            )
        case Not(operand):
            inner = _outcomes(operand, ranges)
            return Outcomes(inner.false, inner.true, inner.unknown)
        case IsNull(Column(path, _)):
            known = ranges.get(path, _ANYTHING)
            return Outcomes(known.has_nulls, known.has_values, False)
        case Comparison(op, left, right) if op in _COMPARISONS:
            return _compared(op, _range_of(left, ranges), _range_of(right, ranges))
        case In(Column(path, _), values):
            return _listed(ranges.get(path, _ANYTHING), [v.value for v in values])
        case StartsWith(Column(path, _), prefix):
            return _prefixed(ranges.get(path, _ANYTHING), prefix)
        case Literal(bool() as value, _):
            return Outcomes(value, not value, False)
    return _ANY


def _range_of(operand: Expression, ranges: Ranges) -> Range:
    match operand:
        case Column(path, _):
            return ranges.get(path, _ANYTHING)
        case Literal(None, _):
            return Range(None, None, True, False)
        case Literal(value, _):
            return Range(value, value, False, True)
    return _ANYTHING


def _compared(op: str, left: Range, right: Range) -> Outcomes:
    unknown = left.has_nulls or right.has_nulls
    if not (left.has_values and right.has_values):
        return Outcomes(False, False, True)
    true, false = _COMPARISONS[op](left, right)
    return Outcomes(true, false, unknown)


def _less(left: Range, right: Range, *, or_equal: bool) -> tuple[bool, bool]:
    """Return whether some pair may be `<` (`<=`), and whether some pair may not be."""
    true = _may(left.low, right.high, lambda a, b: a <= b if or_equal else a < b)
    false = _may(left.high, right.low, lambda a, b: a > b if or_equal else a >= b)
    return true, false


def _equal(left: Range, right: Range) -> tuple[bool, bool]:
    true = _may(left.low, right.high, lambda a, b: a <= b) and _may(right.low, left.high, lambda a, b: a <= b)
    single = left.low is not None and right.low is not None and _surely_single(left) and _surely_single(right)
    return true, not (single and true)


def _surely_single(known: Range) -> bool:
    return bool(known.high is not None and known.low == known.high)


def _may(a: Any, b: Any, test: Callable[[Any, Any], bool]) -> bool:
    if a is None or b is None:
        return True
    try:
        return bool(test(a, b))
    except TypeError:  # a writer's statistics of another type
        return True


_COMPARISONS: dict[str, Callable[[Range, Range], tuple[bool, bool]]] = {
    "<": lambda left, right: _less(left, right, or_equal=False),
    "<=": lambda left, right: _less(left, right, or_equal=True),
    ">": lambda left, right: _less(right, left, or_equal=False),
    ">=": lambda left, right: _less(right, left, or_equal=True),
    "=": _equal,
    "<>": lambda left, right: _equal(left, right)[::-1],
}


def _listed(known: Range, values: list[Any]) -> Outcomes:
    if not known.has_values:
        return Outcomes(False, False, True)
    true = any(
        _may(known.low, v, lambda a, b: a <= b) and _may(v, known.high, lambda a, b: a <= b)
        for v in values
        if v is not None
    )
    return Outcomes(true, True, known.has_nulls or None in values)


def _prefixed(known: Range, prefix: str) -> Outcomes:
    if not known.has_values:
        return Outcomes(False, False, True)
    true = _may(known.high, prefix, lambda high, p: high >= p) and _may(
        known.low, prefix, lambda low, p: low[: len(p)] <= p
    )
    return Outcomes(true, True, known.has_nulls)
