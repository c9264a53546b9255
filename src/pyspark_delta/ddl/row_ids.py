"""Enable row tracking on a table with files: every file gets its row ids first (Row Tracking; C325, C336).

Once the table supports the feature, every new file is numbered when it is committed. Existing files are then committed
again, batch by batch, which numbers them. When all files have ids, a last commit enables row tracking.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.data.record_counts import with_record_counts
from pyspark_delta.ddl.change import CommittedChange, TableChange, commit_change, draft_change
from pyspark_delta.ddl.protocol import add_feature
from pyspark_delta.errors import CommitConflictError, InvalidOperationError
from pyspark_delta.features import Feature, is_active, is_requested, is_supported
from pyspark_delta.log.request import FileRequest
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.properties import ROW_TRACKING_SUSPENDED
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft
from pyspark_delta.transaction.base import state_of

FILES_PER_COMMIT = 100_000  # as in delta-spark: concurrent writers can still read such a commit at once

_FEATURE = Feature.ROW_TRACKING
_FEWEST_FILES = 1000
_MOST_CONFLICTS = 100  # conflicts in a row without a successful batch
_COLUMNS = tuple(field.name for field in FILE_FIELDS)


def promises_row_ids(change: TableChange, snapshot: Snapshot) -> bool:
    """True if a change enables row tracking for files that may have no row ids."""
    before = snapshot.configuration
    enabled = is_active(before, _FEATURE)
    wanted = is_requested(replace(before, metadata=change.metadata), _FEATURE)
    return wanted and not enabled and snapshot.num_files() > 0


def enable_row_ids(
    make: Callable[[Snapshot], TableChange],
    snapshot: Snapshot,
    *,
    engine_info: str = "",
    policy: AttemptPolicy | None = None,
    files_per_commit: int = FILES_PER_COMMIT,
) -> CommittedChange:
    """Number all files of the table, in as many commits as needed, and then commit the change that `make` returns.

    Other writers may continue: a batch that conflicts with them is repeated on the current state of the table. Files
    without statistics are opened to count their rows. An interrupted run is continued by the next one.

    Raises InvalidOperationError, before anything is written, if the result breaks a rule of the table's features;
    CommitConflictError; DataFileError for a file that cannot be opened.
    """
    policy = policy or AttemptPolicy()
    draft_change(make(snapshot), snapshot.configuration, keeps_files=True, complying=(_FEATURE,))
    support = add_feature(snapshot.configuration, _FEATURE)
    if support is not None:
        commit_change(support, snapshot, engine_info=engine_info, policy=policy)
        snapshot = snapshot.update()
    snapshot = number_files(snapshot, files_per_commit, engine_info=engine_info, policy=policy)
    # A writer that adds files after this snapshot numbers them, or changes the protocol and conflicts.
    return commit_change(make(snapshot), snapshot, engine_info=engine_info, policy=policy, complying=(_FEATURE,))


def number_files(
    snapshot: Snapshot, size: int = FILES_PER_COMMIT, *, engine_info: str = "", policy: AttemptPolicy | None = None
) -> Snapshot:
    """Assign row ids to the files that have none, `size` in a commit; return a snapshot in which every file has them.

    The table supports row tracking. Raises InvalidOperationError if another writer suspends or drops it,
    CommitConflictError, and DataFileError for a file that cannot be opened.
    """
    policy = policy or AttemptPolicy()
    number = conflicts = 0
    while True:
        _check_numbering(snapshot)
        files = _unnumbered(snapshot, size)
        if not files.num_rows:
            return snapshot
        draft = CommitDraft(
            operation=Operation("ROW TRACKING BACKFILL", {"batchId": str(number)}),
            adds=with_record_counts(files, snapshot.location, snapshot.storage_options),
            data_change=False,
            reads=ReadSet(paths=frozenset(files.column("path").to_pylist())),
            engine_info=engine_info,
        )
        try:
            commit_draft(draft, state_of(snapshot), policy=policy)
        except CommitConflictError:  # the files have changed: load the current state
            conflicts += 1
            if conflicts > _MOST_CONFLICTS:
                raise
            size = max(min(size, _FEWEST_FILES), size // 2)
        else:
            number, conflicts = number + 1, 0
        snapshot = snapshot.update()


def _check_numbering(snapshot: Snapshot) -> None:
    """Raise an error if commits no longer assign row ids, because another writer has changed the table."""
    if not is_supported(snapshot.configuration, _FEATURE) or ROW_TRACKING_SUSPENDED.of(snapshot.properties):
        raise InvalidOperationError(
            f"Version {snapshot.version} of '{snapshot.location}' no longer assigns row ids to files: the feature "
            f"{_FEATURE} was dropped, or {ROW_TRACKING_SUSPENDED.name} was set, while its files were being numbered. "
            "Not all files have row ids."
        )


def _unnumbered(snapshot: Snapshot, limit: int) -> pa.Table:
    """Return at most `limit` files without row ids or commit version, with all their columns in the log."""
    found: list[pa.RecordBatch] = []
    missing = 0
    with closing(_batches(snapshot)) as batches:
        for batch in batches:
            ids, versions = batch.column("base_row_id"), batch.column("default_row_commit_version")
            batch = batch.filter(pc.or_(pc.is_null(ids), pc.is_null(versions))).slice(0, limit - missing)
            found.append(batch)
            missing += batch.num_rows
            if missing >= limit:
                break
    return pa.Table.from_batches(found, pa.schema(FILE_FIELDS))


def _batches(snapshot: Snapshot) -> Generator[pa.RecordBatch, None, None]:
    yield from snapshot.read_files(FileRequest(_COLUMNS))
