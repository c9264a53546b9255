"""The history of a table without a feature: barrier checkpoints, traces in earlier versions, and truncation.

A client that does not know the feature can read every version from the first barrier on: it starts at a checkpoint that
was made when no trace was left.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pyarrow.compute as pc

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.errors import ChecksumMismatchError, CorruptLogError, InvalidOperationError, StorageError
from pyspark_delta.features import Feature
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.log.commits import CommitText, read_commits
from pyspark_delta.log.history import modification_times, readable_versions
from pyspark_delta.log.listing import Checkpoint, LogListing, list_log
from pyspark_delta.log.names import UuidCheckpointName
from pyspark_delta.log.reconciliation import latest_metadata
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.maintenance.drop_feature.droppable import Drop
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.properties import DROP_FEATURE_RETENTION
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

BARRIERS = 3
"""Checkpoints before the drop that have no trace of the feature: as many as delta-spark makes."""

_EMPTY = "Empty Commit"
_MINUTE = 60_000  # ms
_VECTOR = re.compile(rb'"deletionVector"\s*:\s*\{')
_READ_AT_ONCE = 100  # commits


# --------------------------------------------------------------------------------------------------------- barriers
def add_barriers(snapshot: Snapshot, count: int, engine_info: str = "") -> Snapshot:
    """Make checkpoints of empty commits until the newest versions have `count`; return the newest version.

    The traces of the feature are gone from `snapshot`. Raises InvalidOperationError if a checkpoint cannot be written.
    """
    missing = count - _trailing_barriers(snapshot, count)
    for _ in range(missing):
        draft = CommitDraft(operation=Operation(_EMPTY), data_change=False, engine_info=engine_info)
        version = commit_draft(draft, state_of(snapshot)).version
        snapshot = snapshot.update()
        checkpoint(snapshot if snapshot.version == version else snapshot.at_version(version))
    return snapshot


def checkpoint(snapshot: Snapshot) -> None:
    """Write the checkpoint of a version, unless there is one. Raises InvalidOperationError if it cannot be written."""
    if list_log(snapshot.store, snapshot.location, snapshot.version, snapshot.version).checkpoints():
        return
    try:
        snapshot.checkpoint()
    except (StorageError, CorruptLogError, ChecksumMismatchError) as error:
        raise InvalidOperationError(
            f"The feature cannot be dropped from '{snapshot.location}', because the checkpoint of version "
            f"{snapshot.version} cannot be written: {error.message} Run it again; it goes on where it stopped.",
            error_class="DELTA_FEATURE_DROP_CHECKPOINT_FAILED",
            sqlstate="22KD0",
            version=snapshot.version,
        ) from error


def _trailing_barriers(snapshot: Snapshot, most: int) -> int:
    """Return how many of the newest versions are empty commits with checkpoints, which an interrupted run has made."""
    first = max(0, snapshot.version - most + 1)
    listing = list_log(snapshot.store, snapshot.location, first, snapshot.version)
    known = {one.version for one in listing.checkpoints()}
    count = 0
    for version in range(snapshot.version, first - 1, -1):
        at = snapshot if version == snapshot.version else snapshot.at_version(version)
        info = at.commit_info()
        if version not in known or info is None or info.values.get("operation") != _EMPTY:
            break
        count += 1
    return count


# ------------------------------------------------------------------------------------------------ traces in history
@dataclass(frozen=True, slots=True)
class History:
    """What the log still shows: `traced` is the newest version with traces of a feature, None without any.

    `first` is the first version that can be read. `clean_at` is when the first checkpoint without traces was committed,
    in milliseconds since the epoch; None if there is none.
    """

    first: int
    traced: int | None
    clean_at: int | None

    def expires(self, snapshot: Snapshot) -> int:
        """Return when the traces may be deleted, in milliseconds since the epoch."""
        start = int(time.time() * 1000) if self.clean_at is None else self.clean_at
        length = DROP_FEATURE_RETENTION.of(snapshot.properties) // timedelta(milliseconds=1)
        return -(-start // _MINUTE) * _MINUTE + length


def look_back(snapshot: Snapshot, drop: Drop) -> History:
    """Return what the readable versions up to a snapshot show of a feature. Reads commits from the newest back."""
    listing = list_log(snapshot.store, snapshot.location, 0, snapshot.version)
    first = min(readable_versions(listing), default=snapshot.version)
    if drop.removal.needs_truncation:
        boundary = int(snapshot.properties.get(drop.removal.properties[0], "0"))
        traced = boundary - 1 if first < boundary else None
    else:
        traced = _newest_trace(snapshot, drop, listing, first)
    times = modification_times(listing)
    clean = [one.version for one in listing.checkpoints() if one.version > (-1 if traced is None else traced)]
    at = min((times[version] for version in clean if version in times), default=None)
    return History(first, traced, at)


def _newest_trace(snapshot: Snapshot, drop: Drop, listing: LogListing, first: int) -> int | None:
    found = _checkpoint_trace(snapshot, drop, listing, first)
    for text in _newest_first(snapshot, listing, first):
        if text.version <= max(found, first - 1):
            break
        if _shows(text, snapshot, drop):
            return text.version
    return found if found >= 0 else None


def _checkpoint_trace(snapshot: Snapshot, drop: Drop, listing: LogListing, first: int) -> int:
    """Return the newest version whose checkpoint shows the feature; -1 without any.

    Only the checkpoint at which the history begins can hold what no commit shows. Its tombstones do not count: readers
    need none of them.
    """
    if drop.feature.name == Feature.V2_CHECKPOINT:
        return max((one.version for one in listing.checkpoints() if _is_v2(snapshot, one)), default=-1)
    if first == 0 or first == snapshot.version:
        return -1
    start = snapshot.at_version(first)
    if drop.feature.has_traces(start.configuration):
        return first
    if drop.removal.files is FileTraces.VECTORS:
        batches = start.read_files(FileRequest(("deletion_vector",)))
        if any(pc.any(pc.is_valid(batch.column("deletion_vector"))).as_py() for batch in batches):
            return first
    return -1


def _is_v2(snapshot: Snapshot, one: Checkpoint) -> bool:
    if isinstance(one.name, UuidCheckpointName):
        return True
    return bool(CheckpointReader(snapshot.store, snapshot.location, one).actions("checkpointMetadata"))


def _newest_first(snapshot: Snapshot, listing: LogListing, first: int) -> Iterator[CommitText]:
    """Yield the commits from the snapshot's version back to `first`, reading some at a time."""
    versions = [version for version in sorted(listing.commits, reverse=True) if version >= first]
    for start in range(0, len(versions), _READ_AT_ONCE):
        block = [CommitFile(version, listing.commits[version]) for version in versions[start : start + _READ_AT_ONCE]]
        yield from read_commits(snapshot.store, tuple(block))


def _shows(text: CommitText, snapshot: Snapshot, drop: Drop) -> bool:
    """Return True if a commit has metadata or files with traces of the feature."""
    if drop.removal.files is FileTraces.VECTORS and _VECTOR.search(text.data):
        return True
    metadata = latest_metadata([text])
    return metadata is not None and drop.feature.has_traces(replace(snapshot.configuration, metadata=metadata))


def truncate_history(snapshot: Snapshot) -> Snapshot:
    """Delete the log up to the newest checkpoint that is old enough; return the newest version.

    Old enough is what `delta.dropFeatureTruncateHistory.retentionDuration` says, to the minute. Raises
    MaintenanceNotAllowedError for a table whose catalog does not allow it.
    """
    location, catalog_table = snapshot.location, snapshot.catalog_table
    managed = managed_table(catalog_table)
    if managed is not None:
        managed.require(Maintenance.LOG_CLEANUP)
    now = int(time.time() * 1000)
    length = DROP_FEATURE_RETENTION.of(snapshot.properties) // timedelta(milliseconds=1)
    clean_log(
        snapshot.store,
        location,
        snapshot.configuration,
        cutoff_ms=(now - length) // _MINUTE * _MINUTE,
        allowed_by_catalog=managed is not None,
    )
    clear_cache(location)
    return Snapshot.load(location, storage_options=snapshot.storage_options, catalog_table=catalog_table)
