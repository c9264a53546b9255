"""Versions and times: when a version was committed, and which version was current at a time (C355-C361).

A commit's time is its in-commit timestamp if the table has them, otherwise the modification time of its file.
Modification times may decrease; each counts as at least one millisecond after the previous commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from pyspark_delta.actions.decode import Fields, decode_commit_info
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.errors import (
    CorruptLogError,
    FileNotFoundInStoreError,
    TableNotFoundError,
    TimestampOutOfRangeError,
)
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.commits import read_commit
from pyspark_delta.log.listing import LogListing, list_log, log_location
from pyspark_delta.log.names import CommitName
from pyspark_delta.log.segment import LogSegment
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    IN_COMMIT_TIMESTAMP_TIME,
    IN_COMMIT_TIMESTAMP_VERSION,
)
from pyspark_delta.schema.timestamps import utc_datetime
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import join

_FIRST_LINE = 16384  # bytes that nearly always hold the commitInfo, which comes first in commits with timestamps

_DESCRIBED = (
    "userId",
    "userName",
    "operation",
    "operationParameters",
    "job",
    "notebook",
    "clusterId",
    "readVersion",
    "isolationLevel",
    "isBlindAppend",
    "operationMetrics",
    "userMetadata",
    "engineInfo",
)


class Versioned(Protocol):
    """The parts of a snapshot that history needs."""

    @property
    def segment(self) -> LogSegment:
        """The log files of the version."""
        ...

    @property
    def store(self) -> ObjectStore:
        """The store of the log."""
        ...

    @property
    def version(self) -> int:
        """The version."""
        ...

    @property
    def configuration(self) -> TableConfiguration:
        """Protocol and metadata of the version."""
        ...


@dataclass(frozen=True, slots=True)
class _InCommitTimes:
    """The version from which, and the time after which, commits contain their time; 0 and None if all do."""

    version: int
    time: int | None


# ----------------------------------------------------------------------------------------------------- one version
def commit_info_of(snapshot: Versioned) -> CommitInfo | None:
    """Return the commitInfo of the snapshot's version; None if it has none, or the commit file is missing."""
    file = _commit_file(snapshot)
    if file is None:
        return None
    try:
        return _commit_info(snapshot.store, file, snapshot.version)
    except FileNotFoundInStoreError:
        return None


def commit_timestamp(snapshot: Versioned) -> int:
    """Return when the snapshot's version was committed, in milliseconds since the epoch.

    Raises CorruptLogError if the commit should contain its time and does not.
    """
    file = _commit_file(snapshot)
    enabled = _in_commit_times(snapshot.configuration)
    if enabled is not None and snapshot.version >= enabled.version and file is not None:
        return _in_commit_timestamp(snapshot.store, file, snapshot.version)
    if file is not None:
        return file.modification_time
    checkpoint = snapshot.segment.checkpoint
    return 0 if checkpoint is None else checkpoint.files[0].modification_time


def last_modified(snapshot: Versioned) -> int:
    """Return the time of the snapshot's version, as `DESCRIBE DETAIL` shows it, in milliseconds since the epoch."""
    return commit_timestamp(snapshot)


# --------------------------------------------------------------------------------------------------- many versions
def commit_history(snapshot: Versioned, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the commits of `commits_newest_first` as a list."""
    return list(commits_newest_first(snapshot, limit))


def commits_newest_first(snapshot: Versioned, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the commits up to the snapshot's version, newest first, by the names of `DESCRIBE HISTORY`.

    Only `limit` commits are read, as they are consumed. `timestamp` is a datetime in UTC; fields that a commit lacks
    are None.
    """
    first = 0 if limit is None else max(0, snapshot.version - limit + 1)
    listing = _commits_from(snapshot, first)
    enabled = _in_commit_times(snapshot.configuration)
    times = modification_times(listing)
    for version in sorted(listing.commits, reverse=True)[:limit]:
        info = _commit_info(snapshot.store, listing.commits[version], version)
        values: Mapping[str, Any] = {} if info is None else info.values
        time = times[version]
        if enabled is not None and version >= enabled.version and info is not None:
            time = info.in_commit_timestamp or time
        yield {
            "version": version,
            "timestamp": utc_datetime(time),
            **{name: values.get(name) for name in _DESCRIBED},
        }


def infos_newest_first(snapshot: Versioned) -> Iterator[CommitInfo]:
    """Yield the commitInfo of the commits up to the snapshot's version, newest first. They are read as consumed."""
    listing = _commits_from(snapshot, 0)
    for version in sorted(listing.commits, reverse=True):
        info = _commit_info(snapshot.store, listing.commits[version], version)
        if info is not None:
            yield info


def _commits_from(snapshot: Versioned, first: int) -> LogListing:
    """Return the commits from a version on: those of the snapshot, and earlier ones from a listing."""
    segment, listing = snapshot.segment, LogListing()
    count = snapshot.version + 1 - first  # from the end: there may be very many before
    known = segment.commits[-count:] if count else ()
    if len(known) < count:
        listing = list_log(snapshot.store, segment.table_location, first, snapshot.version)
    listing.commits.update((commit.version, commit.file) for commit in known)
    return listing


def version_at(
    latest: Versioned, timestamp_ms: int, listing: LogListing | None = None, *, only_readable: bool = True
) -> int:
    """Return the newest version up to `latest` that was committed at or before a time in milliseconds since the epoch.

    `listing` is the listing of the complete log up to `latest`, if the caller has it. Versions whose commit is left and
    that cannot be read, because log clean-up has removed earlier commits, count unless `only_readable`. Raises
    TimestampOutOfRangeError for a time before the first version that counts, or after the last.
    """
    store, location = latest.store, latest.segment.table_location
    listing = list_log(store, location, 0, latest.version) if listing is None else listing
    versions = readable_versions(listing) if only_readable else sorted(listing.commits)
    if not versions:
        raise TableNotFoundError(location)
    enabled = _in_commit_times(latest.configuration)
    if enabled is None:
        return _at_modification_time(listing, versions, timestamp_ms, location, versions[-1])
    own = [v for v in versions if v >= enabled.version]
    earlier = [v for v in versions if v < enabled.version]
    if earlier and (not own or (enabled.time is not None and timestamp_ms < enabled.time)):
        return _at_modification_time(listing, earlier, timestamp_ms, location, None if own else earlier[-1])
    return _at_in_commit_time(store, listing, own, timestamp_ms, location)


def readable_versions(listing: LogListing) -> list[int]:
    """Return the versions that can be read and that have a commit file, ascending (C017)."""
    starts = {c.version for c in listing.checkpoints()}
    ordered = sorted(listing.commits)
    found: list[int] = []
    for version in ordered:
        follows = bool(found) and found[-1] == version - 1
        if follows or version == 0 or version in starts or version - 1 in starts:
            found.append(version)
    return found


def _at_modification_time(
    listing: LogListing, versions: list[int], timestamp_ms: int, location: str, last: int | None
) -> int:
    times = modification_times(listing)
    if timestamp_ms < times[versions[0]]:
        raise _too_early(timestamp_ms, versions[0], times[versions[0]], location)
    if last is not None and timestamp_ms > times[last]:
        raise _too_late(timestamp_ms, last, times[last], location)
    return max(v for v in versions if times[v] <= timestamp_ms)


def _at_in_commit_time(
    store: ObjectStore, listing: LogListing, versions: list[int], timestamp_ms: int, location: str
) -> int:
    """Search by bisection: in-commit timestamps increase, so few commits need to be read."""

    def time_of(version: int) -> int:
        return _in_commit_timestamp(store, listing.commits[version], version)

    first, last = time_of(versions[0]), time_of(versions[-1])
    if timestamp_ms < first:
        raise _too_early(timestamp_ms, versions[0], first, location)
    if timestamp_ms > last:
        raise _too_late(timestamp_ms, versions[-1], last, location)
    low, high = 0, len(versions) - 1  # the result is at or after `low`, and at or before `high`
    while low < high:
        middle = (low + high + 1) // 2
        if time_of(versions[middle]) <= timestamp_ms:
            low = middle
        else:
            high = middle - 1
    return versions[low]


def modification_times(listing: LogListing) -> dict[int, int]:
    """Return the modification times of the listed commits by version, in ms since the epoch, made increasing."""
    times: dict[int, int] = {}
    previous: int | None = None
    for version in sorted(listing.commits):
        time = listing.commits[version].modification_time
        previous = time if previous is None else max(time, previous + 1)
        times[version] = previous
    return times


def carries_time(configuration: TableConfiguration, version: int) -> bool:
    """True if the commit of a version with this configuration contains its time (C355, C360)."""
    enabled = _in_commit_times(configuration)
    return enabled is not None and version >= enabled.version


def in_commit_timestamp(info: CommitInfo | None, path: str) -> int:
    """Return the time in a commit. Raises CorruptLogError, naming the commit file, if it has none."""
    if info is None or info.in_commit_timestamp is None:
        raise CorruptLogError(
            f"The commit '{path}' has no inCommitTimestamp, although in-commit timestamps were enabled before that "
            "version. The writer of the commit is faulty. Open the table by version instead.",
            path=path,
            error_class="DELTA_MISSING_COMMIT_TIMESTAMP",
        )
    return info.in_commit_timestamp


def _in_commit_times(configuration: TableConfiguration) -> _InCommitTimes | None:
    """Return which commits contain their time; None if the table does not have in-commit timestamps (C355, C360)."""
    properties = configuration.properties
    if not is_active(configuration, Feature.IN_COMMIT_TIMESTAMP):
        return None
    return _InCommitTimes(IN_COMMIT_TIMESTAMP_VERSION.of(properties) or 0, IN_COMMIT_TIMESTAMP_TIME.of(properties))


# ------------------------------------------------------------------------------------------------- reading commits
def _commit_file(snapshot: Versioned) -> FileStatus | None:
    segment = snapshot.segment
    if segment.commits and segment.commits[-1].version == segment.end_version:
        return segment.commits[-1].file
    location = join(log_location(segment.table_location), str(CommitName(segment.end_version)))
    try:
        return snapshot.store.status(location)
    except FileNotFoundInStoreError:
        return None


def _commit_info(store: ObjectStore, file: FileStatus, version: int) -> CommitInfo | None:
    """Return the commitInfo of a commit, from its first line if it is there."""
    start = store.read(file.path, (0, _FIRST_LINE)) if file.size > _FIRST_LINE else store.read(file.path)
    line, newline, _ = start.partition(b"\n")
    if line.startswith(b'{"commitInfo":{') and (newline or file.size <= _FIRST_LINE):
        with suppress(orjson.JSONDecodeError):  # an object that spans lines, or damage, which is reported below
            return decode_commit_info(Fields(orjson.loads(line)["commitInfo"], "line 1, commitInfo", file.path))
    fields = read_commit(store, file, version).fields("commitInfo")
    return decode_commit_info(fields[0]) if fields else None


def _in_commit_timestamp(store: ObjectStore, file: FileStatus, version: int) -> int:
    return in_commit_timestamp(_commit_info(store, file, version), file.path)


def _too_early(timestamp_ms: int, version: int, time: int, location: str) -> TimestampOutOfRangeError:
    return TimestampOutOfRangeError(
        f"The timestamp {_shown(timestamp_ms)} is before the earliest version of '{location}' that can be read, "
        f"{version}, committed at {_shown(time)}. Use this timestamp or a later one.",
        error_class="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        timestamp=timestamp_ms,
        version=version,
        commit_timestamp=time,
    )


def _too_late(timestamp_ms: int, version: int, time: int, location: str) -> TimestampOutOfRangeError:
    return TimestampOutOfRangeError(
        f"The timestamp {_shown(timestamp_ms)} is after the latest version of '{location}', {version}, committed at "
        f"{_shown(time)}. Use this timestamp or an earlier one, or read the latest version.",
        timestamp=timestamp_ms,
        version=version,
        commit_timestamp=time,
    )


def _shown(timestamp_ms: int) -> str:
    moment = utc_datetime(timestamp_ms)
    return f"{timestamp_ms} ms" if moment is None else moment.isoformat(sep=" ", timespec="milliseconds")
