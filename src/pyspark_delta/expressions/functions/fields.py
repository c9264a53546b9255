"""Calendar fields of dates and timestamps, and truncation to them.

A timestamp in a session time zone other than UTC is first shifted to its local time, so that kernels see UTC alone.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.casts import cast_as_asked
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, takes
from pyspark_delta.expressions.functions.zones import local_time
from pyspark_delta.expressions.literals import is_utc
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import DATE, INTEGER, STRING, TIMESTAMP, TIMESTAMP_NTZ, DecimalType

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
_TIME_FIELDS = ("hour", "minute", "second")
_SECONDS = DecimalType(8, 6)
_EXTRACTED = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    "YEAROFWEEK": "yearofweek",
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "dayofweek_iso"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "seconds"),
}


# --------------------------------------------------------------------------------------------------------- binding
def _moment(site: Site, position: int = 0) -> Expression:
    """Return a date, or a timestamp in the time of its zone."""
    operand = site.arguments[position]
    source = type_of(operand)
    if source not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise site.refusal(f"the type {source}")
    return operand if source != TIMESTAMP or is_utc(site.zone) else local_time(operand, site)


def _field(site: Site) -> Expression:
    operand = _moment(site)
    if type_of(operand) == DATE and site.name in _TIME_FIELDS:
        raise site.refusal("a date")
    return site.call(operand, to=STRING if site.name in ("monthname", "dayname") else INTEGER)


def _extracted(site: Site) -> Expression:
    """Bind `date_part('unit', moment)`, which EXTRACT is, too."""
    name = _EXTRACTED.get(str(site.constant(0, str)).upper())
    if name is None:
        raise site.refusal(f"the field {site.constant(0, str)}")
    operand = _moment(site, 1)
    if type_of(operand) == DATE and name in (*_TIME_FIELDS, "seconds"):
        raise site.refusal("a date")
    if name in ("yearofweek", "dayofweek_iso", "seconds"):
        unit = {"yearofweek": "YEAROFWEEK", "dayofweek_iso": "DAYOFWEEK_ISO", "seconds": "SECOND"}[name]
        to = _SECONDS if name == "seconds" else INTEGER
        return Call("date_part", (Literal(unit, STRING), operand), to)
    return Call(name, (operand,), INTEGER)


def _truncated_time(site: Site) -> Expression:
    unit = _UNITS.get(str(site.constant(0, str)).upper())
    operand = site.arguments[1]
    if type_of(operand) in (DATE, TIMESTAMP_NTZ):
        operand = cast_as_asked(operand, TIMESTAMP, site.zone, keep=site.keep)
    if unit is None or type_of(operand) != TIMESTAMP or not is_utc(site.zone):
        raise site.refusal("this unit or type, or a session time zone other than UTC,")
    return Call("date_trunc", (Literal(unit, STRING), operand), TIMESTAMP)


def _truncated_date(site: Site) -> Expression:
    unit = _UNITS.get(str(site.constant(1, str)).upper())
    operand = site.arguments[0]
    if type_of(operand) in (TIMESTAMP, TIMESTAMP_NTZ):
        operand = cast_as_asked(operand, DATE, site.zone, keep=site.keep)
    if unit is None or type_of(operand) != DATE:
        raise site.refusal("this unit or type")
    if unit not in ("year", "quarter", "month", "week"):
        return Literal(None, DATE)  # trunc has no unit below a week
    return Call("date_trunc", (Literal(unit, STRING), operand), DATE)


_OF_DAYS = (
    "year",
    "quarter",
    "month",
    "day",
    "dayofweek",
    "weekday",
    "dayofyear",
    "weekofyear",
    "monthname",
    "dayname",
)
FUNCTIONS = {
    **dict.fromkeys((*_OF_DAYS, *_TIME_FIELDS, "monthname", "dayname"), Function(_field, takes(1))),
    "date_part": Function(_extracted, takes(2)),
    "date_trunc": Function(_truncated_time, takes(2)),
    "trunc": Function(_truncated_date, takes(2)),
}


# ------------------------------------------------------------------------------------------------------- computing
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def _int32(kernel: Callable[[Values], Values]) -> Kernel:
    return lambda value: kernel(value).cast(pa.int32())


def _day_of_week(value: Values) -> Values:
    """Return the day of the week; Sunday is 1."""
    return pc.add(pc.day_of_week(value, count_from_zero=True, week_start=7), 1)


def _part(unit: pa.Scalar, value: Values) -> Values:
    match unit.as_py():
        case "YEAROFWEEK":
            return pc.iso_year(value).cast(pa.int32())
        case "DAYOFWEEK_ISO":
            return pc.add(pc.day_of_week(value), 1).cast(pa.int32())
    start = pc.floor_temporal(value, unit="minute").cast(pa.int64())
    micros = pc.subtract(value.cast(pa.int64()), start).cast(pa.decimal128(19, 0))
    return pc.multiply(micros, pa.scalar(Decimal("0.000001"))).cast(pa.decimal128(8, 6))


KERNELS: dict[str, Kernel] = {
    "year": _int32(pc.year),
    "quarter": _int32(pc.quarter),
    "month": _int32(pc.month),
    "day": _int32(pc.day),
    "hour": _int32(pc.hour),
    "minute": _int32(pc.minute),
    "second": _int32(pc.second),
    "dayofweek": _int32(_day_of_week),
    "weekday": _int32(pc.day_of_week),
    "dayofyear": _int32(pc.day_of_year),
    "weekofyear": _int32(pc.iso_week),
    "monthname": by_array(lambda value: pa.array(_MONTHS).take(pc.subtract(pc.month(value), 1))),
    "dayname": by_array(lambda value: pa.array(_DAYS).take(pc.day_of_week(value))),
    "date_part": _part,
    "date_trunc": lambda unit, value: pc.floor_temporal(value, unit=unit.as_py()),
}
