"""The deletion of a vacuum: START in the log, files in batches with a look at the log between, END in the log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import html_facts
from pyspark_delta.errors import FileNotFoundInStoreError, InvalidOperationError, StorageError
from pyspark_delta.log.listing import log_location
from pyspark_delta.log.names import CommitName
from pyspark_delta.maintenance.vacuum.bookmark import Bookmark, write_bookmark
from pyspark_delta.maintenance.vacuum.references import References
from pyspark_delta.maintenance.vacuum.removes import commits_between, named_paths
from pyspark_delta.maintenance.vacuum.request import Retention
from pyspark_delta.parallel import map_requests
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.local_tree import remove_empty_directories
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

_BATCH = 1000  # files of one request
_GROUP = 16  # batches between two looks at the log
_AT_ONCE = 4  # requests
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


@dataclass
class _Progress:
    files: int = 0
    size: int = 0
    kept: int = 0
    failures: list[StorageError] = field(default_factory=list)


def run_vacuum(
    snapshot: Snapshot,
    files: pa.Table,
    retention: Retention,
    bookmark: Bookmark,
    oldest_readable_version: int,
    engine_info: str,
) -> VacuumResult:
    """Delete files, and log it as delta-spark does.

    A file that a concurrent commit brings back, such as a RESTORE, stays if the commit is made before the file's batch
    is deleted. Raises InvalidOperationError if the clocks of this process and of the store differ by more than five
    minutes, before anything is deleted; StorageError if some files could not be deleted, after the others.
    """
    start = _commit(snapshot, _start(files, retention), engine_info)
    done = _Progress()
    try:
        _check_clock(snapshot, start)
        _delete(snapshot, files, done)
        if done.failures:
            raise _incomplete(snapshot, done)
        directories = _remove_directories(snapshot, files)
        write_bookmark(snapshot.store, snapshot.location, bookmark)
    except Exception:
        _commit(snapshot.update(), _end("FAILED", done.files, 0), engine_info)
        raise
    version = _commit(snapshot.update(), _end("COMPLETED", done.files, directories), engine_info)
    return VacuumResult(version, done.files, done.size, directories, oldest_readable_version, done.kept)


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


def _commit(snapshot: Snapshot, operation: Operation, engine_info: str) -> int:
    return commit_draft(CommitDraft(operation=operation, engine_info=engine_info), state_of(snapshot)).version


def _check_clock(snapshot: Snapshot, version: int) -> None:
    """Compare the clock with the time that the store gave the commit that was just made."""
    path = join(log_location(snapshot.location), str(CommitName(version)))
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


def _delete(snapshot: Snapshot, files: pa.Table, done: _Progress) -> None:
    """Delete the files, a group of batches after another; files that commits after the plan add are kept."""
    added: list[pa.Array] = []
    returned = References.of(added)
    for start in range(0, files.num_rows, _BATCH * _GROUP):
        group = files.slice(start, _BATCH * _GROUP)
        newest = snapshot.update()
        if newest.version > snapshot.version:
            commits = commits_between(newest, snapshot.version + 1, newest.version)
            added += named_paths(newest, commits, "add")
            returned = References.of(added)
            snapshot = newest
        kept = returned.hold(group["path"].combine_chunks())
        done.kept += int(kept.sum())
        _delete_group(snapshot, group.filter(pa.array(~kept)), done)


def _remove_directories(snapshot: Snapshot, files: pa.Table) -> int:
    """Remove the directories that the deletion left empty; stores of objects have none."""
    if not isinstance(snapshot.store, LocalStore):
        return 0
    parents = pc.replace_substring_regex(files["path"], "/?[^/]*$", "").unique()
    return remove_empty_directories(snapshot.location, parents.to_pylist())


def _delete_group(snapshot: Snapshot, group: pa.Table, done: _Progress) -> None:
    def delete(batch: pa.Table) -> tuple[pa.Table, list[StorageError]]:
        paths = [join(snapshot.location, path) for path in batch["path"].to_pylist()]
        try:
            snapshot.store.delete(paths)
        except StorageError:
            return _one_by_one(snapshot, batch, paths)
        return batch, []

    at_once = 1 if isinstance(snapshot.store, LocalStore) else _AT_ONCE
    batches = [group.slice(start, _BATCH) for start in range(0, group.num_rows, _BATCH)]
    for deleted, failures in map_requests(delete, batches, at_once):
        done.files += deleted.num_rows
        done.size += pc.sum(deleted["size"]).as_py() or 0
        done.failures += failures


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


def _incomplete(snapshot: Snapshot, done: _Progress) -> StorageError:
    first = done.failures[0]
    return StorageError(
        f"{len(done.failures)} files of '{snapshot.location}' could not be deleted, {done.files} were. The first: "
        f"{first.message} Run the vacuum again when the cause is removed.",
        path=first.path,
    )
