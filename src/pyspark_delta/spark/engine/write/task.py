"""One task of a write, on a worker: its rows become data files, and each file one small row for the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pyspark_delta.data.parts import write_all, write_side_by_side
from pyspark_delta.data.violations import check_violations
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, written_files
from pyspark_delta.spark.engine.write.failures import FAILURE, or_failure

RESULT = (
    "path string, partition_values map<string,string>, size bigint, modification_time bigint, stats string, "
    "num_records bigint, marks map<string,bigint>, failure binary"
)
_FAILURE = pa.field(FAILURE, pa.binary())


def write_partition(
    context: WriteContext, in_any_order: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the batches of this task, whose columns are those of the context by position, then that of violations.

    Rows of a partition of the table come one after another, unless `in_any_order`. What is yielded is as in `RESULT`, a
    single row with the error when the task cannot go on.
    """
    from pyspark import TaskContext

    task, names = TaskContext.get(), list(context.schema.names)
    named = (pa.RecordBatch.from_arrays(_checked(batch, context), names) for batch in batches)
    part = task.partitionId() if task else 0
    write = write_side_by_side if in_any_order else write_all

    def written() -> pa.Table:
        files = written_files(write(context, named, part))
        return files.append_column(_FAILURE, pa.nulls(len(files), pa.binary()))

    yield from or_failure(written, WRITTEN_SCHEMA.append(_FAILURE))


def _checked(batch: pa.RecordBatch, context: WriteContext) -> list[pa.Array]:
    """The columns of the table. Raises ConstraintViolationError for a row that breaks a condition."""
    columns: list[pa.Array] = batch.columns
    if context.checks:
        check_violations(columns.pop(), context.checks)
    return columns
