"""Intervals in table properties: `interval 1 week`, `30 days`, `interval 2 hours 30 minutes`."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_PART = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s+([a-z]+)")


def parse_interval(text: str) -> timedelta:
    """Parse an interval of weeks down to microseconds.

    Raises ValueError with the reason: months and years have no fixed length, and a retention is never negative.
    """
    rest = text.strip().lower().removeprefix("interval").replace("'", "").rstrip()
    total, position = timedelta(), 0
    if not rest.strip():
        raise ValueError(f"'{text}' is not an interval; use a form such as 'interval 7 days'")
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            raise ValueError(f"'{text}' is not an interval; use a form such as 'interval 7 days'")
        total += float(part[1]) * _unit(part[2], text) if "." in part[1] else int(part[1]) * _unit(part[2], text)
        position = part.end()
    if total < timedelta():
        raise ValueError(f"'{text}' is negative")
    return total


def format_interval(value: timedelta) -> str:
    """Return the interval in the form of a table property; parsing it gives the same length."""
    parts = []
    for name, unit in _UNITS.items():
        count, value = divmod(value, unit)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return f"interval {' '.join(parts) or '0 seconds'}"


def _unit(word: str, text: str) -> timedelta:
    unit = _UNITS.get(word.removesuffix("s"))
    if unit is None:
        fixed = "months and years have no fixed length; " if word.startswith(("month", "year")) else ""
        raise ValueError(f"'{text}' has the unit '{word}': {fixed}use weeks, days, hours, minutes or seconds")
    return unit
