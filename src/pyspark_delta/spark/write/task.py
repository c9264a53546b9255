"""One task of a write, on a worker: its rows become data files, and each file one small row for the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa

from pyspark_delta.data.violations import check_violations
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, write_files, written_files
from pyspark_delta.errors import DeltaError

RESULT = (
    "path string, partition_values map<string,string>, size bigint, modification_time bigint, stats string, "
    "num_records bigint, marks map<string,bigint>, failure binary"
)
_FAILURE = pa.field("failure", pa.binary())


def write_partition(context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the batches of this task, whose columns are those of the context by position, then that of violations.

    The rows are as in `RESULT`, a single one with the error when the task cannot go on.
    """
    from pyspark import TaskContext

    task, names = TaskContext.get(), list(context.schema.names)
    named = (pa.RecordBatch.from_arrays(_checked(batch, context), names) for batch in batches)
    try:
        files = written_files(write_files(context, named, task.partitionId() if task else 0))
        failures = pa.nulls(len(files), pa.binary())
    except DeltaError as error:
        # A value crosses better than an exception: Spark would try the task again, and lose the class of the error.
        files = pa.Table.from_pylist([{}], WRITTEN_SCHEMA)
        failures = pa.array([pickle.dumps(error)], pa.binary())
    yield from files.append_column(_FAILURE, failures).to_batches()


def _checked(batch: pa.RecordBatch, context: WriteContext) -> list[pa.Array]:
    """The columns of the table. Raises ConstraintViolationError for a row that breaks a condition."""
    columns: list[pa.Array] = batch.columns
    if context.checks:
        check_violations(columns.pop(), context.checks)
    return columns
