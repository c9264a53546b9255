"""Spark's casts of constants: number, date, timestamp and boolean texts to exact values, or an error."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.expressions.tree import Literal
from pyspark_delta.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

INTEGRAL_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
MAX_DECIMAL_PRECISION = 38
EXACT = Context(prec=400)  # Python's own default rounds to 28 digits

_INTEGER_TEXT = re.compile(r"[+-]?\d+")
_NUMBER_TEXT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DATE_TEXT = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_TIMESTAMP_TEXT = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*(\S+)?)?)?)?"
)
_OFFSET_TEXT = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{1,2}))?")
_SPECIAL_NUMBERS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_BOOLEAN_TEXTS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


class NotExactError(ValueError):
    """It is not certain that Spark would cast the constant to the same value."""


class AmbiguousTimeError(NotExactError):
    """The local time occurs twice (the clock was set back), so its text does not determine the instant."""


def zone_of(name: str) -> tzinfo:
    """Return the time zone of that name: a region or an offset such as `+01:00`.

    Raises InvalidOptionError for others.
    """
    found = _find_zone(name)
    if found is None:
        raise InvalidOptionError(f"'{name}' is not a time zone; use a name such as 'Europe/Berlin' or '+01:00'.")
    return found


def is_utc(zone: tzinfo) -> bool:
    """True if the zone is UTC under any of its names."""
    return (
        zone is UTC
        or getattr(zone, "key", None) in ("UTC", "Etc/UTC", "GMT", "Z")
        or (isinstance(zone, timezone) and zone.utcoffset(None) == timedelta(0))
    )


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unescape(text: str) -> str:
    """Return the contents of a quoted string, by Spark's escapes."""
    if "\\" not in text:
        return text

    def replace(found: re.Match[str]) -> str:
        short, long, octal, other = found.groups()
        if other is not None:
            return _ESCAPED.get(other, other)
        return chr(int(octal, 8) if octal else int(short or long, 16))

    return _ESCAPE.sub(replace, text)


def number_literal(text: str) -> Literal:
    """Return an unsuffixed number with Spark's type: int, long, decimal, or double if it has an exponent."""
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    if "." not in text:
        value = int(text)
        for data_type in (INTEGER, LONG):
            if fits_integral(value, data_type):
                return Literal(value, data_type)
    exact = Decimal(text)
    exact = abs(exact) if exact.is_zero() else exact  # decimals have no negative zero
    return Literal(exact, decimal_type_of(exact))


def decimal_type_of(value: Decimal) -> DecimalType:
    """Return the narrowest decimal type that holds the value. Raises NotExactError beyond 38 digits."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotExactError(f"{value} is not a finite number")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > MAX_DECIMAL_PRECISION:
        raise NotExactError(f"{value} has more than {MAX_DECIMAL_PRECISION} digits")
    return DecimalType(precision, scale)


def fits_integral(value: int, data_type: DataType) -> bool:
    """True if an integral type holds the value."""
    limit = 1 << (INTEGRAL_BITS[data_type] - 1)
    return -limit <= value < limit


def cast_literal(literal: Literal, target: DataType, zone: tzinfo) -> Literal:
    """Return the constant as `target`, as Spark's CAST gives it. Raises NotExactError if that is not certain."""
    if literal.type == target:
        return literal
    if literal.value is None:
        return Literal(None, target)
    return Literal(_cast(literal.value, literal.type, target, zone), target)


def _cast(value: Any, source: DataType, target: DataType, zone: tzinfo) -> Any:
    if source == STRING:
        return _from_text(value.strip(" \t\n\r"), target, zone)
    if source == BOOLEAN or target in (BOOLEAN, VOID):
        raise NotExactError(f"a {source} constant cannot be compared as {target}")
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _from_number(value, target)
    if isinstance(value, datetime | date):
        return _from_time(value, source, target, zone)
    raise NotExactError(f"casting a {source} constant to {target} is not supported")


def _from_number(value: int | float | Decimal, target: DataType) -> Any:
    if target == DOUBLE:
        return float(value)
    if target == FLOAT and isinstance(value, float):
        return float(pa.scalar(value, pa.float64()).cast(pa.float32(), safe=False).as_py())
    if target == FLOAT:  # rounded once, without an intermediate double
        return float(pa.scalar(str(value)).cast(pa.float32()).as_py())
    if isinstance(value, float) and not math.isfinite(value):
        raise NotExactError(f"{value} cannot be converted to {target}")
    exact = Decimal(value)
    if target in INTEGRAL_BITS:
        if exact != exact.to_integral_value() or not fits_integral(int(exact), target):
            raise NotExactError(f"{value} cannot be converted to {target} exactly")
        return int(exact)
    if isinstance(target, DecimalType):
        return to_scale(exact, target)
    if target == STRING and isinstance(value, int):
        return str(value)
    raise NotExactError(f"casting the number {value} to {target} is not supported")


def to_scale(value: Decimal, target: DecimalType) -> Decimal:
    """Return the value with exactly the scale of the type. Raises NotExactError if digits would be lost."""
    unscaled = EXACT.scaleb(value, target.scale)
    if unscaled != EXACT.to_integral_value(unscaled) or unscaled.copy_abs() >= 10**target.precision:
        raise NotExactError(f"{value} cannot be converted to {target} exactly")
    return EXACT.scaleb(Decimal(int(unscaled)), -target.scale)


def _from_text(text: str, target: DataType, zone: tzinfo) -> Any:
    if target in INTEGRAL_BITS:
        if not _INTEGER_TEXT.fullmatch(text) or not fits_integral(int(text), target):
            raise NotExactError(f"'{text}' is not a {target}")
        return int(text)
    if target in (FLOAT, DOUBLE):
        return _parse_float(text, target)
    if isinstance(target, DecimalType):
        if not _NUMBER_TEXT.fullmatch(text):
            raise NotExactError(f"'{text}' is not a {target}")
        try:
            return to_scale(Decimal(text), target)
        except InvalidOperation:
            raise NotExactError(f"'{text}' is not a {target}") from None
    if target == BOOLEAN:
        if text.lower() not in _BOOLEAN_TEXTS:
            raise NotExactError(f"'{text}' is not a boolean")
        return _BOOLEAN_TEXTS[text.lower()]
    if target == DATE:
        return parse_date(text)
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return parse_timestamp(text, target, zone)
    raise NotExactError(f"casting a string constant to {target} is not supported")


def _parse_float(text: str, target: DataType) -> float:
    sign, word = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if word.lower() in _SPECIAL_NUMBERS:
        return sign * _SPECIAL_NUMBERS[word.lower()]
    if not _NUMBER_TEXT.fullmatch(text):
        raise NotExactError(f"'{text}' is not a {target}")
    if target == DOUBLE:
        return float(text)
    return float(pa.scalar(text.removeprefix("+")).cast(pa.float32()).as_py())


def parse_date(text: str) -> date:
    """Parse `yyyy[-M[-d]]`, ignoring text after a blank or a T, as Spark does. Raises NotExactError for other texts."""
    found = _DATE_TEXT.fullmatch(text)
    if found is None:
        raise NotExactError(f"'{text}' is not a date such as 2024-01-31")
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        return date(year, month, day)
    except ValueError as error:
        raise NotExactError(f"'{text}' is not a date: {error}") from None


def parse_timestamp(text: str, target: DataType, zone: tzinfo) -> datetime:
    """Parse a timestamp text as Spark does, in `zone` if it names none.

    Returns an instant in UTC, or a naive value for timestamp_ntz. Raises NotExactError for unsupported texts.
    """
    found = _TIMESTAMP_TEXT.fullmatch(text)
    if found is None:
        raise NotExactError(f"'{text}' is not a timestamp such as 2024-01-31 12:30:00")
    year, month, day, hour, minute, second, fraction, suffix = found.groups()
    micros = int((fraction or "0").ljust(6, "0")[:6])
    try:
        local = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0), micros
        )
    except ValueError as error:
        raise NotExactError(f"'{text}' is not a timestamp: {error}") from None
    if target == TIMESTAMP_NTZ:
        if suffix:
            raise NotExactError(f"'{text}' has a time zone, and the column has none")
        return local
    own = _find_zone(suffix) if suffix else zone
    if own is None:
        raise NotExactError(f"'{suffix}' is not a time zone")
    return to_instant(local, own)


def to_instant(local: datetime, zone: tzinfo) -> datetime:
    """Return the instant of a local time. Raises AmbiguousTimeError for one that occurs twice."""
    try:
        first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    except OverflowError:
        raise NotExactError(f"{local} is out of range") from None
    if first < second:
        raise AmbiguousTimeError(f"{local} occurs twice in {zone}; add the offset, such as +02:00")
    return first


def _from_time(value: date, source: DataType, target: DataType, zone: tzinfo) -> Any:
    if source == DATE and target in (TIMESTAMP, TIMESTAMP_NTZ):
        midnight = datetime(value.year, value.month, value.day)
        return midnight if target == TIMESTAMP_NTZ else to_instant(midnight, zone)
    if isinstance(value, datetime) and source == TIMESTAMP:
        local = value.astimezone(zone).replace(tzinfo=None)
        if target == TIMESTAMP_NTZ:
            return local
        if target == DATE:
            return local.date()
    if isinstance(value, datetime) and source == TIMESTAMP_NTZ:
        if target == TIMESTAMP:
            return to_instant(value, zone)
        if target == DATE:
            return value.date()
    raise NotExactError(f"casting a {source} constant to {target} is not supported")


def _find_zone(name: str) -> tzinfo | None:
    if name.upper() in ("UTC", "Z", "GMT", "UT"):
        return UTC
    offset = _OFFSET_TEXT.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        if int(hours) > 18 or int(minutes or 0) > 59:
            return None
        delta = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(delta if sign == "+" else -delta)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
