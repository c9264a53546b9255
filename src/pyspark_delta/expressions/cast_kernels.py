"""Casts over Arrow values with Spark's results (ANSI): a value that does not fit is an error."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.functions.dates import KERNELS as DATES
from pyspark_delta.expressions.functions.signature import Values, arrays, failed
from pyspark_delta.expressions.literals import INTEGRAL_BITS
from pyspark_delta.schema.arrow import to_arrow
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


def cast_values(value: Values, source: DataType, target: DataType) -> Values:
    """Return values cast to another type. Raises pa.ArrowInvalid for one that does not fit."""
    (found,), is_constant = arrays(value)
    result = _cast(found, source, target)
    return result[0] if is_constant else result


def _cast(value: pa.Array, source: DataType, target: DataType) -> pa.Array:
    arrow = to_arrow(target)
    if source == STRING:
        return _from_text(value, target, arrow)
    if target == STRING:
        return _to_text(value, source)
    if isinstance(source, DecimalType):
        return _from_decimal(value, target, arrow)
    if source in INTEGRAL_BITS and isinstance(target, DecimalType):
        return _from_decimal(value.cast(pa.decimal128(19, 0)), target, arrow)
    if source == BOOLEAN:
        return value.cast(pa.int8()).cast(arrow)
    if target == BOOLEAN:
        return pc.not_equal(value, pa.scalar(0, value.type))
    if source == TIMESTAMP and target in INTEGRAL_BITS:
        return DATES["unix_seconds"](value).cast(arrow)
    if source == TIMESTAMP and target == DOUBLE:
        return pc.divide(value.cast(pa.int64()).cast(pa.float64(), safe=False), pa.scalar(1e6))
    if target == TIMESTAMP and source in INTEGRAL_BITS:
        return DATES["timestamp_seconds"](value.cast(pa.int64()))
    if source in (TIMESTAMP, TIMESTAMP_NTZ) and target == DATE:
        return pc.floor_temporal(value, unit="day").cast(pa.timestamp("us")).cast(arrow)
    if source in (FLOAT, DOUBLE) and target in INTEGRAL_BITS:
        return pc.trunc(value.cast(pa.float64())).cast(arrow)
    return value.cast(arrow, safe=target not in (DOUBLE, FLOAT))  # a number that floats do not hold is rounded


def _from_decimal(value: pa.Array, target: DataType, arrow: pa.DataType) -> pa.Array:
    if target == DOUBLE:
        # Converted through a string: correctly rounded, as in Java; Arrow's own conversion can be off by a bit.
        return value.cast(pa.string()).cast(arrow)
    wide = value.cast(pa.decimal256(min(value.type.precision + 1, 76), value.type.scale))
    if target in INTEGRAL_BITS:
        return pc.trunc(wide).cast(pa.decimal256(wide.type.precision, 0)).cast(pa.decimal128(38, 0)).cast(arrow)
    if arrow.scale < value.type.scale:
        wide = pc.round(wide, ndigits=arrow.scale, round_mode="half_towards_infinity")
    return wide.cast(pa.decimal256(76, arrow.scale)).cast(arrow)


def _to_text(value: pa.Array, source: DataType) -> pa.Array:
    if source in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        years = pc.min_max(pc.year(value))
        if years["min"].is_valid and not (years["min"].as_py() >= 1 and years["max"].as_py() <= 9999):
            raise failed("the year is not between 1 and 9999")
    if source not in (TIMESTAMP, TIMESTAMP_NTZ):
        return value.cast(pa.string())
    text = value.cast(pa.timestamp("us")).cast(pa.string())
    shorter = pc.replace_substring_regex(text, pattern=r"(\.[0-9]*?)0+$", replacement=r"\1")
    return pc.utf8_rtrim(shorter, characters=".")


# ------------------------------------------------------------------------------------------------------- from text
_INTEGER = r"\A[+-]?[0-9]+\z"
_NUMBER = r"\A[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\z"
_DECIMAL = r"\A[+-]?[0-9]{1,37}(?:\.[0-9]{0,37})?\z"
_DAY = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_DATE = rf"(?s)\A{_DAY}(?:[ T].*)?)?)?\z"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_OFFSET = r"(?P<zone>Z|(?P<sign>[+-])(?P<hours>0[0-9]|1[0-7]):(?P<minutes>[0-5][0-9]))?"
_TIMESTAMP = rf"\A{_DAY}(?:[ T]{_TIME}{_OFFSET})?)?)?\z"
_TRUE, _FALSE = ["t", "true", "y", "yes", "1"], ["f", "false", "n", "no", "0"]


def _from_text(value: pa.Array, target: DataType, arrow: pa.DataType) -> pa.Array:
    if target == BINARY:
        return value.cast(pa.binary())
    text = pc.utf8_trim(value, characters=" \t\n\r")
    if target in INTEGRAL_BITS:
        _require(_INTEGER, text, target)
        return _unsigned(text).cast(arrow)
    if target in (FLOAT, DOUBLE):
        _require(_NUMBER, text, target)
        return _unsigned(text).cast(arrow)
    if target == BOOLEAN:
        return _boolean(pc.utf8_lower(text), text)
    if isinstance(target, DecimalType):
        _require(_DECIMAL, text, target)
        wide = _unsigned(text).cast(pa.decimal256(76, 38))
        return (
            pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
            .cast(pa.decimal256(76, target.scale))
            .cast(arrow)
        )
    if target == DATE:
        return _date(_extract(_DATE, text, target))
    return _timestamp(_extract(_TIMESTAMP, text, target), target)


def _unsigned(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, pattern=r"\A\+", replacement="")


def _require(pattern: str, text: pa.Array, target: DataType) -> None:
    _check(pc.match_substring_regex(text, pattern=pattern), text, target)


def _check(fits: pa.Array, text: pa.Array, target: DataType) -> None:
    if pc.all(fits).as_py() is False:
        raise failed(f"{text.filter(pc.invert(fits))[0].as_py()!r} is not a {target} that Arrow reads as Spark does")


def _extract(pattern: str, text: pa.Array, target: DataType) -> pa.Array:
    found = pc.extract_regex(text, pattern=pattern)
    _check(pc.or_(pc.is_null(text), pc.is_valid(found)), text, target)
    return found


def _boolean(lower: pa.Array, text: pa.Array) -> pa.Array:
    is_true, is_false = pc.is_in(lower, value_set=pa.array(_TRUE)), pc.is_in(lower, value_set=pa.array(_FALSE))
    _check(pc.or_(pc.or_(is_true, is_false), pc.is_null(text)), text, BOOLEAN)
    return pc.if_else(pc.is_valid(text), is_true, pa.scalar(None, pa.bool_()))


def _number(found: pa.Array, name: str, missing: str) -> pa.Array:
    part = pc.struct_field(found, [name])
    known = pc.if_else(pc.equal(part, ""), missing, part)
    return pc.if_else(pc.is_valid(found), known, pa.scalar(None, pa.string())).cast(pa.int32())


def _date(found: pa.Array) -> pa.Array:
    if not len(found):
        return pa.array([], pa.date32())
    return DATES["make_date"](*(_number(found, name, "1") for name in ("year", "month", "day")))


def _timestamp(found: pa.Array, target: DataType) -> pa.Array:
    arrow = to_arrow(target)
    if not len(found):
        return pa.array([], arrow)
    if target == TIMESTAMP_NTZ and pc.any(pc.not_equal(pc.struct_field(found, ["zone"]), "")).as_py():
        raise failed("a time zone in a text is not read as a timestamp_ntz")
    numbers = {name: _filled(_number(found, name, "0")) for name in ("hour", "minute", "second", "hours", "minutes")}
    for name, limit in (("hour", 23), ("minute", 59), ("second", 59)):
        if (numbers[name] > limit).any():
            raise failed(f"the {name} {numbers[name].max()} is invalid")
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(found, ["fraction"]), 6, padding="0"), 0, 6)
    micros = _filled(pc.if_else(pc.is_valid(found), fraction, "0").cast(pa.int32()))
    sign = np.where(pc.fill_null(pc.equal(pc.struct_field(found, ["sign"]), "-"), False), -1, 1)
    offset = sign * (numbers["hours"] * 3600 + numbers["minutes"] * 60)
    seconds = numbers["hour"] * 3600 + numbers["minute"] * 60 + numbers["second"] - offset
    days = _filled(_date(found).cast(pa.int32()))
    mask = found.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days * 86_400_000_000 + seconds * 1_000_000 + micros, mask=mask).cast(arrow)


def _filled(value: pa.Array) -> np.ndarray:
    return np.asarray(value.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))
