"""The deletion of a vacuum: START in the log, files in batches with a look at the log between, END in the log."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import html_facts
from pyspark_delta.errors import FileNotFoundInStoreError, InvalidOperationError, StorageError
from pyspark_delta.log.listing import log_location
from pyspark_delta.log.names import CommitName
from pyspark_delta.maintenance.vacuum.bookmark import FILE, Bookmark, read_bookmark, write_bookmark
from pyspark_delta.maintenance.vacuum.deletion import Deleted, delete_files
from pyspark_delta.maintenance.vacuum.request import Retention, RunOptions
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.local_tree import remove_empty_directories
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

_MOST_SKEW = 5 * 60_000  # ms


@dataclass(frozen=True)
class VacuumResult:
    """What a vacuum deleted: numbers of files and directories, bytes, and the oldest version that can be read.

    `version` is that of the last commit of the vacuum. `kept` files were in the plan, and a concurrent commit brought
    them back.
    """

    version: int
    num_deleted_files: int
    size_of_deleted_files: int
    num_vacuumed_directories: int
    oldest_readable_version: int
    kept: int = 0

    def _repr_html_(self) -> str:
        return html_facts("VacuumResult", vars(self))


def run_vacuum(
    snapshot: Snapshot,
    files: pa.Table,
    retention: Retention,
    bookmark: Bookmark,
    oldest_readable_version: int,
    engine_info: str,
    options: RunOptions,
) -> VacuumResult:
    """Delete files, and log it as delta-spark does.

    A file that a concurrent commit brings back, such as a RESTORE, stays if the commit is made before the file's batch
    is deleted. Raises InvalidOperationError if the clocks of this process and of the store differ by more than five
    minutes, before anything is deleted; StorageError if some files could not be deleted, after the others.
    """
    log = _Log(snapshot, engine_info, options.is_logged)
    log.commit(_start(files, retention))
    done = Deleted()
    try:
        _check_clock(snapshot, log.newest_file())
        delete_files(snapshot, files, done, options.deletes_at_once)
        if done.failures:
            raise _incomplete(snapshot, done)
        directories = _remove_directories(snapshot, files)
        write_bookmark(snapshot.store, snapshot.location, bookmark)
    except Exception:
        log.commit(_end("FAILED", done.files, 0))
        raise
    log.commit(_end("COMPLETED", done.files, directories))
    return VacuumResult(log.version, done.files, done.size, directories, oldest_readable_version, done.kept)


class _Log:
    """The commits of a vacuum; none if it is not logged. `version` is the newest."""

    def __init__(self, snapshot: Snapshot, engine_info: str, is_logged: bool) -> None:
        self._snapshot = snapshot
        self._engine_info = engine_info
        self._is_logged = is_logged
        self.version = snapshot.version

    def commit(self, operation: Operation) -> None:
        if not self._is_logged:
            return
        is_first = self.version == self._snapshot.version
        base = self._snapshot if is_first else self._snapshot.update()
        draft = CommitDraft(operation=operation, isolation=IsolationLevel.SNAPSHOT, engine_info=self._engine_info)
        self.version = commit_draft(draft, state_of(base)).version

    def newest_file(self) -> str:
        """Return the location of a file that was just written: the commit, or the bookmark, which stays as it is."""
        snapshot = self._snapshot
        if self._is_logged:
            return join(log_location(snapshot.location), str(CommitName(self.version)))
        write_bookmark(snapshot.store, snapshot.location, read_bookmark(snapshot.store, snapshot.location))
        return join(log_location(snapshot.location), FILE)


def _start(files: pa.Table, retention: Retention) -> Operation:
    parameters: dict[str, str | bool | int | None] = {
        "retentionCheckEnabled": retention.is_checked,
        "defaultRetentionMillis": retention.default,
    }
    if retention.specified is not None:
        parameters["specifiedRetentionMillis"] = retention.specified
    metrics = {"numFilesToDelete": files.num_rows, "sizeOfDataToDelete": pc.sum(files["size"]).as_py() or 0}
    return Operation("VACUUM START", parameters, metrics)


def _end(status: str, files: int, directories: int) -> Operation:
    metrics = {"numDeletedFiles": files, "numVacuumedDirectories": directories}
    return Operation("VACUUM END", {"status": status}, metrics)


def _check_clock(snapshot: Snapshot, path: str) -> None:
    """Compare the clock with the time that the store gave a file that was just written."""
    try:
        skew = snapshot.store.status(path).modification_time - int(time.time() * 1000)
    except FileNotFoundInStoreError:
        return  # not published yet: its catalog has the times
    if abs(skew) > _MOST_SKEW:
        raise InvalidOperationError(
            f"The clocks of this machine and of the store of '{snapshot.location}' differ by "
            f"{timedelta(milliseconds=abs(skew))}, so the ages of files are not known. Nothing was deleted. Set the "
            "clock of this machine.",
        )


def _remove_directories(snapshot: Snapshot, files: pa.Table) -> int:
    """Remove the directories that the deletion left empty; stores of objects have none."""
    if not isinstance(snapshot.store, LocalStore):
        return 0
    parents = pc.replace_substring_regex(files["path"], "/?[^/]*$", "").unique()
    return remove_empty_directories(snapshot.location, parents.to_pylist())


def _incomplete(snapshot: Snapshot, done: Deleted) -> StorageError:
    first = done.failures[0]
    return StorageError(
        f"{len(done.failures)} files of '{snapshot.location}' could not be deleted, {done.files} were. The first: "
        f"{first.message} Run the vacuum again when the cause is removed.",
        path=first.path,
    )
