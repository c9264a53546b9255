"""The Spark job of a row change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.engines.row_changes import RESULT, ChangeContext, ChangedRows, change_task, changed_rows
from pyspark_delta.spark.engine.write.job import partition_id, run_on_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def change_rows(frame: DataFrame, context: ChangeContext) -> ChangedRows:
    """Run the job of a row change; `frame` has the columns that `ChangeContext` lists, by position.

    Raises the DeltaError of a failed task with its own class. Files of other tasks remain, but no commit names them.
    """
    frame = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    written = context.data or context.changes
    if written is not None and written.partition_columns:
        names = context.columns.names  # so that a task has one file open at a time
        frame = frame.sortWithinPartitions(*(f"c{names.index(name)}" for name in written.partition_columns))
    return changed_rows(run_on_workers(frame, partial(_change_partition, context), RESULT), context)


def _change_partition(context: ChangeContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from change_task(context, partition_id(), batches)
