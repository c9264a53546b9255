"""Comparisons between different types, typed as in Spark (ANSI) and without rounding.

A column compared with a constant of another type becomes a comparison in the column's own type if that is exact (`int >
5.5` becomes `int > 5`), so that statistics and row groups can be compared without casts.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from pyspark_delta.expressions.literals import (
    EXACT,
    INTEGRAL_BITS,
    MAX_DECIMAL_PRECISION,
    NotExactError,
    cast_literal,
    decimal_type_of,
    fits_integral,
    is_utc,
)
from pyspark_delta.expressions.tree import Cast, Column, Comparison, Expression, IsNull, Literal, Not, type_of
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    PrimitiveType,
)

COMPARABLE: frozenset[DataType] = frozenset(
    [*INTEGRAL_BITS, FLOAT, DOUBLE, STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ]
)
MIRRORED = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGRAL_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_EXACT_IN_DOUBLE = 1 << 53
_TIMES = (DATE, TIMESTAMP_NTZ, TIMESTAMP)  # each type can be cast to those after it


def is_comparable(data_type: DataType) -> bool:
    """True if values of the type are ordered, so that comparisons and min/max are supported here."""
    return isinstance(data_type, DecimalType) or data_type in COMPARABLE


def compare(op: str, left: Expression, right: Expression, zone: tzinfo) -> Expression:
    """Return the comparison with both sides in one type. Raises NotExactError if Spark's result is not certain."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return compare(MIRRORED[op], right, left, zone)
    if isinstance(right, Literal):
        if right.value is None:
            return _compare_null(op, left)
        if not isinstance(left, Literal):
            return _compare_constant(op, left, right, zone)
    common = common_type(type_of(left), type_of(right))
    return Comparison(op, cast(left, common, zone), cast(right, common, zone))


def _compare_null(op: str, operand: Expression) -> Expression:
    return IsNull(operand) if op == "<=>" else Literal(None, BOOLEAN)


def _compare_constant(op: str, operand: Expression, constant: Literal, zone: tzinfo) -> Expression:
    source = type_of(operand)
    if isinstance(operand, Cast):
        inner = _compare_uncast(op, operand, constant, zone)
        if inner is not None:
            return inner
    if source == VOID:
        return Literal(False if op == "<=>" else None, BOOLEAN)
    if source == constant.type and is_comparable(source):
        return Comparison(op, operand, constant)
    if constant.type == STRING:
        constant = cast_literal(constant, _type_for_text(source), zone)
        _require_same_value(constant, source, zone)
        if constant.type == source:
            return Comparison(op, operand, constant)
    if isinstance(source, DecimalType) and constant.type in INTEGRAL_BITS:
        exact = Decimal(constant.value)  # typed by its own digits, as Spark does
        constant = Literal(exact, decimal_type_of(exact))
    common = common_type(source, constant.type)
    if _is_exact(source) and _is_number(constant.type):
        decided = _compare_number(op, operand, constant, common)
        if decided is not None:
            return decided
    if source == FLOAT:
        narrow = cast_literal(constant, FLOAT, zone)
        if narrow.value == constant.value or math.isnan(narrow.value):
            return Comparison(op, operand, narrow)
    if source in (DATE, TIMESTAMP_NTZ) and common in (TIMESTAMP, TIMESTAMP_NTZ):
        return _compare_time(op, operand, constant, common, zone)
    return Comparison(op, cast(operand, common, zone), cast_literal(constant, common, zone))


def _compare_uncast(op: str, operand: Cast, constant: Literal, zone: tzinfo) -> Expression | None:
    """Return the same comparison without a cast that only widens; None if the cast does more."""
    inner = type_of(operand.operand)
    try:
        if common_type(inner, operand.type) == operand.type:
            return compare(op, operand.operand, cast_literal(constant, operand.type, zone), zone)
    except NotExactError:
        pass
    return None


def _type_for_text(source: DataType) -> DataType:
    """Return the type in which a column is compared with a string constant: long, double, or the column's own."""
    if source in INTEGRAL_BITS:
        return LONG
    if source == FLOAT or isinstance(source, DecimalType):
        return DOUBLE
    if source == BINARY or not is_comparable(source):
        raise NotExactError(f"comparing a {source} column with a string is not supported")
    return source


def _require_same_value(constant: Literal, source: DataType, zone: tzinfo) -> None:
    """Check that a string also has this value in the column's own type, which Spark uses without ANSI."""
    if source in INTEGRAL_BITS:
        is_same = fits_integral(constant.value, source)
    elif source == FLOAT:
        narrow = cast_literal(constant, FLOAT, zone).value
        is_same = narrow == constant.value or math.isnan(narrow)
    else:
        return
    if not is_same:
        raise NotExactError(f"what a string that is not a {source} is compared as depends on the session")


def _is_exact(data_type: DataType) -> bool:
    return data_type in INTEGRAL_BITS or isinstance(data_type, DecimalType)


def _is_number(data_type: DataType) -> bool:
    return _is_exact(data_type) or data_type in (FLOAT, DOUBLE)


def common_type(left: DataType, right: DataType) -> DataType:
    """Return the type in which Spark compares the two. Raises NotExactError if it is unknown or unsupported here."""
    if left == right and is_comparable(left):
        return left
    if left in INTEGRAL_BITS and right in INTEGRAL_BITS:
        return max(left, right, key=lambda t: INTEGRAL_BITS[t])
    if _is_number(left) and _is_number(right):
        if FLOAT in (left, right) or DOUBLE in (left, right):
            return DOUBLE
        return _wider_decimal(as_decimal(left), as_decimal(right))
    if left in _TIMES and right in _TIMES:
        return max(left, right, key=_TIMES.index)
    raise NotExactError(f"comparing {left} with {right} is not supported")


def as_decimal(data_type: DataType) -> DecimalType:
    """Return the narrowest decimal type that holds all values of an exact number type."""
    if isinstance(data_type, DecimalType):
        return data_type
    return DecimalType(_INTEGRAL_DIGITS[INTEGRAL_BITS[data_type]], 0)


def _wider_decimal(left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision > MAX_DECIMAL_PRECISION:
        raise NotExactError(f"{left} and {right} have no common decimal type")
    return DecimalType(precision, scale)


def always(operand: Expression, outcome: bool) -> Expression:
    """Return a condition that is `outcome` if the operand is not null, and unknown if it is."""
    while isinstance(operand, Cast):  # supported casts never return null for a value
        operand = operand.operand
    return Comparison("=" if outcome else "<>", operand, operand)


def _decided(op: str, operand: Expression, outcome: bool) -> Expression:
    if op == "<=>":
        return Not(IsNull(operand)) if outcome else Literal(False, BOOLEAN)
    return always(operand, outcome)


def _compare_number(op: str, operand: Expression, constant: Literal, common: DataType) -> Expression | None:
    """Compare an integral or decimal operand with a number, in the operand's own type; None if that is inexact."""
    source, value = type_of(operand), constant.value
    if common == DOUBLE:
        # Spark compares as doubles: the same as comparing exactly while the operand, or the constant, is exact in one.
        bits = INTEGRAL_BITS.get(source)
        if bits is None or (bits == 64 and math.isfinite(value) and abs(value) >= _EXACT_IN_DOUBLE):
            return None
        if not math.isfinite(value):
            below = value > 0 or math.isnan(value)  # NaN is above every number
            return _decided(op, operand, _outcome(op, below))
    exact = Decimal(value)
    scale = source.scale if isinstance(source, DecimalType) else 0
    lower = math.floor(EXACT.scaleb(exact, scale))
    if not _holds(source, lower):
        return _decided(op, operand, _outcome(op, lower > 0))
    same = EXACT.compare(EXACT.scaleb(Decimal(lower), -scale), exact) == 0
    if not same:
        if op in ("=", "<=>", "<>"):
            return _decided(op, operand, op == "<>")
        op = {"<": "<=", ">=": ">"}.get(op, op)
    bound = EXACT.scaleb(Decimal(lower), -scale) if isinstance(source, DecimalType) else lower
    return Comparison(op, operand, Literal(bound, source))


def _outcome(op: str, below: bool) -> bool:
    """Return the result of a comparison if all values are below (or else above) the constant."""
    return op == "<>" or (op in ("<", "<=") if below else op in (">", ">="))


def _holds(source: DataType, unscaled: int) -> bool:
    if isinstance(source, DecimalType):
        return bool(abs(unscaled) < 10**source.precision)
    limit = 1 << (INTEGRAL_BITS[source] - 1)
    return -limit <= unscaled < limit


def _compare_time(op: str, operand: Expression, constant: Literal, common: DataType, zone: tzinfo) -> Expression:
    """Compare a date or zone-less timestamp with an instant, or a date with a zone-less timestamp, in its own type."""
    source = type_of(operand)
    target = cast_literal(constant, common, zone)
    if source == TIMESTAMP_NTZ:
        if not is_utc(zone):
            raise NotExactError("timestamp_ntz and timestamp have no common order where clocks are set back")
        return Comparison(op, operand, cast_literal(target, TIMESTAMP_NTZ, zone))
    day = cast_literal(target, DATE, zone)
    if cast_literal(day, common, zone) != target:
        _require_later(day, target, zone)
        if op in ("=", "<=>", "<>"):
            return _decided(op, operand, op == "<>")
        op = {"<": "<=", ">=": ">"}.get(op, op)
    return Comparison(op, operand, day)


def _require_later(day: Literal, target: Literal, zone: tzinfo) -> None:
    start = cast_literal(day, target.type, zone).value
    if not isinstance(start, datetime) or start > target.value:
        raise NotExactError("the day has no midnight in this time zone")


_LOSSLESS_TIMES = {(DATE, TIMESTAMP_NTZ), (TIMESTAMP_NTZ, DATE)}


def cast(operand: Expression, target: DataType, zone: tzinfo) -> Expression:
    """Return the operand cast to `target`; constants are folded.

    Raises NotExactError for casts that are not evaluated here.
    """
    if isinstance(operand, Literal):
        return cast_literal(operand, target, zone)
    source = type_of(operand)
    if source == target:
        return operand
    if not can_cast(source, target, zone):
        raise NotExactError(f"Arrow does not compute CAST from {source} to {target} exactly as Spark does")
    return Cast(operand, target)


def can_cast(source: DataType, target: DataType, zone: tzinfo) -> bool:
    """True if Arrow gives Spark's result for every value of the source type."""
    if source in INTEGRAL_BITS:
        bits = INTEGRAL_BITS[source]
        if target in INTEGRAL_BITS:
            return INTEGRAL_BITS[target] >= bits
        if isinstance(target, DecimalType):
            return target.precision - target.scale >= _INTEGRAL_DIGITS[bits]
        return target in (DOUBLE, STRING)
    if isinstance(source, DecimalType):
        if isinstance(target, DecimalType):
            return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale
        return target == DOUBLE
    if source == FLOAT:
        return target == DOUBLE
    if (source, target) in _LOSSLESS_TIMES:
        return True
    return source in _TIMES and target in _TIMES and is_utc(zone)


def is_monotone_cast(source: DataType, target: DataType) -> bool:
    """True if a cast keeps every value, and the order of values (never swaps two)."""
    if not can_cast(source, target, UTC):
        return False
    return target != STRING and isinstance(target, PrimitiveType | DecimalType) and is_comparable(source)


def column_or_cast(expression: Expression) -> Column | None:
    """Return the column inside a chain of casts, or None."""
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression if isinstance(expression, Column) else None
