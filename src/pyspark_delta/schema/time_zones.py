"""Local times and instants: microseconds since the epoch, on the clocks of a zone and in UTC."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.calendar import Integers

_UTC = frozenset(["UTC", "Z", "Etc/UTC", "GMT", "UT", "+00:00"])
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d))?", re.ASCII)

_MOST_MINUTES = 18 * 60  # of an offset, as in Java


def is_utc(time_zone: str) -> bool:
    """True if the clocks of a zone always show UTC; some names of such zones are not recognised."""
    return time_zone in _UTC


def instants(local: Integers, time_zone: str, *, ambiguous: Literal["earliest", "latest"] = "earliest") -> Integers:
    """Return the instants of local times.

    If a clock was set back there are two; if it was set forward, the offset from before the change applies, as in Java.
    Raises pa.ArrowInvalid for an unknown zone.
    """
    offset = _offset(time_zone)
    if offset is not None:
        return local - offset
    naive = pa.array(local).cast(pa.timestamp("us"))
    zoned = pc.assume_timezone(naive, time_zone, ambiguous=ambiguous, nonexistent="latest")
    found = np.array(zoned.cast(pa.int64()))
    skipped = local_times(found, time_zone) != local
    if skipped.any():
        before = found[skipped] - 1
        found[skipped] = local[skipped] - (local_times(before, time_zone) - before)
    return found


def local_times(instants: Integers, time_zone: str) -> Integers:
    """Return local times of a zone at instants. Raises pa.ArrowInvalid for an unknown zone."""
    offset = _offset(time_zone)
    if offset is not None:
        return instants + offset
    zoned = pa.array(instants).cast(pa.timestamp("us", tz=time_zone))
    return np.asarray(pc.local_timestamp(zoned).cast(pa.int64()))


def _offset(time_zone: str) -> int | None:
    """Return the offset from UTC, in microseconds, that a zone is; None for a region. Spark has several spellings."""
    if is_utc(time_zone):
        return 0
    found = _OFFSET.fullmatch(time_zone)
    if found is None:
        return None
    minutes = 60 * int(found["hours"]) + int(found["minutes"] or 0)
    if minutes > _MOST_MINUTES:
        return None  # Arrow says that there is no such zone
    return (-1 if found["sign"] == "-" else 1) * minutes * 60_000_000
