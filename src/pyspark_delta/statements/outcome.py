"""From changed rows to the files of a commit: deletion vectors or rewritten files, and the metrics for the history."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors.files import deletion_vector_path
from pyspark_delta.engines.contract import first_done
from pyspark_delta.engines.row_changes import ChangedRows
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet, no_files
from pyspark_delta.protocol.identity import move_marks
from pyspark_delta.statements.contract import Rewriter
from pyspark_delta.statements.target import Target
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.transaction.deleted_rows import delete_rows
from pyspark_delta.write.written import Written, discard

_PRESERVED = {"delta.rowTracking.preserved": "true"}


@dataclass(frozen=True)
class FileChanges:
    """The files that a statement adds and removes.

    The files `removed_whole` are removed, and none of their rows stays in place. The files `updated` are removed too;
    the rows that stay are in `with_vectors` (the same files with new vectors, in `vector_file`) or in `rewritten`
    (new files). `rows` are the new rows.
    """

    rows: ChangedRows
    removed_whole: pa.Table
    updated: pa.Table
    with_vectors: pa.Table
    rewritten: Written
    vector_file: str | None = None

    @property
    def removed(self) -> pa.Table:
        """All removed files, including those that are added again with another vector."""
        return pa.concat_tables([self.removed_whole, self.updated]).combine_chunks()

    @property
    def added(self) -> pa.Table:
        """All added files."""
        parts = [part for part in (self.rows.new.files, self.rewritten.files, self.with_vectors) if part.num_rows]
        return pa.concat_tables(parts, promote_options="default") if parts else no_files()

    @property
    def written(self) -> list[str]:
        """The paths of new files, which nothing needs if the commit fails."""
        files = (self.rows.new.files, self.rewritten.files, self.rows.changes)
        paths = [path for part in files for path in part["path"].to_pylist()]
        return paths if self.vector_file is None else [*paths, self.vector_file]

    @property
    def is_nothing(self) -> bool:
        """True if no file is added or removed."""
        return not (self.removed_whole.num_rows or self.updated.num_rows or self.rows.new.files.num_rows)


def apply_deletions(
    target: Target,
    candidates: pa.Table,
    rows: ChangedRows,
    removed_whole: pa.Table,
    rewriters: Sequence[tuple[str, Rewriter]],
) -> FileChanges:
    """Remove deleted rows from their files, by vectors or by rewriting the files.

    The numbers of files in `rows` are positions in `candidates`. The files `removed_whole` are removed without reading
    them. The first of the `rewriters` that can read a file rewrites it. If that fails, the files of `rows` are deleted.
    """
    try:
        return _apply_deletions(target, candidates, rows, removed_whole, rewriters)
    except BaseException:
        discard(target.snapshot, [path for part in (rows.new.files, rows.changes) for path in part["path"].to_pylist()])
        raise


def _apply_deletions(
    target: Target,
    candidates: pa.Table,
    rows: ChangedRows,
    removed_whole: pa.Table,
    rewriters: Sequence[tuple[str, Rewriter]],
) -> FileChanges:
    snapshot = target.snapshot
    if rows.rewritten:
        removed_whole = pa.concat_tables([removed_whole, candidates.take(pa.array(rows.rewritten, pa.int64()))])
    deleted = delete_rows(snapshot.location, snapshot.storage_options, candidates, rows.deletions)
    updated, rewritten, with_vectors = deleted.updated, Written.nothing(), deleted.files.slice(0, 0)
    if updated.num_rows and target.uses_vectors:
        with_vectors = deleted.with_vectors(_prefix(target.context.random_prefix_length))
    elif updated.num_rows:
        files = deleted.readable()
        rewritten = first_done("rewrite of files", rewriters, lambda rewrite: rewrite(files)).value
    only_leave = not updated.num_rows and not rows.new.files.num_rows
    if only_leave or not rows.deletions:
        # Only whole files are removed, or rows are only inserted: readers derive the changes from the log (C162).
        discard(snapshot, rows.changes["path"].to_pylist())
        rows = replace(rows, changes=no_files())
    return FileChanges(
        rows, removed_whole, deleted.files, with_vectors, rewritten, _vector_file(snapshot.location, with_vectors)
    )


def draft_change(target: Target, changes: FileChanges, operation: Operation, reads: ReadSet) -> CommitDraft:
    """Return the draft of the commit. Rows that stay or are updated keep their ids (C341)."""
    options = target.options
    return CommitDraft(
        operation=operation,
        adds=changes.added,
        removes=changes.removed,
        changes=changes.rows.changes,
        protocol=target.protocol,
        metadata=move_marks(target.configuration, changes.rows.new.marks) or target.metadata,
        transactions=() if options.transaction is None else (options.transaction,),
        reads=reads,
        user_metadata=options.user_metadata,
        tags=_PRESERVED if target.has_row_ids else {},
        engine_info=engine_info(target.client),
    )


def file_metrics(changes: FileChanges, *, with_updated: bool = False) -> dict[str, int]:
    """Return the metrics that DELETE and UPDATE share, with delta-spark's names; sizes are bytes.

    A file that gets another vector counts neither as added nor as removed; with `with_updated`, it counts as removed.
    """
    removed, new, rewritten = changes.removed, changes.rows.new, changes.rewritten
    if changes.with_vectors.num_rows and not with_updated:
        removed = removed.filter(
            pc.invert(pc.is_in(removed["path"], value_set=changes.with_vectors["path"].combine_chunks()))
        )
    return {
        "numRemovedFiles": removed.num_rows,
        "numRemovedBytes": pc.sum(removed["size"]).as_py() or 0,
        "numAddedFiles": new.files.num_rows + rewritten.files.num_rows,
        "numAddedBytes": new.size + rewritten.size,
        "numCopiedRows": rewritten.rows + changes.rows.copied,
        "numAddedChangeFiles": changes.rows.changes.num_rows,
        **vector_metrics(changes),
    }


def vector_metrics(changes: FileChanges, stem: str = "numDeletionVectors") -> dict[str, int]:
    """Return how many deletion vectors were added, removed and updated.

    A vector that replaces another counts as added, as removed, and as updated.
    """
    old = changes.removed.filter(pc.is_valid(changes.removed["deletion_vector"]))
    updated = pc.is_in(old["path"], value_set=changes.with_vectors["path"].combine_chunks())
    return {
        f"{stem}Added": changes.with_vectors.num_rows,
        f"{stem}Removed": old.num_rows,
        f"{stem}Updated": pc.sum(updated).as_py() or 0,
    }


def _vector_file(location: str, with_vectors: pa.Table) -> str | None:
    """Return the path in the table of the file that holds the new vectors; they share one."""
    if not with_vectors.num_rows:
        return None
    path = deletion_vector_path(location, DeletionVectorDescriptor(**with_vectors["deletion_vector"][0].as_py()))
    assert path is not None
    return path.removeprefix(location.rstrip("/") + "/")


def _prefix(length: int | None) -> str:
    """Return a random directory for the file of vectors, if the table uses random prefixes."""
    return "" if length is None else "".join(random.choices(string.ascii_letters + string.digits, k=length))


def milliseconds_since(start: float) -> int:
    """Return the milliseconds since a value of `time.monotonic`."""
    return int((time.monotonic() - start) * 1000)
