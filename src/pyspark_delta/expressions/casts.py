"""Casts that a text asks for: those that keep every value, and those that are an error for values that do not fit."""

from __future__ import annotations

from datetime import UTC, tzinfo

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.functions.zones import zone_name
from pyspark_delta.expressions.literals import INTEGRAL_BITS, NotExactError, is_utc
from pyspark_delta.expressions.tree import Call, Cast, Expression, Literal, type_of
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

_PLAIN_SCALE = 6  # up to it, Java writes decimals without an exponent
_TO_TEXT = (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, *INTEGRAL_BITS)
_FROM_TEXT = (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, DOUBLE, FLOAT, *INTEGRAL_BITS)


# --------------------------------------------------------------------------------------------------------- binding
def cast_as_asked(operand: Expression, target: DataType, zone: tzinfo, *, keep: bool = False) -> Expression:
    """Return a cast that a text asks for. With `keep`, only casts that keep every value are bound.

    Raises NotExactError for casts whose results may differ between Arrow and Spark.
    """
    source = type_of(operand)
    if isinstance(operand, Literal) or source == target or coercion.can_cast(source, target, zone):
        return coercion.cast(operand, target, zone)
    if not keep:
        if not is_utc(zone):
            found = _in_zone(operand, target, zone)
            if found is not None:
                return found
        elif _is_checked(source, target):
            return Cast(operand, target)
        if TIMESTAMP not in (source, target) and _is_checked(source, target):
            return Cast(operand, target)
    raise NotExactError(
        f"Arrow does not compute CAST from {source} to {target} exactly as Spark does{_reason(source, target)}"
    )


def _reason(source: DataType, target: DataType) -> str:
    if source in (FLOAT, DOUBLE) and (target == STRING or isinstance(target, DecimalType)):
        return ", because the digits depend on the release of Java; a cast of a decimal or integer works"
    return ""


def _in_zone(operand: Expression, target: DataType, zone: tzinfo) -> Expression | None:
    """Return a cast between instants and local times of a zone, by way of UTC."""
    source, name = type_of(operand), Literal(zone_name(zone), STRING)
    if source == TIMESTAMP and target in (DATE, TIMESTAMP_NTZ, STRING):
        return cast_as_asked(Call("from_utc_timestamp", (operand, name), TIMESTAMP), target, UTC)
    if source in (DATE, TIMESTAMP_NTZ) and target == TIMESTAMP:
        return Call("to_utc_timestamp", (cast_as_asked(operand, TIMESTAMP, UTC), name), TIMESTAMP)
    if TIMESTAMP in (source, target) and STRING not in (source, target) and _is_checked(source, target):
        return Cast(operand, target)  # numbers of seconds
    return None


def _is_checked(source: DataType, target: DataType) -> bool:
    if target == STRING:
        return source in _TO_TEXT or (isinstance(source, DecimalType) and source.scale <= _PLAIN_SCALE)
    if source == STRING:
        return target in _FROM_TEXT or isinstance(target, DecimalType)
    if source == TIMESTAMP or target == TIMESTAMP:
        return (source in INTEGRAL_BITS and target == TIMESTAMP) or (target in INTEGRAL_BITS or target == DOUBLE)
    if source == BOOLEAN:
        return target in INTEGRAL_BITS or target in (FLOAT, DOUBLE)
    if source in INTEGRAL_BITS:
        return target in (BOOLEAN, FLOAT) or target in INTEGRAL_BITS or isinstance(target, DecimalType)
    if source in (FLOAT, DOUBLE):
        return target in (BOOLEAN, FLOAT) or target in INTEGRAL_BITS
    if isinstance(source, DecimalType):
        return target in INTEGRAL_BITS or isinstance(target, DecimalType)
    return False
