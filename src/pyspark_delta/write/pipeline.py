"""The write pipeline: from the rows of a request to one commit.

The table is opened and gets the schema of the write; the rows that the write replaces are selected. The engine writes
new rows to files. The files and rows that they replace are found, and one draft is committed. Nothing is visible before
the commit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import assert_never

from pyspark_delta.changes.configuration_ranges import cdf_enabled
from pyspark_delta.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    DeltaError,
    DeltaWarning,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.logs import logger, timed
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, ReadSet, no_files
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft, never_lands
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.column_rules import check_distinct
from pyspark_delta.transaction.identity_allocation import commit_numbered
from pyspark_delta.transaction.write_plan import write_context
from pyspark_delta.write.drafts import Staged, draft_write
from pyspark_delta.write.engine import ReplacedRows, RowWriter, WritePlan, WriteRequest, WriteSession
from pyspark_delta.write.replacement import Replaced, replace_everything, replace_matching, replace_partitions
from pyspark_delta.write.selection import (
    EqualKeys,
    Everything,
    Nothing,
    On,
    Partitions,
    Selection,
    Where,
    select_rows,
)
from pyspark_delta.write.target import existing_target, new_target, target_clustering
from pyspark_delta.write.written import Written, delete_new, discard, discarded_on_error

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class CommittedWrite:
    """The version of a write, the metrics of its operation by delta-spark's names, and what the table declares then."""

    version: int
    metrics: Mapping[str, int]
    configuration: TableConfiguration | None = None


def write_rows(
    request: WriteRequest, data: StructType, session: WriteSession, rows: RowWriter, opened: Snapshot | None = None
) -> CommittedWrite | None:
    """Write rows of the schema `data` in one commit; return None if there was nothing to do.

    `opened` is the newest version of the table if the caller has opened it; otherwise the table is opened.

    Raises TableAlreadyExistsError (mode error), TableNotFoundError (`must_exist`), the errors of `plan_write` and of
    the engine, and CommitConflictError.
    """
    start = time.perf_counter()
    committed = _write_rows(request, data, session, rows, opened)
    if committed is None:
        _log.info("The write to %s had nothing to do", request.location)
    else:
        _log.info("Wrote version %d of %s, %.3f s", committed.version, request.location, time.perf_counter() - start)
    return committed


def _write_rows(
    request: WriteRequest, data: StructType, session: WriteSession, rows: RowWriter, opened: Snapshot | None
) -> CommittedWrite | None:
    check_distinct(data)
    snapshot = opened or open_table(request)
    if snapshot is None:
        return _create(request, data, session, rows)
    if request.mode == "ignore" or snapshot.holds_transaction(request.options.transaction):
        return None
    if request.mode == "error":
        if request.statement:
            raise TableAlreadyExistsError(request.location, "Use append() to add rows, or createOrReplace().")
        raise TableAlreadyExistsError(request.location)
    _warn_about_append(request)
    return _change(request, data, snapshot, session, rows)


def stage_rows(
    request: WriteRequest,
    data: StructType,
    snapshot: Snapshot,
    before: TableConfiguration,
    session: WriteSession,
    rows: RowWriter,
) -> tuple[CommitDraft, ReadSet]:
    """Write the files of a write to an existing table without a commit; return the draft that names them.

    The second value is what the rows were read from, if it is the table itself; it is not among the reads of the draft.
    `before` is what the table declares: the snapshot's declaration with the changes that the same commit makes first.
    Raises as `write_rows`.
    """
    check_distinct(data)
    _warn_about_append(request)
    plan = plan_write(request, data, snapshot, session, before=before)
    reads = _source_reads(plan, snapshot, rows)
    return draft_plan(plan, stage_plan(plan, snapshot, rows), rows.engine), reads


def open_table(request: WriteRequest) -> Snapshot | None:
    """Return the newest version of the table; None if it does not exist and may be created."""
    try:
        options = request.options
        return Snapshot.load(
            request.location, storage_options=options.files.storage_options, catalog_table=options.catalog_table
        )
    except TableNotFoundError:
        if request.must_exist:
            raise
        return None


def plan_write(
    request: WriteRequest,
    data: StructType,
    snapshot: Snapshot | None,
    session: WriteSession,
    *,
    before: TableConfiguration | None = None,
    selection: Selection | None = None,
) -> WritePlan:
    """Check a write against a version of the table, None for a table that does not exist.

    `before` is what the table declares if it differs from the snapshot; `selection` are the replaced rows if they are
    known. Raises the errors of `new_target`, `existing_target` and `select_rows`.
    """
    mode, options, zone = request.mode, request.options, session.time_zone
    if snapshot is None:
        target = new_target(request.location, data, options, session.default_properties())
        selection = Nothing()
    else:
        defaults = session.default_properties() if mode == "replace" else {}
        target = existing_target(snapshot, before or snapshot.configuration, data, mode, options, defaults)
        selection = selection or select_rows(mode, options, snapshot, zone, session.replace_where())
    files = session.file_options(target.configuration, options)
    clustering = target_clustering(target, snapshot)
    context = write_context(target.location, target.configuration, files, clustering=clustering)
    return WritePlan(request, data, target, selection, context, None if snapshot is None else snapshot.version, zone)


def stage_plan(
    plan: WritePlan,
    snapshot: Snapshot | None,
    rows: RowWriter,
    new: Written | None = None,
) -> Staged:
    """Write the files of a write. `snapshot` is the version of the plan, `new` the new rows if they are written.

    After an error, no new file stays behind.
    """
    with timed(_log, "Writing the new rows of %s", plan.target.location):
        new = new or rows.write_new(plan)
    if snapshot is None:
        return Staged(new)
    with _discarded_on_error(plan, new):
        return _staged(plan, snapshot, rows, new)


def _staged(plan: WritePlan, snapshot: Snapshot, rows: RowWriter, new: Written) -> Staged:
    """Return the files of a write to an existing table; `new` are those with the new rows."""
    replaced, matches = _find_replaced(plan, snapshot, new, rows)
    if replaced is not None and matches is not None:
        return _with_kept(plan, Staged(new, replaced=replaced), replaced, matches)
    return Staged(new, replaced=replaced)


def draft_plan(plan: WritePlan, staged: Staged, engine: str) -> CommitDraft:
    """Return the draft of the commit with the files of a write; `engine` is for the history."""
    return draft_write(plan.request, plan.target, staged, engine)


def commit_plan(plan: WritePlan, snapshot: Snapshot | None, staged: Staged, engine: str) -> CommittedWrite | None:
    """Commit the files of a write; return None if it changes nothing.

    Raises the errors of `commit_draft`; files that no commit will name are deleted.
    """
    draft = draft_plan(plan, staged, engine)
    if draft.is_empty:
        return None
    options = plan.options
    base = TableState(
        location=plan.target.location,
        storage_options=dict(options.files.storage_options),
        catalog_table=options.catalog_table,
    )
    base = base if snapshot is None else state_of(snapshot)
    try:
        state = commit_draft(draft, base)
        return CommittedWrite(state.version, draft.operation.metrics, state.configuration)
    except DeltaError as error:
        if never_lands(error, base):
            delete_new(base.location, base.storage_options, staged.paths)
        raise


def _create(request: WriteRequest, data: StructType, session: WriteSession, rows: RowWriter) -> CommittedWrite | None:
    plan = plan_write(request, data, None, session)
    return commit_plan(plan, None, stage_plan(plan, None, rows), rows.engine)


def _change(
    request: WriteRequest, data: StructType, snapshot: Snapshot, session: WriteSession, rows: RowWriter
) -> CommittedWrite | None:
    """Write to an existing table; return None if nothing changes.

    A write that replaces some rows searches for them again after a conflict.
    """
    left: int | None = None
    new: Written | None = None
    earlier: Sequence[str] = ()
    while True:
        attempt = _Attempt(request, data, session, rows, snapshot, new, earlier)
        try:
            base = state_of(snapshot)
            state = commit_numbered(base, attempt.stage, lambda: state_of(snapshot.update()))  # noqa: B023
            if state is base:
                return None
            return CommittedWrite(state.version, attempt.metrics, state.configuration)
        except (ConcurrentAppendError, ConcurrentDeleteReadError, ConcurrentDeleteDeleteError) as error:
            left = session.reexecutions() if left is None else left
            if not left or not isinstance(attempt.selection, Partitions | Where | EqualKeys | On):
                attempt.discard()
                raise
            _log.debug("The write looks for the replaced rows again after a conflict: %s", error.message)
            before, snapshot, left = snapshot, snapshot.update(), left - 1
            is_same = (before.metadata, before.protocol) == (snapshot.metadata, snapshot.protocol)
            new, earlier = attempt.new if is_same else None, attempt.written
        except BaseException as error:
            if not attempt.is_staged or never_lands(error, state_of(snapshot)):
                attempt.discard()
            raise


class _Attempt:
    """A write to one version of a table. `new` are its new rows if they are already written.

    `written` are the new files that no commit names, at first those of `earlier` attempts: the rows are read from them
    again if the source was a stream. They are deleted once they are not needed any more.
    """

    def __init__(
        self,
        request: WriteRequest,
        data: StructType,
        session: WriteSession,
        rows: RowWriter,
        snapshot: Snapshot,
        new: Written | None,
        earlier: Sequence[str],
    ) -> None:
        self._request, self._data, self._session = request, data, session
        self._rows, self._snapshot = rows, snapshot
        self.new = new
        self.selection: Selection | None = None
        self.written = earlier
        self.is_staged = False
        self.metrics: Mapping[str, int] = {}

    def stage(self, base: TableState) -> CommitDraft:
        """Write the files; return the draft that names them."""
        self.is_staged = False
        snapshot, rows = self._snapshot, self._rows
        plan = plan_write(
            self._request, self._data, snapshot, self._session, before=base.configuration, selection=self.selection
        )
        self.selection = plan.selection
        reads = _source_reads(plan, snapshot, rows)
        staged = stage_plan(plan, snapshot, rows, self.new)
        self.new = None if staged.new.marks else staged.new
        before, self.written = self.written, staged.paths
        discard(snapshot, sorted(set(before).difference(self.written)))
        draft = draft_plan(plan, staged, rows.engine)
        self.metrics = draft.operation.metrics
        self.is_staged = True
        return replace(draft, reads=draft.reads.union(reads))

    def discard(self) -> None:
        """Delete the new files."""
        discard(self._snapshot, self.written)


def _source_reads(plan: WritePlan, snapshot: Snapshot, rows: RowWriter) -> ReadSet:
    # Files that the write removes may hold rows that were added after the version that the new rows were read from.
    is_append = isinstance(plan.selection, Nothing) and plan.options.data_change
    return rows.source_reads(snapshot, None if is_append else IsolationLevel.SERIALIZABLE)


def _find_replaced(
    plan: WritePlan, snapshot: Snapshot, new: Written, rows: RowWriter
) -> tuple[Replaced | None, ReplacedRows | None]:
    """Return the files that the write removes, and how to distinguish the rows of them that stay."""
    match plan.selection:
        case Nothing():
            return None, None
        case Everything():
            return replace_everything(snapshot), None
        case Partitions():
            return replace_partitions(snapshot, new.files, plan.time_zone), None
        case Where(_, predicate):
            return replace_matching(snapshot, predicate, plan.time_zone), rows.replaced_rows(plan, snapshot, new)
        case EqualKeys() | On():
            matches = rows.matched_rows(plan, snapshot, new)
            return matches.find(), matches
        case other:
            assert_never(other)


def _with_kept(plan: WritePlan, staged: Staged, replaced: Replaced, matches: ReplacedRows) -> Staged:
    """Write the rows of partly replaced files that stay, and change data files if readers need them."""
    kept, changes = Written.nothing(), no_files()
    if replaced.partly.num_rows:
        kept = matches.write_kept(replaced)
        if kept.rows and cdf_enabled(plan.configuration) and plan.options.data_change:
            with _discarded_on_error(plan, kept):
                changes = matches.write_changes(replaced)
    return replace(staged, kept=kept, changes=changes)


def _discarded_on_error(plan: WritePlan, written: Written) -> AbstractContextManager[None]:
    return discarded_on_error(plan.target.location, plan.context.storage_options, written)


def _warn_about_append(request: WriteRequest) -> None:
    options = request.options
    asked = {
        "replaceWhere": options.replace_where,
        "replaceUsing": options.replace_using,
        "replaceOn": options.replace_on,
    }
    given = [name for name, value in asked.items() if value]
    if request.mode == "append" and given:
        warnings.warn(
            DeltaWarning(f"The option '{given[0]}' replaces nothing in mode 'append'; use mode 'overwrite' for it."),
            stacklevel=6,
        )
