"""The Spark job that writes data files. Each task writes its rows with Arrow and returns one small row per file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as sf
from pyspark import TaskContext

from pyspark_delta.data.offsets import with_offsets
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext
from pyspark_delta.engines.tasks import ArrowTask, Exchange, ItemTask, pickle_items, raise_failure, run_items
from pyspark_delta.engines.write_task import RESULT, write_rows
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.planner import KEPT_ROW_TRACKING_FIELDS
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.conf.arrow import collect_arrow, frame_of_arrow, spark_schema
from pyspark_delta.spark.conf.cores import cores_of
from pyspark_delta.spark.conf.temporary import temporary_conf
from pyspark_delta.spark.conf.worker_python import missing_package, prepare_workers
from pyspark_delta.spark.engine.write.alignment import align
from pyspark_delta.spark.frames.exchange_by_id import repartitioned_by_id
from pyspark_delta.spark.frames.tasks import MOST_TASKS
from pyspark_delta.spark.hadoop.tasks import with_hadoop_access
from pyspark_delta.write.change_data import CHANGE_TYPE, change_context, change_files
from pyspark_delta.write.written import Written, with_row_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '(pyspark_delta|pyarrow|orjson|numpy)")
_LOCAL_TASKS = "spark.sql.leafNodeDefaultParallelism"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# PySpark resolves the columns of a job by name again, and fails on names with dots.
_RESOLVED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Rows sent to a worker at once. Workers collect them into row groups, so this only affects the transfer overhead.
_ROWS_AT_ONCE = 64_000
_BINARIES_AT_ONCE = 8


def write_frame(frame: DataFrame, context: WriteContext, *, few_partitions: bool = False) -> pa.Table:
    """Write the rows of a frame; return the files as a table of the schema `WRITTEN_SCHEMA`.

    The frame has the columns of the context, then the column of violations if the context has checks. Spark sorts the
    rows of a task by table partition, unless `few_partitions`: then an `Exchange` made the frame, and workers write the
    partitions of a task side by side. This is faster, but makes more files if a task has many rows.

    Raises the DeltaError of a failed task with its own class. Files of other tasks remain, but no commit names them.
    """
    partitioning = list(context.partition_columns)
    if not few_partitions and not all(map(_RESOLVED_NAME.fullmatch, context.schema.names)):
        frame = _numbered(frame, len(context.schema) + bool(context.checks))
        partitioning = [f"c{context.schema.names.index(name)}" for name in partitioning]
    if partitioning and not few_partitions:
        frame = frame.sortWithinPartitions(*partitioning)  # so that a task has one file open at a time
    rows = run_on_workers(frame, partial(write_partition, context, few_partitions), RESULT)
    return rows.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA)


def _numbered(frame: DataFrame, columns: int) -> DataFrame:
    """Return the frame with columns named c0, c1 and so on; workers use positions."""
    return frame.toDF(*(f"c{position}" for position in range(columns)))


def write_kept(frame: DataFrame, before: TableConfiguration, context: WriteContext) -> Written:
    """Write rows that the table already has to new files, with their ids if the table tracks rows.

    `before` is the configuration of the table under which the rows were read. Row ids and row commit versions are
    stored in columns of their own, because the defaults of the new files differ (C324, C326).
    """
    extended = with_row_ids(before, context)
    if extended is context:
        return Written.of(write_frame(align(frame, before.schema, context.schema), context), context)
    ids = KEPT_ROW_TRACKING_FIELDS
    aligned = align(frame, StructType((*before.schema, *ids)), StructType((*context.schema, *ids)))
    return Written.of(write_frame(aligned, extended), extended)


def write_changes(
    deleted: DataFrame, inserted: DataFrame, before: StructType, after: StructType, context: WriteContext
) -> pa.Table:
    """Write change data files with deleted rows of the schema `before` and inserted rows of the schema `after`.

    Return the files, with paths relative to the table, in the directory `_change_data`.
    """
    gone, come = _changed(deleted, before, "delete", context), _changed(inserted, after, "insert", context)
    return change_files(write_frame(gone.unionAll(come), change_context(context)))


def write_feed_rows(rows: DataFrame, schema: StructType, context: WriteContext) -> pa.Table:
    """Write change data files with rows of a change data feed, whose table has the schema; return the files."""
    shown, stored = StructType((*schema, CHANGE_TYPE)), change_context(context)
    frame = rows.select(*map(quoted, shown.names))
    return change_files(write_frame(align(frame, shown, stored.schema), stored))


def _changed(frame: DataFrame, schema: StructType, change: str, context: WriteContext) -> DataFrame:
    typed = frame.withColumn(CHANGE_TYPE.name, sf.lit(change))
    return align(typed, StructType((*schema, CHANGE_TYPE)), change_context(context).schema)


def run_on_workers(frame: DataFrame, task: ArrowTask, result: pa.Schema) -> pa.Table:
    """Run a function on the rows of a frame, in tasks on workers, and return its rows.

    `result` is the schema of these rows, with the column for failures that `engines.tasks.or_failure` fills. Raises the
    first failure.
    """
    rows = _rows_of_workers(frame, task, result, _ROWS_AT_ONCE)
    raise_failure(rows)
    return rows


def _rows_of_workers(frame: DataFrame, task: ArrowTask, result: pa.Schema, rows_at_once: int) -> pa.Table:
    """Run a function on the rows of a frame, which come in batches of some rows, and return its rows."""
    prepare_workers(frame.sparkSession)
    with temporary_conf(frame.sparkSession, _BATCH_ROWS, str(rows_at_once)), warnings.catch_warnings():
        # PySpark warns about pandas, which is not used here.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        prepared = with_hadoop_access(frame.sparkSession, partial(_run_task, task))
        return _run(frame.mapInArrow(prepared, spark_schema(result)))


def _run_task(task: ArrowTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from task(map(with_offsets, batches))


@dataclass(frozen=True)
class SparkTasks:
    """The tasks of a session (`engines.tasks.TaskRunner`)."""

    spark: SparkSession

    def cores(self) -> int:
        """Return how many tasks run at once."""
        return cores_of(self.spark)

    def run_each(self, items: Iterable[object], task: ItemTask, result: pa.Schema) -> pa.Table:
        """Run a function on each item; return the rows of all. Raises as `run_on_workers`.

        Each item has its own task, up to `MOST_TASKS` tasks. Spark distributes local data evenly over the tasks; after
        an exchange, two items could share a task.
        """
        with self._frame_of(items) as frame:
            return run_on_workers(frame, partial(run_items, task), result)

    def run_exchange(
        self, items: Iterable[object], divide: ItemTask, exchange: Exchange, write: ArrowTask, result: pa.Schema
    ) -> pa.Table:
        """Run a function on each item, exchange its rows, and run another one on them, in one job; see `TaskRunner`."""
        prepare_workers(self.spark)
        with self._frame_of(items) as frame:
            divided = with_hadoop_access(self.spark, partial(run_items, divide))
            rows = frame.mapInArrow(divided, spark_schema(exchange.schema))
            sent = repartitioned_by_id(rows, exchange.tasks, exchange.task).sortWithinPartitions(*exchange.order)
            return _rows_of_workers(sent, write, result, _BINARIES_AT_ONCE)

    @contextmanager
    def _frame_of(self, items: Iterable[object]) -> Iterator[DataFrame]:
        """Give a frame with an item in each partition, up to `MOST_TASKS`; jobs on it run inside the block."""
        pickled = pa.array(pickle_items(items), pa.binary())
        with temporary_conf(self.spark, _LOCAL_TASKS, str(min(max(1, len(pickled)), MOST_TASKS))):
            yield frame_of_arrow(self.spark, pa.table({"task": pickled}))


def partition_id() -> int:
    """Return the number of the current task; 0 outside of tasks."""
    task = TaskContext.get()
    return task.partitionId() if task else 0


def write_partition(
    context: WriteContext, in_any_order: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the rows of the current task, as `write_rows` does."""
    yield from write_rows(context, in_any_order, partition_id(), batches)


def _run(job: DataFrame) -> pa.Table:
    try:
        return collect_arrow(job)
    except Exception as error:
        missing = _MISSING_MODULE.search(str(error))
        if missing is None:
            raise
        raise missing_package(missing[1]) from None
