"""Writing through the Python Data Source: workers write files with Arrow, and a separate process commits them.

Neither has a Spark session. So rows are matched to the table with Arrow, and rules that only Spark can compute, such as
the conditions of a table, are refused before anything is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.changes.configuration_ranges import cdf_enabled
from pyspark_delta.data.conform import conform
from pyspark_delta.data.partitions import null_empty_partitions
from pyspark_delta.data.parts import write_side_by_side
from pyspark_delta.data.reader import read_tasks, tasks_of
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, written_files
from pyspark_delta.errors import ConstraintViolationError, InvalidOperationError, TableNotFoundError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.state import TableState
from pyspark_delta.scan.planner import read_context
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.write.selection import Everything, Nothing, Partitions, Selection, Where
from pyspark_delta.spark.frames.read_options import refuse_read_options
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.source.boundary import boundary
from pyspark_delta.spark.source.time_zone import resolved_zone, zone_needed, zone_of_task
from pyspark_delta.storage import normalize_location
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.columns import check_distinct
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.transaction.write_plan import write_context
from pyspark_delta.write.drafts import Staged, draft_write
from pyspark_delta.write.options import WriteOptions, parse_options
from pyspark_delta.write.replacement import (
    Replaced,
    replace_everything,
    replace_matching,
    replace_partitions,
)
from pyspark_delta.write.target import Target, existing_target, new_target, target_clustering
from pyspark_delta.write.written import Written, has_row_ids


@dataclass
class WrittenFiles(WriterCommitMessage):
    """The files of one task, as an Arrow stream, and the time zone of its session if the task knows it."""

    files: bytes
    time_zone: str | None = None


@dataclass(frozen=True)
class SourceWrite:
    """One write through the data source. It is picklable, so that it can move between Spark's processes."""

    mode: str
    options: WriteOptions
    data: StructType
    target: Target
    version: int | None  # version of the table when the write began
    selection: Selection
    time_zone: str | None  # in which rows are selected; None for the session's, which only tasks know
    context: WriteContext

    @classmethod
    def resolve(cls, options: Mapping[str, str], schema: SparkStruct, *, overwrite: bool) -> SourceWrite:
        """Check a write before anything is written. Raises as `spark.engine.write.save` does."""
        path = options.get("path")
        if not path:
            raise InvalidOperationError(
                "Spark does not tell a data source where a catalog table is, so the rows would be lost. "
                "Nothing was written. Write to a path, with .save('/path/to/table').",
                error_class="DELTA_MISSING_PATH",
            )
        refuse_read_options(options)
        parsed, mode = parse_options(options), "overwrite" if overwrite else "append"
        data = from_spark(lambda: schema)
        check_distinct(data)
        location = normalize_location(path)
        selection: Selection = Nothing()
        time_zone: str | None = "UTC"
        snapshot: Snapshot | None = None
        version: int | None = None
        try:
            snapshot = Snapshot.load(location, storage_options=parsed.files.storage_options)
        except TableNotFoundError:
            target = new_target(location, data, parsed, {})
        else:
            target = existing_target(snapshot, snapshot.configuration, data, mode, parsed, {})
            selection, version = _select(mode, parsed, snapshot), snapshot.version
            time_zone = resolved_zone(selection, parsed.time_zone, snapshot)
        if row_rules(target.configuration):
            raise _needs_enable("the table has conditions, defaults or computed columns")
        clustering = target_clustering(target, snapshot)
        context = write_context(location, target.configuration, parsed.files, clustering=clustering)
        return cls(mode, parsed, data, target, version, selection, time_zone, context)

    def is_done(self) -> bool:
        """Return True if the table already holds this write of the application (C180)."""
        transaction, snapshot = self.options.transaction, self.snapshot()
        known = None if transaction is None or snapshot is None else snapshot.transactions().get(transaction.app_id)
        return known is not None and transaction is not None and known.version >= transaction.version

    def in_zone(self, zone: str | None) -> SourceWrite:
        """Return the same write with the zone in which it selects rows, if it is not resolved yet.

        Raises InvalidOptionError if the zone is not known, and InvalidPredicateError for functions that are evaluated
        in UTC only.
        """
        if self.time_zone is not None:
            return self
        selection, snapshot = self.selection, self.snapshot()
        if zone is None or snapshot is None:
            raise zone_needed(selection)
        if isinstance(selection, Where):
            predicate = parse_predicate(selection.text, snapshot.schema, time_zone=zone)
            selection = replace(selection, predicate=predicate)
        return replace(self, selection=selection, time_zone=zone)

    def snapshot(self) -> Snapshot | None:
        """The table when the write began."""
        if self.version is None:
            return None
        storage_options = self.options.files.storage_options
        return Snapshot.load(self.target.location, version=self.version, storage_options=storage_options)


def _select(mode: str, options: WriteOptions, snapshot: Snapshot) -> Selection:
    if mode != "overwrite":
        return Nothing()
    if options.replace_using or options.replace_on is not None:
        raise _needs_enable("the options replaceUsing and replaceOn join rows")
    if options.replace_where is not None:
        predicate = parse_predicate(options.replace_where, snapshot.schema, time_zone=options.time_zone or "UTC")
        return Where(options.replace_where, predicate, check=True)
    if options.dynamic_partitions and snapshot.configuration.partition_columns:
        return Partitions()
    return Everything()


def _needs_enable(why: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"This write needs a Spark session, since {why}: call pyspark_delta.enable(spark) first, which lets the "
        "session write Delta tables by itself. Nothing was written.",
        error_class="DELTA_WRITE_NEEDS_ENABLE",
    )


class DeltaWriter(DataSourceArrowWriter):
    """Writes the rows of tasks to data files, and commits them together."""

    def __init__(self, write: SourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of this task; return its files as the message to the commit."""
        with boundary():
            write, task, zone = self._write, TaskContext.get(), zone_of_task()
            if write.is_done():
                return WrittenFiles(_packed(written_files([])), zone)
            write = write.in_zone(zone)
            rows = (_checked(_stored(batch, write), write) for batch in iterator)
            part = task.partitionId() if task else 0
            return WrittenFiles(_packed(written_files(write_side_by_side(write.context, rows, part))), zone)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks as one version."""
        with boundary():
            if self._write.is_done():
                return
            tasks = [message for message in messages if isinstance(message, WrittenFiles)]
            write = self._write.in_zone(next((task.time_zone for task in tasks), None))
            files = pa.concat_tables([WRITTEN_SCHEMA.empty_table(), *(_unpacked(task.files) for task in tasks)])
            _commit(write, Written.of(files, write.context))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: no commit names the files."""


def _commit(write: SourceWrite, new: Written) -> None:
    snapshot, options = write.snapshot(), write.options
    replaced = None if snapshot is None else _replaced(write, snapshot, new, write.time_zone or "UTC")
    kept = Written.nothing()
    if snapshot is not None and replaced is not None and replaced.partly.num_rows:
        kept = _write_kept(write, snapshot, replaced)
    changes = new.files.slice(0, 0) if isinstance(write.selection, Where) else None
    draft = draft_write(write.mode, options, write.target, Staged(new, kept, replaced, changes), engine="PySpark")
    base = TableState(location=write.target.location, storage_options=dict(options.files.storage_options))
    commit_draft(draft, base if snapshot is None else state_of(snapshot))


def _replaced(write: SourceWrite, snapshot: Snapshot, new: Written, time_zone: str) -> Replaced | None:
    match write.selection:
        case Everything():
            return replace_everything(snapshot)
        case Partitions():
            return replace_partitions(snapshot, new.files, time_zone)
        case Where(_, predicate):
            return replace_matching(snapshot, predicate, time_zone)
        case _:
            return None


def _write_kept(write: SourceWrite, snapshot: Snapshot, replaced: Replaced) -> Written:
    """Rewrite the rows of partly replaced files that stay, in this process."""
    before = snapshot.configuration
    if has_row_ids(before) or (cdf_enabled(before) and write.options.data_change):
        raise _needs_enable("rows of the table move, whose changes or ids it keeps")
    assert isinstance(write.selection, Where)
    predicate = write.selection.predicate
    zone = write.time_zone or "UTC"
    context = read_context(snapshot.location, before, storage_options=snapshot.storage_options, time_zone=zone)
    shown = StructType(tuple(f for name in context.output if (f := before.schema.find(name)) is not None))

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in read_tasks(context, list(tasks_of(replaced.partly))):
            stays = pc.invert(pc.fill_null(evaluate(predicate, batch), False))
            yield conform(batch.filter(stays), shown, write.context.schema)

    return Written.of(written_files(write_side_by_side(write.context, rows())), write.context)


def _stored(batch: pa.RecordBatch, write: SourceWrite) -> pa.RecordBatch:
    """Return the rows with the columns of the table, as readers get them."""
    return null_empty_partitions(write.context, conform(batch, write.data, write.context.schema))


def _checked(batch: pa.RecordBatch, write: SourceWrite) -> pa.RecordBatch:
    """Return the batch.

    Raises ConstraintViolationError for a row that does not meet the condition of replaceWhere.
    """
    if not isinstance(write.selection, Where) or not batch.num_rows:
        return batch
    wrong = pc.invert(pc.fill_null(evaluate(write.selection.predicate, batch), False))
    if pc.any(wrong).as_py():
        row = batch.filter(wrong).slice(0, 1).to_pylist()[0]
        raise ConstraintViolationError(
            f"A row to write does not meet the condition of replaceWhere, '{write.selection.text}': {row}. Nothing was "
            "committed. Filter the data with the same condition, or widen the condition.",
            error_class="DELTA_REPLACE_WHERE_MISMATCH",
            sqlstate="44000",
        )
    return batch


def _packed(files: pa.Table) -> bytes:
    return pickle.dumps(files)


def _unpacked(packed: bytes) -> pa.Table:
    return pickle.loads(packed)


def make_writer(options: Mapping[str, str], schema: SparkStruct, *, overwrite: bool) -> DeltaWriter:
    """Return the writer of a write. Raises as `SourceWrite.resolve`."""
    return DeltaWriter(SourceWrite.resolve(options, schema, overwrite=overwrite))
