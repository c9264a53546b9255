"""The current time, and shifts between instants and local times.

Arrow and Java agree on the zones from 1970 to 2037; before and after, their releases of the time zone database and the
ways they read it may differ, so other instants are errors in zones that are not UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.expressions.current_time import current_time
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, by_array, failed, takes
from pyspark_delta.expressions.literals import NotExactError, is_utc, zone_of
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

_FIRST, _LAST = (
    int(at.timestamp()) * 1_000_000 for at in (datetime(1970, 1, 2, tzinfo=UTC), datetime(2037, 12, 30, tzinfo=UTC))
)
_LOCAL = pa.timestamp("us")
_INSTANT = pa.timestamp("us", "UTC")


# --------------------------------------------------------------------------------------------------------- binding
def local_time(instant: Expression, site: Site) -> Expression:
    """Return an instant as the time that clocks of the session time zone show, as if they were in UTC."""
    if site.keep:
        raise site.refusal("a session time zone other than UTC")
    return Call("from_utc_timestamp", (instant, Literal(zone_name(site.zone), STRING)), TIMESTAMP)


def zone_name(zone: tzinfo) -> str:
    """Return the name of a zone for Arrow and Java."""
    if isinstance(zone, ZoneInfo):
        return zone.key
    if is_utc(zone):
        return "UTC"
    assert isinstance(zone, timezone)
    minutes = int(zone.utcoffset(None) / timedelta(minutes=1))
    sign, minutes = "-" if minutes < 0 else "+", abs(minutes)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def _shift(site: Site) -> Expression:
    """Bind `from_utc_timestamp` and `to_utc_timestamp` with a constant zone, in sessions in UTC."""
    name = site.constant(1, str)
    if name is None:
        return Literal(None, TIMESTAMP)
    if type_of(site.arguments[0]) != TIMESTAMP or not is_utc(site.zone):
        raise site.refusal("other types than timestamps, or a session time zone other than UTC,")
    try:
        zone = zone_name(zone_of(name))
    except InvalidOptionError as error:
        raise NotExactError(error.message) from None
    return site.call(site.arguments[0], Literal(zone, STRING), to=TIMESTAMP)


def _current_timestamp(site: Site) -> Expression:
    return Literal(current_time(), TIMESTAMP)


def _local_timestamp(site: Site) -> Expression:
    return Literal(current_time().astimezone(site.zone).replace(tzinfo=None), TIMESTAMP_NTZ)


def _current_date(site: Site) -> Expression:
    return Literal(current_time().astimezone(site.zone).date(), DATE)


# Text from Catalyst holds the current time as a literal: `is_total` is false, so no other moment is bound there.
FUNCTIONS = {
    "current_date": Function(_current_date, takes(0), is_total=False),
    "current_timestamp": Function(_current_timestamp, takes(0), is_total=False),
    "localtimestamp": Function(_local_timestamp, takes(0), is_total=False),
    "from_utc_timestamp": Function(_shift, takes(2), is_total=False),
    "to_utc_timestamp": Function(_shift, takes(2), is_total=False),
}


# ------------------------------------------------------------------------------------------------------- computing
def _from_utc(value: pa.Array, zone: pa.Array) -> pa.Array:
    if not len(value) or zone[0].as_py() == "UTC":
        return value
    _require_known(value)
    offset = _offset(zone[0].as_py())
    if offset is not None:
        return pc.add(value, offset)
    return pc.local_timestamp(value.cast(pa.timestamp("us", zone[0].as_py()))).cast(_INSTANT)


def _to_utc(value: pa.Array, zone: pa.Array) -> pa.Array:
    """Return the instant of a local time; the first of two, as in Java. A time that clocks skip is an error."""
    if not len(value) or zone[0].as_py() == "UTC":
        return value
    _require_known(value)
    offset = _offset(zone[0].as_py())
    if offset is not None:
        return pc.subtract(value, offset)
    local = value.cast(_LOCAL)
    return pc.assume_timezone(local, zone[0].as_py(), ambiguous="earliest", nonexistent="raise").cast(_INSTANT)


def _offset(zone: str) -> pa.Scalar | None:
    """Return the offset of a zone such as `+05:30`, which PyArrow 21 does not know; None for a zone with a name."""
    if zone[0] not in "+-":
        return None
    hours, minutes = zone[1:].split(":")
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return pa.scalar(-offset if zone[0] == "-" else offset, pa.duration("us"))


def _require_known(value: pa.Array) -> None:
    span = pc.min_max(value)
    low, high = span["min"], span["max"]
    if low.is_valid and (low.value < _FIRST or high.value > _LAST):
        outside = low if low.value < _FIRST else high
        shown = pc.cast(outside, pa.string()).as_py()  # Python has no datetime for years beyond 1 to 9999
        raise failed(f"Arrow and Spark may differ about time zones before 1970 and after 2037, such as at {shown}")


KERNELS: dict[str, Kernel] = {
    "from_utc_timestamp": by_array(_from_utc),
    "to_utc_timestamp": by_array(_to_utc),
}
