"""`df.write.format("delta").save(path)`: creates, appends to, or overwrites a table in one commit.

The session completes the options. The table is opened and gets the schema of the write. Rows become files. The files
and rows that they replace are found, and one draft is committed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from pyspark_delta.changes.configuration_ranges import cdf_enabled
from pyspark_delta.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    DeltaWarning,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, ReadSet, no_files
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.protocol.state import TableState
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.reexecution import reexecutions
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.write_defaults import (
    after_commit,
    default_properties,
    file_options,
    is_done,
    with_session_defaults,
)
from pyspark_delta.spark.engine.frame_reads import frame_reads
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.engine.write.change_data import write_changes, write_inserts
from pyspark_delta.spark.engine.write.job import write_frame, write_kept
from pyspark_delta.spark.engine.write.optimized import rebalance, wants_optimized_write
from pyspark_delta.spark.engine.write.row_matches import (
    ConditionMatch,
    RowMatch,
    match_condition,
    match_keys,
    replace_rows,
)
from pyspark_delta.spark.engine.write.rules import apply_rules
from pyspark_delta.spark.engine.write.selection import (
    EqualKeys,
    Everything,
    Nothing,
    On,
    Partitions,
    Selection,
    Where,
    select_rows,
)
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.identity_allocation import commit_numbered
from pyspark_delta.transaction.new_table import check_distinct
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.transaction.write_plan import write_context
from pyspark_delta.write.drafts import Staged, draft_write
from pyspark_delta.write.options import WriteOptions, parse_mode, parse_options
from pyspark_delta.write.replacement import (
    Replaced,
    replace_everything,
    replace_matching,
    replace_partitions,
)
from pyspark_delta.write.target import Target, existing_target, new_target, target_clustering
from pyspark_delta.write.written import Written, discard, has_row_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def save(
    frame: DataFrame,
    location: str,
    mode: str | None = None,
    partition_by: Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
    *,
    cluster_by: Sequence[str] = (),
) -> int | None:
    """Write a frame to the table at `location`; return the committed version, None if there was nothing to do.

    `mode` is append, overwrite, error (the default; also errorifexists) or ignore, as for DataFrameWriter. A table that
    does not exist is created. Nothing is visible before the one commit at the end; a failed write leaves the table
    unchanged.

    Raises TableAlreadyExistsError (mode error), SchemaMismatchError, ConstraintViolationError, InvalidOptionError,
    UnsupportedFeatureError with each feature of the table that is not yet written, and CommitConflictError.
    """
    parsed = parse_options(options)
    if partition_by:
        parsed = replace(parsed, partition_by=tuple(partition_by))
    if cluster_by:
        parsed = replace(parsed, cluster_by=tuple(cluster_by))
    return write_table(TableWrite(frame, location, parse_mode(mode), parsed))


@dataclass(frozen=True)
class TableWrite:
    """One write, as the user requested it.

    `mode` is append, overwrite, error, ignore or replace; replace keeps only the id and the history of the table.
    `statement` is the name of the operation if the write creates a table from a query, such as CREATE TABLE AS SELECT.
    """

    frame: DataFrame
    location: str
    mode: str
    options: WriteOptions
    must_exist: bool = False
    statement: str = ""


def write_table(write: TableWrite) -> int | None:
    """Write in one commit; return the committed version, None if there was nothing to do. Raises as `save`."""
    spark = write.frame.sparkSession
    write = replace(write, options=with_session_defaults(spark, write.options))
    data = frame_schema(write.frame)
    check_distinct(data)
    snapshot = _open(write)
    if snapshot is None:
        state = _create(spark, write, data)
    else:
        if write.mode == "error":
            if write.statement:
                raise TableAlreadyExistsError(write.location, "Use append() to add rows, or createOrReplace().")
            raise TableAlreadyExistsError(write.location)
        if write.mode == "ignore":
            return None
        if is_done(snapshot, write.options.transaction):
            after_commit(spark)
            return None
        _warn_about_append(write)
        state = _change(spark, write, data, snapshot)
    after_commit(spark)
    return state.version


def _create(spark: SparkSession, write: TableWrite, data: StructType) -> TableState:
    target = new_target(write.location, data, write.options, default_properties(spark))
    base = TableState(location=write.location, storage_options=dict(write.options.files.storage_options))
    return commit_draft(_Staging(spark, write, target, None, Nothing()).stage(data), base)


def _change(spark: SparkSession, write: TableWrite, data: StructType, snapshot: Snapshot) -> TableState:
    """Write to an existing table. A write that replaces some rows searches for them again after a conflict."""
    left: int | None = None
    new: Written | None = None
    while True:
        attempt = _Attempt(spark, write, data, snapshot, new)
        try:
            return commit_numbered(state_of(snapshot), attempt.stage, lambda: state_of(snapshot.update()))  # noqa: B023
        except (ConcurrentAppendError, ConcurrentDeleteReadError, ConcurrentDeleteDeleteError):
            left = reexecutions(spark) if left is None else left
            if not left or not isinstance(attempt.selection, Partitions | Where | EqualKeys | On):
                raise
            discard(snapshot, attempt.kept)
            before, snapshot, left = snapshot, snapshot.update(), left - 1
            is_same = (before.metadata, before.protocol) == (snapshot.metadata, snapshot.protocol)
            new = attempt.new if is_same else None


class _Attempt:
    """A write to one version of a table. `new` are its new rows if they are already written."""

    def __init__(
        self, spark: SparkSession, write: TableWrite, data: StructType, snapshot: Snapshot, new: Written | None
    ) -> None:
        self._spark, self._write, self._data, self._snapshot = spark, write, data, snapshot
        self.new = new
        self.selection: Selection | None = None
        self.kept: Sequence[str] = ()

    def stage(self, base: TableState) -> CommitDraft:
        """Write the files; return the draft that names them."""
        spark, write, snapshot = self._spark, self._write, self._snapshot
        before = base.configuration or snapshot.configuration
        target = _existing(spark, write, self._data, snapshot, before)
        if self.selection is None:
            self.selection = select_rows(spark, write.mode, write.options, snapshot, session_time_zone(spark))
        reads = _reads_of(write, snapshot, self.selection)
        staging = _Staging(spark, write, target, snapshot, self.selection, self.new)
        draft = staging.stage(self._data)
        draft = replace(draft, reads=draft.reads.union(reads))
        self.new = None if staging.new is None or staging.new.marks else staging.new
        self.kept = staging.kept
        return draft


def stage_change(
    write: TableWrite, snapshot: Snapshot, before: TableConfiguration, *, inserts_as_cdc: bool = False
) -> tuple[CommitDraft, ReadSet]:
    """Write the files of a write to an existing table without a commit; return the draft that names them.

    The second value is what the frame reads from the table itself; it is not among the reads of the draft. `before` is
    what the table declares: the snapshot's declaration with the changes that the same commit makes first. With
    `inserts_as_cdc`, rows that are only added are in change data files too, because other changes of the commit are.
    The options must be completed by the session. Raises as `save`.
    """
    spark, data = write.frame.sparkSession, frame_schema(write.frame)
    check_distinct(data)
    _warn_about_append(write)
    target = _existing(spark, write, data, snapshot, before)
    selection = select_rows(spark, write.mode, write.options, snapshot, session_time_zone(spark))
    reads = _reads_of(write, snapshot, selection)
    return _Staging(spark, write, target, snapshot, selection, inserts_as_cdc=inserts_as_cdc).stage(data), reads


def _reads_of(write: TableWrite, snapshot: Snapshot, selection: Selection) -> ReadSet:
    """Return what the frame reads from the table that it is written to. Raises as `frame_reads`."""
    # Files that the write removes may hold rows that were added after the version that the frame shows.
    is_append = isinstance(selection, Nothing) and write.options.data_change
    isolation = None if is_append else IsolationLevel.SERIALIZABLE
    return frame_reads(write.frame.sparkSession, write.frame, snapshot, "WRITE", isolation)


def _existing(
    spark: SparkSession, write: TableWrite, data: StructType, snapshot: Snapshot, before: TableConfiguration
) -> Target:
    defaults = default_properties(spark) if write.mode == "replace" else {}
    return existing_target(snapshot, before, data, write.mode, write.options, defaults)


def _open(write: TableWrite) -> Snapshot | None:
    try:
        return Snapshot.load(write.location, storage_options=write.options.files.storage_options)
    except TableNotFoundError:
        if write.must_exist:
            raise
        return None


def _warn_about_append(write: TableWrite) -> None:
    options = write.options
    asked = {
        "replaceWhere": options.replace_where,
        "replaceUsing": options.replace_using,
        "replaceOn": options.replace_on,
    }
    given = [name for name, value in asked.items() if value]
    if write.mode == "append" and given:
        warnings.warn(
            DeltaWarning(f"The option '{given[0]}' replaces nothing in mode 'append'; use mode 'overwrite' for it."),
            stacklevel=5,
        )


class _Staging:
    """Writes the files of a write, and creates its draft."""

    def __init__(
        self,
        spark: SparkSession,
        write: TableWrite,
        target: Target,
        snapshot: Snapshot | None,
        selection: Selection,
        new: Written | None = None,
        *,
        inserts_as_cdc: bool = False,
    ) -> None:
        self.new = new
        self.kept: list[str] = []
        self._inserts_as_cdc = inserts_as_cdc
        self._spark = spark
        self._write = write
        self._options = write.options
        self._target = target
        self._snapshot = snapshot
        self._selection = selection
        files = file_options(spark, target.configuration, write.options)
        clustering = target_clustering(target, snapshot)
        self._context = write_context(target.location, target.configuration, files, clustering=clustering)

    def stage(self, data: StructType) -> CommitDraft:
        """Write the files; return the draft that names them."""
        new = self.new = self.new or self._write_new(data)
        replaced, match = self._find_replaced(new)
        staged = Staged(new, replaced=replaced)
        if match is not None:
            kept, changes = self._write_kept(replaced, match, new)
            self.kept = [path for files in (kept.files, changes) for path in files["path"].to_pylist()]
            staged = Staged(new, kept, replaced, changes)
        elif self._inserts_as_cdc and new.rows:
            inserted = write_inserts(self._new_rows(new), self._target.configuration.schema, self._context)
            staged = replace(staged, changes=inserted)
        write, engine = self._write, f"PySpark/{self._spark.version}"
        return draft_write(write.mode, self._options, self._target, staged, statement=write.statement, engine=engine)

    def _write_new(self, data: StructType) -> Written:
        rules, selection = row_rules(self._target.configuration), self._selection
        if isinstance(selection, Where) and selection.check:
            check = RowCheck("replaceWhere", selection.text, CheckKind.REPLACED)
            rules = replace(rules, checks=(*rules.checks, check))
        ruled = apply_rules(self._write.frame, data, self._context, rules)
        frame = ruled.frame
        optimized = wants_optimized_write(self._spark, self._options, self._target.configuration)
        if optimized:
            frame = rebalance(frame, self._target.configuration, ruled.context.schema.names)
        return Written.of(write_frame(frame, ruled.context, few_partitions=optimized), ruled.context)

    def _find_replaced(self, new: Written) -> tuple[Replaced | None, ConditionMatch | RowMatch | None]:
        """Return the files that the write removes, and how to distinguish the rows of them that stay."""
        snapshot, time_zone = self._snapshot, session_time_zone(self._spark)
        if snapshot is None:
            return None, None
        match self._selection:
            case Nothing():
                return None, None
            case Everything():
                return replace_everything(snapshot), None
            case Partitions():
                return replace_partitions(snapshot, new.files, time_zone), None
            case Where(text, predicate):
                return replace_matching(snapshot, predicate, time_zone), ConditionMatch(text)
            case EqualKeys(keys):
                rows = match_keys(self._new_rows(new), keys)
                return replace_rows(self._spark, snapshot, rows, time_zone), rows
            case On(condition, alias):
                rows = match_condition(self._new_rows(new), condition, alias)
                return replace_rows(self._spark, snapshot, rows, time_zone), rows
            case other:
                assert_never(other)

    def _write_kept(
        self, replaced: Replaced | None, match: ConditionMatch | RowMatch, new: Written
    ) -> tuple[Written, pa.Table]:
        """Write the rows of partly replaced files that stay, and change data files if readers need them."""
        snapshot = self._snapshot
        if replaced is None or snapshot is None or not replaced.partly.num_rows:
            return Written.nothing(), no_files()
        before = snapshot.configuration
        source = FileSource(snapshot.location, before, snapshot.storage_options)
        rows = read_files(self._spark, source, replaced.partly, row_tracking=has_row_ids(before))
        kept = write_kept(match.kept(rows), before, self._context)
        if not kept.rows or not cdf_enabled(self._target.configuration) or not self._options.data_change:
            return kept, no_files()
        deleted = match.matched(read_files(self._spark, source, replaced.removed))
        after = self._target.configuration.schema
        return kept, write_changes(deleted, self._new_rows(new), before.schema, after, self._context)

    def _new_rows(self, new: Written) -> DataFrame:
        """Return the rows just written, from their files, so that the data is computed only once."""
        target = self._target
        storage_options = self._context.storage_options
        return read_files(self._spark, FileSource(target.location, target.configuration, storage_options), new.files)
