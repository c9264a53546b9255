"""Streams of the Python Data Source: Spark plans batches in one Python process, and workers read them into Arrow.

Offsets are those of the native source, as JSON objects, so that a checkpoint can change hands. The planner stays in the
process that plans, for the whole run of a query; tasks get files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.data.reader import read_tasks
from pyspark_delta.engines.tasks import group_files
from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import all_of
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import arrow_schema
from pyspark_delta.spark.frames.schemas import differences, to_spark
from pyspark_delta.spark.frames.stream_options import StreamRead
from pyspark_delta.spark.source.arrow import conform
from pyspark_delta.spark.source.boundary import boundary
from pyspark_delta.spark.source.reader import FilePartition, require_arrow
from pyspark_delta.storage.paths import to_hadoop
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.checkpoint import checkpoint_above
from pyspark_delta.streaming.contents import BatchFiles
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.planner import StreamPlanner
from pyspark_delta.streaming.schema_log import outside_checkpoint, source_path

_BEGINNING = {"beginning": True}
"""The initial offset, which the options determine when the first batch is planned. Checkpoints do not contain it."""


@dataclass(frozen=True)
class StreamRequest:
    """A stream of a table, which can be pickled."""

    read: StreamRead

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> StreamRequest:
        """Parse the options. Raises InvalidOptionError."""
        return cls(StreamRead.parse(None, options))

    def planner(self) -> StreamPlanner:
        """Return a planner with the newest schema of the table."""
        snapshot = Snapshot.load(self.read.location, storage_options=self.read.storage_options)
        return StreamPlanner(snapshot, self.read.options)

    def spark_schema(self) -> SparkStruct:
        """Return the schema of the rows."""
        return to_spark(self.planner().schema)


class DeltaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows of a table as a stream."""

    def __init__(self, request: StreamRequest, schema: SparkStruct) -> None:
        self._request, self._schema = request, schema
        self._bound: Offset | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Tasks do not plan, and the planner holds what was read of the log.
        return {name: value for name, value in self.__dict__.items() if name != "_planner"}

    @cached_property
    def _planner(self) -> StreamPlanner:
        planner = self._request.planner()
        check_schema(self._request, to_spark(planner.schema), self._schema)
        place_schema_log(self._request.read, planner)
        return planner

    def initialOffset(self) -> dict[str, Any]:
        return dict(_BEGINNING)

    def getDefaultReadLimit(self) -> ReadLimit:
        limits = self._request.read.options.limits
        if limits.files is not None:
            return ReadMaxFiles(min(limits.files, 2**31 - 1))
        return ReadAllAvailable() if limits.bytes is None else ReadMaxBytes(limits.bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        with boundary():
            self._bound = self._planner.end_of_table()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with boundary():
            position = self._position(start)
            end = self._planner.latest(position, self._limits(limit), self._bound)
            return start if end is None or end == position else _to_dict(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        with boundary():
            return _to_dict(self._planner.known_end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with boundary():
            parts = self._planner.batch(self._position(start), self._planner.parse(orjson.dumps(end).decode()))
            return [
                FilePartition(group)
                for part in parts
                for group in group_files(self._context(part), part.files, os.cpu_count() or 1)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with boundary():
            # Spark passes a partition of its own if there is nothing to read.
            if isinstance(partition, FilePartition):
                expected = arrow_schema(self._schema)
                for batch in read_tasks(partition.group.context, partition.group.tasks()):
                    if batch.num_rows:
                        yield conform(batch, expected)

    def commit(self, end: dict[str, Any]) -> None:
        with boundary():
            position = self._position(end)
            if position is not None:
                self._planner.release(position)

    def _context(self, part: BatchFiles) -> ReadContext:
        """Return how tasks read files: the rows of the batch that the option `where` selects."""
        read, fields = self._request.read, self._planner.schema.fields
        where, schema = read.options.where, part.source.schema
        wanted = None if where is None else parse_predicate(where, schema, time_zone=read.time_zone)
        return part.source.read_context(fields, time_zone=read.time_zone, residual=all_of(wanted, part.only))

    def _position(self, offset: dict[str, Any]) -> Offset | None:
        """Return the offset; None for the initial one."""
        return None if offset == _BEGINNING else self._planner.parse(orjson.dumps(offset).decode())

    def _limits(self, limit: ReadLimit) -> Limits:
        if limit == self.getDefaultReadLimit():
            return self._request.read.options.limits  # Spark has no limit of files and bytes for a Python data source
        return Limits(getattr(limit, "max_files", None), getattr(limit, "max_bytes", None))


def make_stream_reader(request: StreamRequest, schema: SparkStruct) -> DataSourceStreamReader:
    """Return the reader.

    Raises SchemaMismatchError, and UnsupportedTableError for a type that Spark does not accept.
    """
    require_arrow(schema)
    check_schema(request, request.spark_schema(), schema)
    return DeltaStreamReader(request, schema)


def place_schema_log(read: StreamRead, planner: StreamPlanner) -> None:
    """Name the source for its schema log, which must lie below a checkpoint. Raises StreamSchemaError.

    Spark tells a data source neither the checkpoint nor the number of the source. A new log names the first one, which
    is the only one of most queries.
    """
    location = read.options.schema_location
    if location is None:
        return
    checkpoint = checkpoint_above(location, read.storage_options)
    if checkpoint is None:
        raise outside_checkpoint(location, None)
    planner.track_source(source_path(to_hadoop(checkpoint), 0), is_known=False)


def check_schema(request: StreamRequest, found: SparkStruct, given: SparkStruct) -> None:
    """Raise SchemaMismatchError if the schema of a DataFrame is not that of the table."""
    problems = differences(expected=found, given=given)
    if problems:
        raise SchemaMismatchError(
            f"The schema of the DataFrame is not that of '{request.read.location}': {'; '.join(problems)}. Leave out "
            ".schema(...); if the table has changed, load it again with spark.readStream and keep the checkpoint.",
            error_class="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
        )


def _to_dict(offset: Offset) -> dict[str, Any]:
    values: dict[str, Any] = orjson.loads(offset.to_json())
    return values
