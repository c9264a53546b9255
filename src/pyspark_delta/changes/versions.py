"""Resolve the requested start and end of a change feed, versions or times, to a range with both ends included."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.errors import (
    InvalidOperationError,
    InvalidOptionError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from pyspark_delta.log.history import version_at
from pyspark_delta.log.segment import earliest_version
from pyspark_delta.snapshot import Snapshot

_TOO_EARLY = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """The requested range. Times are in milliseconds since the epoch.

    A start time means the first version not before it; an end time means the last version not after it. Without an end,
    or with an end version after the latest, the range ends at the latest version. A start after the latest version, and
    times after its commit, are errors unless `allow_out_of_range`, which makes the range empty. With `only_readable`, a
    start time passes over versions that cannot be read because log clean-up has removed earlier commits.
    """

    starting_version: int | None = None
    starting_timestamp: int | None = None
    ending_version: int | None = None
    ending_timestamp: int | None = None
    allow_out_of_range: bool = False
    only_readable: bool = True


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions from `first` to `last`, both included; empty if `last` is less."""

    first: int
    last: int

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)


def resolve_range(latest: Snapshot, request: ChangeRequest) -> VersionRange:
    """Return the versions that a request names; `latest` is the newest version that can be read.

    Raises InvalidOptionError for a start that is missing or given twice, or an end that is given twice;
    InvalidOperationError for an end before the start; VersionNotFoundError and TimestampOutOfRangeError for a start or
    a time after the latest version.
    """
    _check_given(request)
    first = _first(latest, request)
    if first > latest.version:
        if request.allow_out_of_range:
            return VersionRange(latest.version + 1, latest.version)
        earliest = earliest_version(latest.store, latest.location)
        raise VersionNotFoundError(
            first, earliest, latest.version, latest.location, error_class="DELTA_CDC_START_VERSION_AFTER_LATEST"
        )
    last = _last(latest, request)
    by_time = request.starting_timestamp is not None and request.ending_timestamp is not None
    if last < first and not (by_time and last == first - 1):  # both times may be between the same two commits
        raise _backwards(f"version {first}", f"version {last}")
    return VersionRange(first, min(last, latest.version))


def _check_given(request: ChangeRequest) -> None:
    for end, version, timestamp in (
        ("starting", request.starting_version, request.starting_timestamp),
        ("ending", request.ending_version, request.ending_timestamp),
    ):
        if version is not None and timestamp is not None:
            raise InvalidOptionError(
                f"Give either a {end} version or a {end} timestamp, not both.",
                error_class="DELTA_MULTIPLE_CDC_BOUNDARY",
                sqlstate="42614",
            )
        if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 0):
            raise InvalidOptionError(f"The {end} version must be an integer of at least 0, found {version!r}.")
    if request.starting_version is None and request.starting_timestamp is None:
        raise InvalidOptionError(
            "The change data feed needs a start: give startingVersion or startingTimestamp.",
            error_class="DELTA_NO_START_FOR_CDC_READ",
            sqlstate="42601",
        )
    if (
        request.starting_timestamp is not None
        and request.ending_timestamp is not None
        and request.ending_timestamp < request.starting_timestamp
    ):
        raise _backwards(f"{request.starting_timestamp} ms", f"{request.ending_timestamp} ms")


def _first(latest: Snapshot, request: ChangeRequest) -> int:
    if request.starting_version is not None:
        return request.starting_version
    assert request.starting_timestamp is not None
    try:
        first = version_at(latest, request.starting_timestamp - 1, only_readable=request.only_readable) + 1
    except TimestampOutOfRangeError as error:
        if error.error_class == _TOO_EARLY:
            return int(error.facts["version"])
        first = latest.version + 1
    if first > latest.version and not request.allow_out_of_range:
        version_at(latest, request.starting_timestamp)  # raises: the time is past the last commit
    return first


def _last(latest: Snapshot, request: ChangeRequest) -> int:
    if request.ending_version is not None:
        return request.ending_version
    if request.ending_timestamp is None:
        return latest.version
    try:
        return version_at(latest, request.ending_timestamp)
    except TimestampOutOfRangeError as error:
        if error.error_class == _TOO_EARLY or not request.allow_out_of_range:
            raise
        return latest.version


def _backwards(start: str, end: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"The requested changes end at {end}, before they start at {start}. Swap the two.",
        error_class="DELTA_INVALID_CDC_RANGE",
        sqlstate="22003",
        start=start,
        end=end,
    )
