"""Dates and times as text and as numbers, vectorised over the whole proleptic Gregorian calendar.

Arrow parses years 0 to 9999 only; Delta's dates reach from -5877641-06-23 to 5881580-07-11 and its timestamps over
some 290,000 years each way, so both directions are computed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Integers = np.ndarray[Any, np.dtype[np.int64]]
Booleans = np.ndarray[Any, np.dtype[np.bool_]]

MICROS_PER_DAY = 86_400_000_000
_MAX_MICROS = 2**63 - 1

_PATTERN = (
    r"^\s*(?P<year>[+-]?\d{4,7})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?)?\s*$"
)


class CalendarText:
    """Parsed text of dates or timestamps: `valid` marks entries that are a date, with or without a time of day.

    `days` since 1970-01-01; `micros` of the day; `zoned` if the text contains its offset, `offset` in microseconds.
    """

    __slots__ = ("days", "micros", "offset", "valid", "zoned")

    def __init__(self, text: pa.Array) -> None:
        parts = pc.extract_regex(text, pattern=_PATTERN)
        matched = np.asarray(parts.is_valid())

        def number(name: str) -> Integers:
            digits = pc.struct_field(parts, name)
            digits = pc.if_else(pc.equal(pc.fill_null(digits, ""), ""), "0", digits)
            return np.asarray(pc.utf8_ltrim(digits, "+").cast(pa.int64()))

        year, month, day = number("year"), number("month"), number("day")
        hour, minute, second = number("hour"), number("minute"), number("second")
        fraction = pc.utf8_slice_codeunits(
            pc.utf8_rpad(pc.fill_null(pc.struct_field(parts, "fraction"), ""), 6, "0"), 0, 6
        )
        self.days = days_from_civil(year, month, day)
        self.micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + np.asarray(fraction.cast(pa.int64()))
        zone = pc.fill_null(pc.struct_field(parts, "zone"), "")
        self.zoned = np.asarray(pc.not_equal(zone, ""))
        self.offset = _offsets(zone)
        self.valid = (
            matched
            & (month >= 1)
            & (month <= 12)
            & (day >= 1)
            & (day <= _days_in_month(year, month))
            & (hour < 24)
            & (minute < 60)
            & (second < 60)
            & (np.abs(self.offset) <= 18 * 3_600_000_000)
        )

    @property
    def is_date(self) -> Booleans:
        """A mask of the valid entries whose days fit 32 bits."""
        return self.valid & (self.days >= -(2**31)) & (self.days < 2**31)

    def local_micros(self) -> tuple[Integers, Booleans]:
        """Return microseconds since 1970-01-01 00:00 local time, and a mask of those a day within 64 bits."""
        fits = np.abs(self.days) < _MAX_MICROS // MICROS_PER_DAY
        return np.where(fits, self.days, 0) * MICROS_PER_DAY + self.micros, fits

    def all_local_micros(self) -> tuple[Integers, Booleans]:
        """Return the same as `local_micros`, but up to the exact limits of 64 bits."""
        last, last_micros = divmod(_MAX_MICROS, MICROS_PER_DAY)
        first, first_micros = divmod(-_MAX_MICROS - 1, MICROS_PER_DAY)
        fits = (self.days > first) & (self.days < last)
        fits |= (self.days == first) & (self.micros >= first_micros) | (self.days == last) & (
            self.micros <= last_micros
        )
        return np.where(fits, self.days, 0) * MICROS_PER_DAY + self.micros, fits


def days_from_civil(year: Integers, month: Integers, day: Integers) -> Integers:
    """Return days since 1970-01-01 of valid dates (years count from March, in eras of 400 years)."""
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days: Integers = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return days


def civil_from_days(days: Integers) -> tuple[Integers, Integers, Integers]:
    """Return year, month and day of days since 1970-01-01."""
    shifted = days + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = (shifted_month + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def date_text(days: Integers) -> pa.Array:
    """Return `yyyy-MM-dd`, with a sign if the year does not have four digits."""
    year, month, day = civil_from_days(days)
    digits = _padded(np.abs(year), 4)
    sign = pc.if_else(pa.array(year < 0), "-", pc.if_else(pa.array(year > 9999), "+", ""))
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise(sign, digits, ""), _padded(month, 2), _padded(day, 2), "-"
    )


def time_text(micros: Integers) -> pa.Array:
    """Return `HH:mm:ss.ffffff` of microseconds within a day."""
    seconds, fraction = micros // 1_000_000, micros % 1_000_000
    clock = pc.binary_join_element_wise(
        _padded(seconds // 3600, 2), _padded(seconds // 60 % 60, 2), _padded(seconds % 60, 2), ":"
    )
    return pc.binary_join_element_wise(clock, _padded(fraction, 6), ".")


def _padded(numbers: Integers, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _days_in_month(year: Integers, month: Integers) -> Integers:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
    result: Integers = lengths[(month - 1) % 12] + ((month == 2) & leap)
    return result


def _offsets(zone: pa.Array) -> Integers:
    parts = pc.extract_regex(zone, pattern=r"^(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?$")

    def number(name: str) -> Integers:
        digits = pc.fill_null(pc.struct_field(parts, name), "0")
        return np.asarray(pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64()))

    minutes = number("hours") * 60 + number("minutes")
    negative = np.asarray(pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False))
    result: Integers = np.where(negative, -minutes, minutes) * 60_000_000
    return result
