"""Arithmetic of dates and timestamps, and their numbers since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.casts import cast_as_asked
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, failed, takes
from pyspark_delta.expressions.literals import NotExactError, is_utc
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import BYTE, DATE, INTEGER, LONG, SHORT, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID

_WEEKDAYS = {
    **dict.fromkeys(("MO", "MON", "MONDAY"), 0),
    **dict.fromkeys(("TU", "TUE", "TUESDAY"), 1),
    **dict.fromkeys(("WE", "WED", "WEDNESDAY"), 2),
    **dict.fromkeys(("TH", "THU", "THURSDAY"), 3),
    **dict.fromkeys(("FR", "FRI", "FRIDAY"), 4),
    **dict.fromkeys(("SA", "SAT", "SATURDAY"), 5),
    **dict.fromkeys(("SU", "SUN", "SUNDAY"), 6),
}
_MICROS = {"WEEK": 604_800_000_000, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000}
_MICROS |= {"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1}
_MONTHS = {"YEAR": 12, "MONTH": 1}
_MONTH = np.timedelta64(1, "M")


@dataclass(frozen=True, slots=True)
class Interval:
    """A constant interval: months, or microseconds; `is_days` is true if its unit is the day or week."""

    months: int = 0
    micros: int = 0
    is_days: bool = False


def interval_of(text: str, unit: str) -> Interval:
    """Return a constant interval of one unit. Raises NotExactError for other units and for fractions."""
    unit = unit.upper().removesuffix("S")
    if not re.fullmatch(r"[+-]?\d{1,9}", text) or unit not in (*_MICROS, *_MONTHS):
        raise NotExactError("only constant intervals of one whole number and unit are computed, such as INTERVAL 3 DAY")
    count = int(text)
    if unit in _MONTHS:
        return Interval(months=count * _MONTHS[unit])
    return Interval(micros=count * _MICROS[unit], is_days=unit in ("DAY", "WEEK"))


# --------------------------------------------------------------------------------------------------------- binding
def add_interval(operand: Expression, interval: Interval, sign: int, site: Site) -> Expression:
    """Bind a date or timestamp plus or minus an interval."""
    source = type_of(operand)
    if source == DATE and interval.is_days:
        days = sign * interval.micros // _MICROS["DAY"]
        return Call("date_add", (operand, Literal(days, INTEGER)), DATE)
    if source == DATE and interval.months:
        return Call("add_months", (operand, Literal(sign * interval.months, INTEGER)), DATE)
    if source == TIMESTAMP_NTZ or (source == TIMESTAMP and is_utc(site.zone)):
        name, count = ("add_interval_months", interval.months) if interval.months else ("add_micros", interval.micros)
        return Call(name, (operand, Literal(sign * count, LONG)), source)
    raise site.refusal(f"the type {source} and this interval")


def _date(site: Site, position: int) -> Expression:
    argument = site.arguments[position]
    if type_of(argument) == VOID:
        return Literal(None, DATE)
    if type_of(argument) not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise site.refusal(f"the type {type_of(argument)}")
    return cast_as_asked(argument, DATE, site.zone, keep=site.keep)


def _count(site: Site, position: int) -> Expression:
    if type_of(site.arguments[position]) not in (BYTE, SHORT, INTEGER, VOID):
        raise site.refusal(f"a number of the type {type_of(site.arguments[position])}")
    return site.typed(position, INTEGER)


def _shifted(site: Site) -> Expression:
    return site.call(_date(site, 0), _count(site, 1), to=DATE)


def _difference(site: Site) -> Expression:
    return site.call(_date(site, 0), _date(site, 1), to=INTEGER)


def _of_date(site: Site) -> Expression:
    return site.call(_date(site, 0), to=DATE)


def _next_day(site: Site) -> Expression:
    day = site.constant(1, str)
    if day is None or day.strip().upper() not in _WEEKDAYS:
        raise site.refusal("this day of the week")
    return site.call(_date(site, 0), Literal(day, STRING), to=DATE)


def _made(site: Site) -> Expression:
    return site.call(*(_count(site, n) for n in range(3)), to=DATE)


def _unix_date(site: Site) -> Expression:
    if type_of(site.arguments[0]) != DATE:
        raise site.refusal(f"the type {type_of(site.arguments[0])}")
    return site.call(site.arguments[0], to=INTEGER)


def _date_of(site: Site) -> Expression:
    return site.call(_count(site, 0), to=DATE)


def _unix_time(site: Site) -> Expression:
    if type_of(site.arguments[0]) != TIMESTAMP:
        raise site.refusal(f"the type {type_of(site.arguments[0])}")
    return Call(site.name, site.arguments, LONG)


def _time_of(site: Site) -> Expression:
    return site.call(site.typed(0, LONG), to=TIMESTAMP)


FUNCTIONS = {
    "date_add": Function(_shifted, takes(2), is_total=False),
    "date_sub": Function(_shifted, takes(2), is_total=False),
    "datediff": Function(_difference, takes(2), is_total=False),
    "add_months": Function(_shifted, takes(2), is_total=False),
    "last_day": Function(_of_date, takes(1)),
    "next_day": Function(_next_day, takes(2), is_total=False),
    "make_date": Function(_made, takes(3), is_total=False),
    "unix_date": Function(_unix_date, takes(1)),
    "date_from_unix_date": Function(_date_of, takes(1)),
    "unix_seconds": Function(_unix_time, takes(1)),
    "unix_millis": Function(_unix_time, takes(1)),
    "unix_micros": Function(_unix_time, takes(1)),
    "unix_timestamp": Function(_unix_time, takes(1)),
    "timestamp_seconds": Function(_time_of, takes(1), is_total=False),
    "timestamp_millis": Function(_time_of, takes(1), is_total=False),
    "timestamp_micros": Function(_time_of, takes(1)),
}


# ------------------------------------------------------------------------------------------------------- computing
_INSTANT = pa.timestamp("us", "UTC")


def _days(value: pa.Array) -> np.ndarray:
    """Return dates as days since 1970; nulls as 0."""
    return np.asarray(value.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))


def _as_dates(days: np.ndarray, *sources: pa.Array) -> pa.Array:
    mask = np.logical_or.reduce([source.is_null().to_numpy(zero_copy_only=False) for source in sources])
    outside = ~mask & ((days < -(2**31)) | (days > 2**31 - 1))
    if outside.any():
        raise failed("the date is out of range")
    return pa.array(np.where(mask, 0, days).astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())


def _adder(kernel: Callable[..., Values]) -> Kernel:
    def added(value: Values, days: Values) -> Values:
        return kernel(value.cast(pa.int32()), days).cast(pa.date32())

    return added


def _plus_months(days: np.ndarray, months: np.ndarray) -> np.ndarray:
    """Return the same day of another month, or its last day if it is shorter."""
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    offset = (dates - month.astype("datetime64[D]")).astype(np.int64)
    target = month + months.astype("timedelta64[M]")
    first = target.astype("datetime64[D]").astype(np.int64)
    last = (target + _MONTH).astype("datetime64[D]").astype(np.int64) - 1
    return np.asarray(np.minimum(first + offset, last))


def _add_months(value: pa.Array, months: pa.Array) -> pa.Array:
    counts = months.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return _as_dates(_plus_months(_days(value), counts), value, months)


def _add_interval_months(value: pa.Array, months: pa.Array) -> pa.Array:
    micros = value.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    days, time = np.divmod(micros, _MICROS["DAY"])
    counts = months.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    shifted = _plus_months(days, counts)
    if (np.abs(shifted) > 106_000_000).any():
        raise failed("the timestamp is out of range")
    found = shifted * _MICROS["DAY"] + time
    return pa.array(found, mask=value.is_null().to_numpy(zero_copy_only=False)).cast(value.type)


def _last_day(value: pa.Array) -> pa.Array:
    month = _days(value).astype("datetime64[D]").astype("datetime64[M]")
    return _as_dates((month + _MONTH).astype("datetime64[D]").astype(np.int64) - 1, value)


def _next(value: pa.Array, day: pa.Array) -> pa.Array:
    if not len(value):
        return value
    days, wanted = _days(value), _WEEKDAYS[day[0].as_py().strip().upper()]
    return _as_dates(days + 1 + (wanted - (days + 4)) % 7, value)  # 1970-01-01 was a Thursday


def _make(year: pa.Array, month: pa.Array, day: pa.Array) -> pa.Array:
    mask = np.logical_or.reduce([part.is_null().to_numpy(zero_copy_only=False) for part in (year, month, day)])
    y, m, d = (part.fill_null(1).to_numpy(zero_copy_only=False).astype(np.int64) for part in (year, month, day))
    first = ((y - 1970) * 12 + np.clip(m, 1, 12) - 1).astype("datetime64[M]")
    start = first.astype("datetime64[D]").astype(np.int64)
    size = (first + _MONTH).astype("datetime64[D]").astype(np.int64) - start
    wrong = ~mask & ((m < 1) | (m > 12) | (d < 1) | (d > size) | (y < 1) | (y > 9999))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise failed(f"year {y[at]}, month {m[at]} and day {d[at]} are not a date from 0001 to 9999")
    return _as_dates(start + d - 1, year, month, day)


def _floored(micros: int) -> Kernel:
    def floored(value: pa.Array) -> pa.Array:
        numbers = value.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(numbers // micros, mask=value.is_null().to_numpy(zero_copy_only=False))

    return by_array(floored)


def _instant(micros: int) -> Kernel:
    return lambda value: pc.multiply_checked(value, pa.scalar(micros, pa.int64())).cast(_INSTANT)


def _plus_micros(value: Values, micros: Values) -> Values:
    return pc.add_checked(value.cast(pa.int64()), micros).cast(value.type)


KERNELS: dict[str, Kernel] = {
    "date_add": _adder(pc.add_checked),
    "date_sub": _adder(pc.subtract_checked),
    "datediff": lambda end, start: pc.subtract_checked(end.cast(pa.int32()), start.cast(pa.int32())),
    "add_months": by_array(_add_months),
    "add_interval_months": by_array(_add_interval_months),
    "add_micros": _plus_micros,
    "plus_millisecond": lambda value: _plus_micros(value, pa.scalar(1000, pa.int64())),
    "last_day": by_array(_last_day),
    "next_day": by_array(_next),
    "make_date": by_array(_make),
    "unix_date": lambda value: value.cast(pa.int32()),
    "date_from_unix_date": lambda value: value.cast(pa.date32()),
    "unix_seconds": _floored(1_000_000),
    "unix_timestamp": lambda value: pc.divide(value.cast(pa.int64()), pa.scalar(1_000_000, pa.int64())),
    "unix_millis": _floored(1000),
    "unix_micros": _floored(1),
    "timestamp_seconds": _instant(1_000_000),
    "timestamp_millis": _instant(1000),
    "timestamp_micros": _instant(1),
}
