"""Deleting the files of a vacuum in batches, at the pace that the store accepts.

Between the batches it looks at the log: files that a concurrent commit brings back, such as a RESTORE, are kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta import progress
from pyspark_delta.errors import StorageError, StoreThrottledError
from pyspark_delta.maintenance.vacuum.references import References
from pyspark_delta.maintenance.vacuum.removes import named_paths
from pyspark_delta.parallel import map_requests
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import commits_between
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.paths import join

DELETE_FILES = "Delete files"

_BATCH = 1000  # files of one request
_GROUP = 4  # batches between two looks at the log
_AT_ONCE = 4  # requests
_MOST_PAUSES = 6  # of a group of batches
_FIRST_PAUSE = 1.0  # seconds; each further pause is twice as long
_pause = time.sleep


@dataclass
class Deleted:
    """What was deleted so far: files, bytes, files that were kept, and why files could not be deleted."""

    files: int = 0
    size: int = 0
    kept: int = 0
    failures: list[StorageError] = field(default_factory=list)


def delete_files(snapshot: Snapshot, files: pa.Table, done: Deleted, at_once: int | None = None) -> None:
    """Delete files, with the columns path and size, a group of batches after another; `done` says how far it is.

    `at_once` requests run at the same time, half as many each time that the store throttles them. Failures are
    collected.
    """
    pace = _Pace(1 if isinstance(snapshot.store, LocalStore) else at_once or _AT_ONCE)
    returned = _Returned(snapshot)
    step = progress.begin(DELETE_FILES, files.num_rows, "files")
    for start in range(0, files.num_rows, _BATCH * _GROUP):
        group = files.slice(start, _BATCH * _GROUP)
        kept = returned.hold(group["path"].combine_chunks())
        done.kept += int(kept.sum())
        _delete_group(snapshot, group.filter(pa.array(~kept)), done, pace)
        step.add(group.num_rows)


class _Returned:
    """The files that commits after a version add."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._added: list[pa.Array] = []
        self._references = References.of(())

    def hold(self, paths: pa.Array) -> np.ndarray:
        """Return a mask of the paths that a commit has added until now."""
        newest = self._snapshot.update()
        if newest.version > self._snapshot.version:
            commits = commits_between(newest, self._snapshot.version + 1, newest.version)
            self._added += named_paths(newest, commits, "add")
            self._references = References.of(self._added)
            self._snapshot = newest
        return self._references.hold(paths)


@dataclass
class _Pace:
    """How many requests run at the same time, and how long the next pause is."""

    at_once: int
    pause: float = _FIRST_PAUSE

    def slow_down(self) -> None:
        """Halve the rate of requests, after a pause."""
        _pause(self.pause)
        self.at_once = max(1, self.at_once // 2)
        self.pause *= 2


def _delete_group(snapshot: Snapshot, group: pa.Table, done: Deleted, pace: _Pace) -> None:
    for attempt in range(_MOST_PAUSES + 1):
        throttled = _delete_batches(snapshot, group, done, pace)
        if not throttled:
            return
        group = pa.concat_tables(batch for batch, _ in throttled)
        if attempt < _MOST_PAUSES:
            pace.slow_down()
    done.failures += [error for batch, error in throttled for _ in range(batch.num_rows)]


def _delete_batches(
    snapshot: Snapshot, group: pa.Table, done: Deleted, pace: _Pace
) -> list[tuple[pa.Table, StoreThrottledError]]:
    """Delete the files of a group; return the batches whose requests the store has throttled."""

    def delete(batch: pa.Table) -> tuple[pa.Table, list[StorageError], StoreThrottledError | None]:
        prefix = join(snapshot.location, "")
        paths = [prefix + path for path in batch["path"].to_pylist()]
        try:
            snapshot.store.delete(paths)
        except StoreThrottledError as error:
            return batch, [], error
        except StorageError:
            return *_one_by_one(snapshot, batch, paths), None
        return batch, [], None

    throttled = []
    batches = [group.slice(start, _BATCH) for start in range(0, group.num_rows, _BATCH)]
    for deleted, failures, error in map_requests(delete, batches, pace.at_once):
        if error is not None:
            throttled.append((deleted, error))
            continue
        done.files += deleted.num_rows
        done.size += pc.sum(deleted["size"]).as_py() or 0
        done.failures += failures
    return throttled


def _one_by_one(snapshot: Snapshot, batch: pa.Table, paths: list[str]) -> tuple[pa.Table, list[StorageError]]:
    """Delete the files of a batch whose request failed; return those that are gone, and the failures."""
    failures, gone = [], []
    for path in paths:
        try:
            snapshot.store.delete([path])
        except StorageError as error:
            failures.append(error)
        gone.append(not failures or failures[-1].path != path)
    return batch.filter(pa.array(gone, pa.bool_())), failures
