"""Local times and instants: microseconds since the epoch, on the clocks of a zone and in UTC."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.calendar import Integers
from pyspark_delta.schema.timestamps import fixed_offset

_UTC = frozenset(["UTC", "Z", "Etc/UTC", "GMT", "UT", "+00:00"])


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
    """Return the offset from UTC, in microseconds, of a zone whose clocks are never changed; None for a region."""
    if is_utc(time_zone):
        return 0
    offset = fixed_offset(time_zone)
    return None if offset is None else offset // timedelta(microseconds=1)
