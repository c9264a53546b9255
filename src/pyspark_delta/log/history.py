"""Versions and times: when a version was committed, and which version was current at a time (C355-C361)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from pyspark_delta.actions.decode import decode_commit_info
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError, TableNotFoundError, TimestampOutOfRangeError
from pyspark_delta.log.commits import read_commit
from pyspark_delta.log.listing import LogListing, extend, list_log, log_location
from pyspark_delta.log.names import CommitName
from pyspark_delta.log.segment import LogSegment
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import join


class Versioned(Protocol):
    """What history needs of a snapshot."""

    @property
    def segment(self) -> LogSegment: ...

    @property
    def store(self) -> ObjectStore: ...

    @property
    def version(self) -> int: ...


def commit_info_of(snapshot: Versioned) -> CommitInfo | None:
    """The commitInfo of the snapshot's version; None when there is none or the commit file is gone."""
    file = _commit_file(snapshot)
    return None if file is None else _read_commit_info(snapshot.store, file, snapshot.version)


def commit_timestamp(snapshot: Versioned) -> int:
    """When the snapshot's version was committed, in milliseconds since the epoch."""
    info = commit_info_of(snapshot)
    if info is not None and info.in_commit_timestamp is not None:
        return info.in_commit_timestamp
    file = _commit_file(snapshot)
    if file is not None:
        return file.modification_time
    checkpoint = snapshot.segment.checkpoint
    return 0 if checkpoint is None else checkpoint.files[0].modification_time


def last_modified(snapshot: Versioned) -> int:
    """The time of the snapshot's version, as `DESCRIBE DETAIL` shows it."""
    return commit_timestamp(snapshot)


def commit_history(snapshot: Versioned, limit: int | None = None) -> list[dict[str, Any]]:
    """The commits of the table, newest first, by the names of `DESCRIBE HISTORY`."""
    listing = list_log(snapshot.store, snapshot.segment.table_location, 0, snapshot.version)
    rows = []
    for version in sorted(listing.commits, reverse=True)[:limit]:
        info = _read_commit_info(snapshot.store, listing.commits[version], version)
        values = {} if info is None else info.values
        rows.append({"version": version, "timestamp": listing.commits[version].modification_time, **values})
    return rows


def version_at(
    store: ObjectStore,
    table_location: str,
    timestamp_ms: int,
    *,
    log_tail: Iterable[FileStatus] = (),
    max_version: int | None = None,
) -> int:
    """The newest version that is not after a time. Raises TimestampOutOfRangeError, TableNotFoundError."""
    listing = list_log(store, table_location, 0, max_version)
    extend(listing, log_tail, max_version)
    times = _times(store, listing)
    if not times:
        raise TableNotFoundError(table_location)
    chosen = [v for v, t in times.items() if t <= timestamp_ms]
    if not chosen:
        raise TimestampOutOfRangeError(f"The earliest version is {min(times)}.")
    if timestamp_ms > times[max(times)]:
        raise TimestampOutOfRangeError(f"The latest version is {max(times)}.")
    return max(chosen)


def _times(store: ObjectStore, listing: LogListing) -> dict[int, int]:
    times, previous = {}, None
    for version in sorted(listing.commits):
        info = _read_commit_info(store, listing.commits[version], version)
        time = listing.commits[version].modification_time
        if info is not None and info.in_commit_timestamp is not None:
            time = info.in_commit_timestamp
        previous = time if previous is None else max(time, previous + 1)
        times[version] = previous
    return times


def _commit_file(snapshot: Versioned) -> FileStatus | None:
    segment = snapshot.segment
    if segment.commits:
        return segment.commits[-1].file
    location = join(log_location(segment.table_location), str(CommitName(segment.end_version)))
    try:
        return snapshot.store.status(location)
    except FileNotFoundInStoreError:
        return None


def _read_commit_info(store: ObjectStore, file: FileStatus, version: int) -> CommitInfo | None:
    try:
        fields = read_commit(store, file, version).fields("commitInfo")
    except CorruptLogError:
        raise
    return decode_commit_info(fields[0]) if fields else None
