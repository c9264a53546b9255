"""Dates and times of files that Spark wrote in the calendar that changes from Julian to Gregorian in October 1582.

Spark 2 always wrote it, and later versions do so if configured; the file footer records it. Read unconverted, such
values are up to ten days off. Timestamps before 1900 are also some minutes off: Java's old clocks used the standard
time of their zone then, modern ones use its local mean time. The values are converted as Spark converts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.calendar import MICROS_PER_DAY, Integers
from pyspark_delta.schema.time_zones import instants, is_utc, local_times

_VERSION = b"org.apache.spark.version"
_ZONE = b"org.apache.spark.timeZone"
_FIRST_GREGORIAN = -141_427  # 1582-10-15, in days since the epoch
_JULIAN_DAY_OF_EPOCH = 2_440_588
# In microseconds since the epoch. Before this, Java's old clocks ignore local mean time.
_FIRST_OF_1900 = -2_208_988_800_000_000
_MIDWINTER, _MIDSUMMER = 1_704_067_200_000_000, 1_719_792_000_000_000  # in a year with present-day offsets

Days = Integers


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """Which values of a column are in the legacy calendar; `time_zone` is the zone of the writer's clocks."""

    dates: bool
    timestamps: bool
    time_zone: str = "UTC"

    def rebased(self, array: pa.Array) -> pa.Array:
        """Return the values of columns of a table in the modern calendar, at every level of nesting.

        Timestamps without a zone are unchanged: Spark always writes them in the modern calendar.
        """
        if not self.concerns(array.type):
            return array
        if pa.types.is_date(array.type):
            return _rebased_dates(array)
        if pa.types.is_timestamp(array.type):
            return array if array.type.tz is None else _rebased_timestamps(array, self.time_zone)
        array = pa.concat_arrays([array])  # without an offset
        mask = array.is_null() if array.null_count else None
        if pa.types.is_struct(array.type):
            children = [self.rebased(child) for child in array.flatten()]
            return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
        if pa.types.is_map(array.type):
            keys, items = self.rebased(array.keys), self.rebased(array.items)
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=array.type, mask=mask)
        return pa.ListArray.from_arrays(array.offsets, self.rebased(array.values), type=array.type, mask=mask)

    def concerns(self, data_type: pa.DataType) -> bool:
        """True if values of a type may be in the legacy calendar."""
        if data_type.num_fields:
            return any(self.concerns(data_type.field(i).type) for i in range(data_type.num_fields))
        return (self.dates and pa.types.is_date(data_type)) or (self.timestamps and pa.types.is_timestamp(data_type))


def legacy_calendar(
    footer: Mapping[bytes, bytes] | None, physical_types: Iterable[str], time_zone: str = "UTC"
) -> LegacyCalendar | None:
    """Return the legacy values of a column with leaves of these physical types, by the metadata of its file, or None.

    The rules are those of Spark: files without its version are not in the legacy calendar. If the file names no zone,
    as with Spark 2, `time_zone` is assumed to be that of the writer.
    """
    version = None if footer is None else footer.get(_VERSION)
    if footer is None or version is None:
        return None
    dates = version < b"3.0.0" or b"org.apache.spark.legacyDateTime" in footer
    int96 = version < b"3.1.0" or b"org.apache.spark.legacyINT96" in footer
    timestamps = int96 if "INT96" in physical_types else dates
    zone = footer[_ZONE].decode(errors="replace") if _ZONE in footer else time_zone
    return LegacyCalendar(dates, timestamps, zone) if dates or timestamps else None


def _rebased_dates(array: pa.Array) -> pa.Array:
    days = array.cast(pa.int32())
    first = pc.min(days).as_py()
    if first is None or first >= _FIRST_GREGORIAN:
        return array
    rebased = _gregorian(np.asarray(pc.fill_null(days, 0), dtype=np.int64)).astype(np.int32)
    return pa.array(rebased, mask=_nulls(array)).cast(array.type)


def _rebased_timestamps(array: pa.Array, time_zone: str) -> pa.Array:
    micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    first = pc.min(micros).as_py()
    if first is None or first >= _FIRST_OF_1900:
        return array
    values = np.array(pc.fill_null(micros, 0))
    early = values < _FIRST_OF_1900
    values[early] = _rebased_instants(values[early], time_zone)
    return pa.array(values, mask=_nulls(array)).cast(array.type)


def _rebased_instants(micros: Integers, time_zone: str) -> Integers:
    """Return the instants, in microseconds, at which modern clocks show what Java's old ones showed before 1900."""
    offset = _standard_offset(time_zone)
    days, time = np.divmod(micros + (offset or 0), MICROS_PER_DAY)
    local = _gregorian(days) * MICROS_PER_DAY + time
    return local if offset is None else instants(local, time_zone, ambiguous="latest")  # standard time began then


def _standard_offset(time_zone: str) -> int | None:
    """Return the microseconds that the clocks of a zone are ahead of UTC in winter; None if the zone is unknown."""
    if is_utc(time_zone):
        return 0
    times = np.array([_MIDWINTER, _MIDSUMMER])
    try:
        return int((local_times(times, time_zone) - times).min())
    except pa.ArrowInvalid:
        return None


def _nulls(array: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(array.is_null())


def _gregorian(days: Days) -> Days:
    """Return the days whose Gregorian date has the year, month and day of the legacy date of `days`."""
    gregorian: Days = np.where(days < _FIRST_GREGORIAN, _day_of(*_julian_date(days)), days)
    return gregorian


def _julian_date(days: Days) -> tuple[Days, Days, Days]:
    """Return year, month and day in the Julian calendar. Years begin in March, so a leap day is the last day."""
    since = days + _JULIAN_DAY_OF_EPOCH + 32_082  # since March 1 of the year -4800
    years = (4 * since + 3) // 1461
    day_of_year = since - 1461 * years // 4
    months = (5 * day_of_year + 2) // 153
    return years - 4800 + months // 10, months + 3 - 12 * (months // 10), day_of_year - (153 * months + 2) // 5 + 1


def _day_of(year: Days, month: Days, day: Days) -> Days:
    """Return days since the epoch of a Gregorian date; a leap day that only the Julian calendar has is March 1."""
    before_march = month <= 2
    years = year + 4800 - before_march
    months = month + 12 * before_march - 3
    day_of_year = day + (153 * months + 2) // 5
    since: Days = day_of_year + 365 * years + years // 4 - years // 100 + years // 400
    return since - 32_045 - _JULIAN_DAY_OF_EPOCH
