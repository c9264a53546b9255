"""What a caller wants of a vacuum, and from which time on removed files stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.protocol.intervals import format_interval
from pyspark_delta.protocol.properties import DELETED_FILE_RETENTION
from pyspark_delta.snapshot import Snapshot

MODES = ("auto", "full", "lite")
_HOUR = 3_600_000  # ms
_MOST_HOURS = 24 * 365 * 10_000

UNNAMED_AGE = _HOUR
"""Milliseconds that a file without a commit stays at least, because its writer may still run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How files are deleted: if the log gets a commit before and after, and how many requests run at the same time."""

    is_logged: bool = True
    deletes_at_once: int | None = None


@dataclass(frozen=True, kw_only=True)
class VacuumRequest:
    """What to delete.

    `retention_hours` overrides the table property delta.deletedFileRetentionDuration; a shorter time needs
    `enforce_retention_duration=False`. `mode` is `full` (list the table), `lite` (read the log), or `auto`: lite if the
    log reaches back to the last vacuum, and full once in `full_every_days` days. With an `inventory`, an Arrow source
    with the columns path, length, isDir and modificationTime, nothing is listed. Files of the versions `keep_versions`
    and of the tables at the locations `protect`, such as shallow clones, stay.
    """

    retention_hours: float | None = None
    enforce_retention_duration: bool = True
    mode: str = "auto"
    inventory: Any = None
    keep_versions: Sequence[int] = ()
    protect: Sequence[str] = ()
    full_every_days: int = 30
    protect_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    run: RunOptions = RunOptions()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidOptionError(f"mode is one of {', '.join(MODES)}, found {self.mode!r}.", option="mode")
        hours = self.retention_hours
        if hours is None:
            return
        if isinstance(hours, bool) or not isinstance(hours, int | float) or math.isnan(hours) or hours > _MOST_HOURS:
            raise InvalidOptionError(
                f"retention_hours is a number of hours, found {hours!r}.", option="retention_hours"
            )
        if hours < 0:
            raise InvalidOptionError(
                f"retention_hours must not be negative, found {hours}.",
                error_class="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
                option="retention_hours",
            )


@dataclass(frozen=True, slots=True)
class Retention:
    """Times in milliseconds since the epoch, and lengths in milliseconds.

    Files that were removed before `cutoff` go; files that no commit names go if they were written before
    `unnamed_cutoff`. `specified` is the length that the caller gave.
    """

    cutoff: int
    unnamed_cutoff: int
    default: int
    specified: int | None
    is_checked: bool

    @property
    def is_longer_than_default(self) -> bool:
        """True if files stay longer than their tombstones do."""
        return self.specified is not None and self.specified > self.default


def retention_of(request: VacuumRequest, snapshot: Snapshot, now: int) -> Retention:
    """Return the times of a request. Raises InvalidOperationError for a time shorter than the table's."""
    property_ = DELETED_FILE_RETENTION.of(snapshot.properties)
    default = property_ // timedelta(milliseconds=1)
    specified = None if request.retention_hours is None else int(request.retention_hours * _HOUR)
    length = default if specified is None else specified
    if request.enforce_retention_duration and length < default:
        raise InvalidOperationError(
            f"The retention of {request.retention_hours} hours is shorter than that of the table, "
            f"'{format_interval(property_)}': time travel would fail, and so would concurrent readers and writers of "
            f"older versions. Set the table property {DELETED_FILE_RETENTION.name}, or give "
            "enforce_retention_duration=False if no other process uses the table.",
            error_class="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            sqlstate="22003",
            property=DELETED_FILE_RETENTION.name,
        )
    cutoff = now - length
    unnamed = min(cutoff, now - UNNAMED_AGE) if request.enforce_retention_duration else cutoff
    return Retention(cutoff, unnamed, default, specified, request.enforce_retention_duration)
