"""Streams that the Python Data Source writes: tasks write files, and a process for each batch commits them.

Tasks learn the id of the query from Spark. A batch that the table holds is not committed again; its files stay behind
until VACUUM, because only the commit opens the table. A new table is made when the query starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.data.parts import write_side_by_side
from pyspark_delta.data.writer import WRITTEN_SCHEMA, written_files
from pyspark_delta.engines.arrow.new_rows import BoundRows
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.batches import QUERY_ID
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.source.boundary import boundary
from pyspark_delta.spark.source.rules import bind_rules, needs_enable, new_rows
from pyspark_delta.spark.source.writer import TaskRows, compact_small_files, packed, unpacked
from pyspark_delta.storage import normalize_location
from pyspark_delta.streaming.checkpoint import planned_batch, query_id_of
from pyspark_delta.transaction.column_rules import check_distinct
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.write.engine import StreamBatch, WritePlan, WriteRequest, WriteSession
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.pipeline import commit_plan, open_table, plan_write, stage_plan
from pyspark_delta.write.repeated_batches import check_repeated
from pyspark_delta.write.stream_options import check_no_void, parse_stream_options
from pyspark_delta.write.stream_target import create_for_stream


@dataclass
class WrittenBatch(WriterCommitMessage):
    """The files of one task, as a pickled Arrow table, and the id of the query."""

    files: bytes
    query_id: str | None


@dataclass(frozen=True)
class StreamSourceWrite:
    """What a query writes; picklable. `plan` was made when it started, with the `rules` of the table. `checkpoint` is
    its location, if it is known.
    """

    plan: WritePlan
    rules: BoundRows | None
    checkpoint: str | None

    @classmethod
    def resolve(cls, options: Mapping[str, str], schema: SparkStruct, *, overwrite: bool) -> StreamSourceWrite:
        """Check the options and columns of a query, create its table if there is none, and return what it writes.

        Raises as `parse_stream_options` and `plan_write`, and InvalidOperationError for a table that needs a session.
        """
        path = options.get("path")
        if not path:
            raise InvalidOptionError(
                "Spark does not tell a data source where a catalog table is. Nothing was started. Write to a path, "
                "with .start('/path/to/table').",
                error_class="DELTA_MISSING_PATH",
            )
        parsed = parse_stream_options({k: v for k, v in options.items() if k.lower() != "path"}, complete=overwrite)
        data = from_spark(lambda: schema)
        check_distinct(data)
        check_no_void(data)
        location = normalize_location(path)
        request = WriteRequest(location, "overwrite" if overwrite else "append", parsed)
        snapshot = open_table(request) or _created(location, data, parsed)
        plan = plan_write(request, data, snapshot, WriteSession("UTC"))
        if plan.configuration.metadata.schema_string != snapshot.metadata.schema_string:
            raise needs_enable("the stream changes the columns of the table")
        return cls(plan, bind_rules(plan), options.get("checkpointLocation"))

    def batch(self, query_id: str, number: int) -> WriteRequest:
        """Return the request that writes a batch."""
        request = self.plan.request
        options = replace(request.options, transaction=SetTransaction(app_id=query_id, version=number))
        mode = "Append" if request.mode == "append" else "Complete"
        plan = None if self.checkpoint is None else planned_batch(normalize_location(self.checkpoint), number)
        return replace(request, options=options, batch=StreamBatch(query_id, number, mode, plan), must_exist=True)

    def newest(self, request: WriteRequest) -> Snapshot | None:
        """Return the newest version of the table; None if it holds the batch.

        Raises StreamDataLossError if it holds another batch of that number.
        """
        snapshot = open_table(request)
        if snapshot is None or not snapshot.holds_transaction(request.options.transaction):
            return snapshot
        assert request.batch is not None
        check_repeated(snapshot, request.batch)
        return None

    def planned(self, request: WriteRequest, snapshot: Snapshot) -> WritePlan:
        """Return the plan of a batch. Raises InvalidOperationError if the files have not the columns of the table."""
        plan = plan_write(request, self.plan.data, snapshot, WriteSession("UTC"))
        if _declared(plan) != _declared(self.plan):
            raise InvalidOperationError(
                f"The table '{plan.target.location}' has other columns, rules or partitioning, or another id, than "
                "when the query started. The batch was not committed. Start the query again with the same checkpoint.",
                error_class="DELTA_METADATA_CHANGED",
            )
        return plan


class DeltaStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a query to a Delta table."""

    def __init__(self, write: StreamSourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenBatch:
        """Write the rows of this task; return its files for `commit`."""
        with boundary():
            plan, task = self._write.plan, TaskContext.get()
            rows = new_rows(plan, self._write.rules, iterator)
            part = task.partitionId() if task else 0
            query = task.getLocalProperty(QUERY_ID) if task else None
            return WrittenBatch(packed(written_files(write_side_by_side(plan.context, rows, part))), query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the files of a batch as one version, unless the table holds the batch."""
        with boundary():
            tasks = [message for message in messages if isinstance(message, WrittenBatch)]
            query = next((task.query_id for task in tasks if task.query_id is not None), None) or self._query_id()
            request = self._write.batch(query, batchId)
            snapshot = self._write.newest(request)
            if snapshot is None:
                return
            plan = self._write.planned(request, snapshot)
            files = pa.concat_tables([WRITTEN_SCHEMA.empty_table(), *(unpacked(task.files) for task in tasks)])
            rows = TaskRows(files)
            committed = commit_plan(plan, snapshot, stage_plan(plan, snapshot, rows), rows.engine)
            if committed is not None:  # the transaction of a batch is always new
                compact_small_files(plan, committed)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: no commit names the files."""

    def _query_id(self) -> str:
        checkpoint = self._write.checkpoint
        if checkpoint is None:
            raise InvalidOperationError(
                "The id of the streaming query is not known, so that a repeated batch could be written twice. Give the "
                "location of the checkpoint as option('checkpointLocation', ...), or call pyspark_delta.enable(spark).",
                error_class="DELTA_STREAMING_QUERY_UNKNOWN",
                sqlstate="55000",
            )
        return query_id_of(normalize_location(checkpoint))


def make_stream_writer(options: Mapping[str, str], schema: SparkStruct, *, overwrite: bool) -> DeltaStreamWriter:
    """Return the writer of a query. Raises as `StreamSourceWrite.resolve`."""
    return DeltaStreamWriter(StreamSourceWrite.resolve(options, schema, overwrite=overwrite))


def _created(location: str, data: StructType, options: WriteOptions) -> Snapshot:
    """Create the table of a stream, and return it."""
    create_for_stream(location, data, options, TaskRows.engine)
    return Snapshot.load(location, storage_options=options.files.storage_options)


def _declared(plan: WritePlan) -> tuple[object, ...]:
    metadata = plan.configuration.metadata
    return metadata.id, metadata.schema_string, metadata.partition_columns, row_rules(plan.configuration)
