"""Local times and instants: microseconds since the epoch, on the clocks of a zone and in UTC."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.calendar import Integers

_UTC = frozenset(["UTC", "Z", "Etc/UTC", "GMT", "+00:00"])


def is_utc(time_zone: str) -> bool:
    """Whether the clocks of a zone always show UTC; not every name of such a zone is known."""
    return time_zone in _UTC


def instants(local: Integers, time_zone: str, *, ambiguous: Literal["earliest", "latest"] = "earliest") -> Integers:
    """Instants of local times. Where a clock was set back there are two; where it was set forward, the offset from
    before the change counts, as Java resolves it.

    Raises pa.ArrowInvalid for an unknown zone.
    """
    if is_utc(time_zone):
        return local
    naive = pa.array(local).cast(pa.timestamp("us"))
    zoned = pc.assume_timezone(naive, time_zone, ambiguous=ambiguous, nonexistent="latest")
    found = np.array(zoned.cast(pa.int64()))
    skipped = local_times(found, time_zone) != local
    if skipped.any():
        before = found[skipped] - 1
        found[skipped] = local[skipped] - (local_times(before, time_zone) - before)
    return found


def local_times(instants: Integers, time_zone: str) -> Integers:
    """What the clocks of a zone show at instants. Raises pa.ArrowInvalid for an unknown zone."""
    zoned = pa.array(instants).cast(pa.timestamp("us", tz=time_zone))
    return np.asarray(pc.local_timestamp(zoned).cast(pa.int64()))
