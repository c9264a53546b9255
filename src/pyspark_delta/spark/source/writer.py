"""Writes through the Python Data Source: workers write files with Arrow, and a separate process commits them.

Neither has a Spark session. So Arrow finds the rows to replace and applies the rules of the table, and a write that
needs Spark is refused before anything is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.data.parts import write_side_by_side
from pyspark_delta.data.writer import WRITTEN_SCHEMA, written_files
from pyspark_delta.engines.arrow.new_rows import BoundRows
from pyspark_delta.engines.arrow.write import condition_rows
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.read_options import refuse_read_options
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.source.boundary import boundary
from pyspark_delta.spark.source.rules import bind_rules, needs_enable, new_rows
from pyspark_delta.spark.source.time_zone import resolved_zone, zone_needed, zone_of_task
from pyspark_delta.storage import normalize_location
from pyspark_delta.transaction.column_rules import check_distinct
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.write.engine import MatchedRows, ReplacedRows, WritePlan, WriteRequest, WriteSession
from pyspark_delta.write.options import parse_options
from pyspark_delta.write.pipeline import CommittedWrite, commit_plan, open_table, plan_write, stage_plan
from pyspark_delta.write.selection import EqualKeys, On, Where
from pyspark_delta.write.written import Written


@dataclass
class WrittenFiles(WriterCommitMessage):
    """The files of one task, as a pickled Arrow table, and the time zone of its session if the task knows it."""

    files: bytes
    time_zone: str | None = None


@dataclass(frozen=True)
class SourceWrite:
    """One write through the data source. It is picklable, so that it can move between Spark's processes.

    `has_zone` is False if rows are selected in the session's time zone, which only tasks know. `rules` are those of the
    table.
    """

    plan: WritePlan
    has_zone: bool
    rules: BoundRows | None = None

    @classmethod
    def resolve(cls, options: Mapping[str, str], schema: SparkStruct, *, overwrite: bool) -> SourceWrite:
        """Check a write, and return it. Nothing is written yet.

        Raises as `plan_write`, and InvalidOperationError for a write without a path or one that needs a session.
        """
        path = options.get("path")
        if not path:
            raise InvalidOperationError(
                "Spark does not tell a data source where a catalog table is, so the rows would be lost. "
                "Nothing was written. Write to a path, with .save('/path/to/table').",
                error_class="DELTA_MISSING_PATH",
            )
        refuse_read_options(options)
        parsed = parse_options(options)
        data = from_spark(lambda: schema)
        check_distinct(data)
        request = WriteRequest(normalize_location(path), "overwrite" if overwrite else "append", parsed)
        snapshot = open_table(request)
        plan = plan_write(request, data, snapshot, WriteSession(parsed.time_zone or "UTC"))
        if isinstance(plan.selection, EqualKeys | On):
            raise needs_enable("the options replaceUsing and replaceOn need a join")
        rules = bind_rules(plan)
        zone = "UTC" if snapshot is None else resolved_zone(plan.selection, parsed.time_zone, snapshot)
        return cls(replace(plan, time_zone=zone or "UTC"), zone is not None, rules)

    def is_done(self) -> bool:
        """Return True if the table held the application transaction of this write when the write began (C180)."""
        transaction = self.plan.options.transaction
        snapshot = None if transaction is None else self.snapshot()
        return snapshot is not None and snapshot.holds_transaction(transaction)

    def in_zone(self, zone: str | None) -> WritePlan:
        """Return the plan. If it selects rows in the session's time zone, `zone` is that zone, or None if unknown.

        Raises InvalidOptionError if the zone is not known, and InvalidPredicateError for functions that are evaluated
        in UTC only.
        """
        plan = self.plan
        if self.has_zone:
            return plan
        selection, snapshot = plan.selection, self.snapshot()
        if zone is None or snapshot is None:
            raise zone_needed(selection)
        if isinstance(selection, Where):
            predicate = parse_predicate(selection.text, snapshot.schema, time_zone=zone)
            selection = replace(selection, predicate=predicate)
        return replace(plan, selection=selection, time_zone=zone)

    def snapshot(self) -> Snapshot | None:
        """Return the version of the table when the write began; None if the table did not exist."""
        plan = self.plan
        if plan.version is None:
            return None
        storage_options = plan.options.files.storage_options
        return Snapshot.load(plan.target.location, version=plan.version, storage_options=storage_options)


class DeltaWriter(DataSourceArrowWriter):
    """Writes the rows of tasks to data files, and commits them together."""

    def __init__(self, write: SourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of this task; return its files for `commit`."""
        with boundary():
            write, task, zone = self._write, TaskContext.get(), zone_of_task()
            if write.is_done():
                return WrittenFiles(packed(written_files([])), zone)
            plan = write.in_zone(zone)
            rows = new_rows(plan, write.rules, iterator)
            part = task.partitionId() if task else 0
            return WrittenFiles(packed(written_files(write_side_by_side(plan.context, rows, part))), zone)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks as one version."""
        with boundary():
            if self._write.is_done():
                return
            tasks = [message for message in messages if isinstance(message, WrittenFiles)]
            plan = self._write.in_zone(next((task.time_zone for task in tasks), None))
            files = pa.concat_tables([WRITTEN_SCHEMA.empty_table(), *(unpacked(task.files) for task in tasks)])
            rows, snapshot = TaskRows(files), self._write.snapshot()
            committed = commit_plan(plan, snapshot, stage_plan(plan, snapshot, rows), rows.engine)
            if committed is not None:
                compact_small_files(plan, committed)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: no commit names the files."""


@dataclass(frozen=True)
class TaskRows:
    """The rows that tasks have written to `files` (`RowWriter`). This process rewrites the rows that stay."""

    files: pa.Table
    engine: str = "PySpark"

    def source_reads(self, snapshot: Snapshot, isolation: IsolationLevel | None) -> ReadSet:
        """Return nothing: Spark does not tell a data source what the rows were read from."""
        return ReadSet()

    def write_new(self, plan: WritePlan) -> Written:
        """Return the files of the tasks."""
        return Written.of(self.files, plan.context)

    def replaced_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> ReplacedRows:
        """Return the rows that meet the condition of replaceWhere."""
        return condition_rows(plan, snapshot, new)

    def matched_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> MatchedRows:
        """Raise InvalidOperationError: a data source joins no rows."""
        raise needs_enable("the options replaceUsing and replaceOn need a join")


def compact_small_files(plan: WritePlan, committed: CommittedWrite) -> None:
    """Compact what the commit left in too many small files, if the table has auto compaction enabled."""
    # Workers, which only write files, do not need these modules.
    from pyspark_delta.maintenance.auto_compaction import compact_after
    from pyspark_delta.snapshot.cache import latest_snapshot

    def latest() -> Snapshot:
        return latest_snapshot(plan.target.location, plan.options.files.storage_options)

    compact_after(latest, committed.version, committed.configuration, engine_info=engine_info(TaskRows.engine))


def packed(files: pa.Table) -> bytes:
    """Return the files of a task for its commit message."""
    return pickle.dumps(files)


def unpacked(message: bytes) -> pa.Table:
    """Return the files of the message of a task."""
    return pickle.loads(message)


def make_writer(options: Mapping[str, str], schema: SparkStruct, *, overwrite: bool) -> DeltaWriter:
    """Return the writer of a write. Raises as `SourceWrite.resolve`."""
    return DeltaWriter(SourceWrite.resolve(options, schema, overwrite=overwrite))
