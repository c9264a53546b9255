"""Functions and operators bound from SQL: only those that Arrow evaluates with exactly Spark's results."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from functools import cache
from typing import TypeAlias

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.literals import INTEGRAL_BITS, NotExactError, is_utc
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
)

Bind: TypeAlias = "Callable[[exp.Expression], Expression]"


@cache
def _operators() -> dict[type[exp.Expression], str]:
    return {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}


@cache
def _fields() -> dict[type[exp.Expression], str]:
    return {
        exp.Year: "year",
        exp.Quarter: "quarter",
        exp.Month: "month",
        exp.Day: "day",
        exp.DayOfMonth: "day",
        exp.Hour: "hour",
        exp.Minute: "minute",
    }


_TIME_FIELDS = ("hour", "minute")
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}


def bind_function(node: exp.Expression, bind: Bind, zone: tzinfo, keep: bool) -> Expression:
    """Bind a function call. Raises NotExactError for one that is unknown or would not give exactly Spark's result.

    With `keep`, the text comes from Spark, whose settings determine the result of overflows, so arithmetic is not
    bound.
    """
    kind = type(node)
    if kind in _operators():
        return _arithmetic(_operators()[kind], bind(node.this), bind(node.expression), zone, keep)
    if kind is exp.Mod:
        return _modulo(bind(node.this), bind(node.expression), zone, keep)
    if kind is exp.Neg:
        return _negative(bind(node.this), zone, keep)
    if kind in _fields():
        return _field(_fields()[kind], _unwrapped(node.this), bind, zone)
    match node:
        case exp.TsOrDsToDate() if not node.args.get("format"):
            return coercion.cast(bind(node.this), DATE, zone)
        case exp.TimestampTrunc() | exp.DateTrunc():
            return _truncate(node, bind, zone)
        case exp.Substring():
            return _substring(node, bind)
        case exp.Length():
            return _length(bind(node.this))
        case exp.Coalesce():
            return _coalesce([bind(node.this), *(bind(part) for part in node.expressions)], zone)
        case exp.Abs():
            return _absolute(bind(node.this), keep)
    raise NotExactError("it is not evaluated outside Spark")


def _unwrapped(node: exp.Expression) -> exp.Expression:
    """Remove the cast around the argument of date functions that the SQL library adds and Spark does not write."""
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _arithmetic(name: str, left: Expression, right: Expression, zone: tzinfo, keep: bool) -> Expression:
    if keep:
        raise NotExactError("arithmetic is evaluated only by Spark")
    common = coercion.common_type(type_of(left), type_of(right))
    if common not in INTEGRAL_BITS and common not in (FLOAT, DOUBLE):
        raise NotExactError(f"arithmetic of {common} is not evaluated outside Spark")
    return Call(name, (coercion.cast(left, common, zone), coercion.cast(right, common, zone)), common)


def _negative(operand: Expression, zone: tzinfo, keep: bool) -> Expression:
    """Bind `-x`. A float is not subtracted from 0, which would lose the sign of a zero."""
    source = type_of(operand)
    if source in (FLOAT, DOUBLE) and not keep:
        return Call("multiply", (Literal(-1.0, source), operand), source)
    return _arithmetic("subtract", Literal(0, INTEGER), operand, zone, keep)


def _modulo(left: Expression, right: Expression, zone: tzinfo, keep: bool) -> Expression:
    """Bind `x % y`: the remainder has the sign of the dividend; it never overflows where the divisor is positive."""
    if keep:
        raise NotExactError("arithmetic is evaluated only by Spark")
    common = coercion.common_type(type_of(left), type_of(right))
    if common not in INTEGRAL_BITS or not isinstance(right, Literal) or not isinstance(right.value, int):
        raise NotExactError("% is supported only for integers and a constant divisor")
    if right.value <= 0:
        raise NotExactError("% is supported only for a positive divisor")
    return Call("mod", (coercion.cast(left, common, zone), coercion.cast(right, common, zone)), common)


def _field(name: str, node: exp.Expression, bind: Bind, zone: tzinfo) -> Expression:
    operand = bind(node)
    source = type_of(operand)
    _require_time(source, zone)
    if source == DATE and name in _TIME_FIELDS:
        raise NotExactError("a date has no time of day")
    return Call(name, (operand,), INTEGER)


def _require_time(source: DataType, zone: tzinfo) -> None:
    if source not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise NotExactError(f"a {source} has no calendar fields")
    if source == TIMESTAMP and not is_utc(zone):
        raise NotExactError("calendar fields of a timestamp are supported only if the session time zone is UTC")


def _truncate(node: exp.Expression, bind: Bind, zone: tzinfo) -> Expression:
    unit = _UNITS.get(str(node.args["unit"].this).upper())
    operand = bind(node.this)
    source = type_of(operand)
    _require_time(source, zone)
    to_date = isinstance(node, exp.DateTrunc)
    if unit is None or source != (DATE if to_date else TIMESTAMP):
        raise NotExactError("date_trunc needs a timestamp, trunc needs a date, and both need a supported unit")
    if to_date and unit in ("day", "hour", "minute", "second"):
        return Literal(None, DATE)  # trunc has no unit below a week
    return Call("date_trunc", (Literal(unit, STRING), operand), source)


def _substring(node: exp.Expression, bind: Bind) -> Expression:
    operand, start = bind(node.this), bind(node.args["start"])
    length = bind(node.args["length"]) if node.args.get("length") is not None else Literal(2**31 - 1, INTEGER)
    bounds = [part.value for part in (start, length) if isinstance(part, Literal) and isinstance(part.value, int)]
    if type_of(operand) != STRING or len(bounds) < 2 or bounds[0] < 0:
        raise NotExactError("substring needs a string, constant arguments and a position that is not negative")
    return Call("substring", (operand, start, length), STRING)


def _length(operand: Expression) -> Expression:
    if type_of(operand) not in (STRING, BINARY):
        raise NotExactError(f"the length of a {type_of(operand)} is not supported")
    return Call("length", (operand,), INTEGER)


def _coalesce(operands: list[Expression], zone: tzinfo) -> Expression:
    types = [type_of(o) for o in operands if type_of(o) != VOID]
    if not types:
        return Literal(None, VOID)
    common = types[0]
    for other in types[1:]:
        common = coercion.common_type(common, other)
    return Call("coalesce", tuple(coercion.cast(o, common, zone) for o in operands), common)


def _absolute(operand: Expression, keep: bool) -> Expression:
    source = type_of(operand)
    if source in (FLOAT, DOUBLE) or (source in INTEGRAL_BITS and not keep):
        return Call("abs", (operand,), source)
    raise NotExactError(f"abs of a {source} is evaluated only by Spark")
