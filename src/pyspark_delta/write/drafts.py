"""The draft of a write's commit: the added and removed files, and the operation for the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, no_files
from pyspark_delta.protocol.identity import move_marks
from pyspark_delta.transaction.combination import together
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.provenance import batch_operation, batch_tags, table_operation, write_metrics, write_operation
from pyspark_delta.write.replacement import Replaced, count_rows
from pyspark_delta.write.target import Target
from pyspark_delta.write.written import Written


@dataclass(frozen=True, slots=True)
class Staged:
    """The files of a write: `new` rows, rows `kept` in new files, and the files that they replace.

    `replaced` is None if the write replaces nothing. `changes` (change data files) is None if they are not needed.
    """

    new: Written
    kept: Written = field(default_factory=Written.nothing)
    replaced: Replaced | None = None
    changes: pa.Table | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of the new files, as in the log."""
        changes = [] if self.changes is None else self.changes["path"].to_pylist()
        return [*self.new.paths, *self.kept.paths, *changes]


def draft_write(request: WriteRequest, target: Target, staged: Staged, engine: str) -> CommitDraft:
    """Return the draft of a write; `engine` is for the history."""
    mode, options = request.mode, request.options
    new, kept, replaced = staged.new, staged.kept, staged.replaced
    nothing = no_files() if mode == "overwrite" else None  # of a table that did not exist
    metrics = write_metrics(
        new,
        kept,
        removed=nothing if replaced is None else replaced.removed,
        changes=staged.changes,
        deleted_rows=_deleted_rows(replaced, kept),
    )
    draft = CommitDraft(
        operation=_operation(request, target, metrics),
        adds=together(new.files, kept.files) if kept.files.num_rows else new.files,
        changes=no_files() if staged.changes is None else staged.changes,
        data_change=options.data_change,
        protocol=target.protocol,
        metadata=move_marks(target.configuration, new.marks) or target.metadata,
        transactions=() if options.transaction is None else (options.transaction,),
        domains=target.domains,
        isolation=None if options.data_change else IsolationLevel.SNAPSHOT,
        user_metadata=options.user_metadata,
        tags=batch_tags(request.batch),
        engine_info=engine_info(engine),
    )
    return draft if replaced is None else replace(draft, removes=replaced.removed, reads=replaced.reads)


def _operation(request: WriteRequest, target: Target, metrics: Mapping[str, int]) -> Operation:
    if request.batch is not None:
        return batch_operation(request.batch, metrics)
    if request.statement:
        metadata, is_managed = target.configuration.metadata, request.is_managed
        return table_operation(request.statement, request.options, metadata, metrics, is_managed=is_managed)
    return write_operation(request.mode, request.options, metrics)


def _deleted_rows(replaced: Replaced | None, kept: Written) -> int | None:
    """Return the number of replaced rows; None if it is not known or not needed."""
    if replaced is None or "stats" not in replaced.removed.column_names:
        return None
    if replaced.rows is not None:
        return replaced.rows
    before = count_rows(replaced.removed)
    return None if before is None else before - kept.rows
