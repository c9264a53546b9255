"""One task of a write: writes its rows to data files, and returns one small row per file to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pyspark_delta.data.parts import write_all, write_side_by_side
from pyspark_delta.data.violations import check_violations
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, written_files
from pyspark_delta.engines.tasks import FAILURE, or_failure

RESULT = WRITTEN_SCHEMA.append(pa.field(FAILURE, pa.binary()))
"""What a task of a write returns: a row for each file, or a single one with the error."""


def write_rows(
    context: WriteContext, in_any_order: bool, part: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the batches of a task. Their columns are those of the context by position, then that of violations.

    Rows of a partition of the table are adjacent, unless `in_any_order`. `part` is the number of the task. Yield rows
    as in `RESULT`.
    """
    names = list(context.schema.names)
    named = (pa.RecordBatch.from_arrays(_checked(batch, context), names) for batch in batches)
    write = write_side_by_side if in_any_order else write_all

    def written() -> pa.Table:
        files = written_files(write(context, named, part))
        return files.append_column(RESULT.field(FAILURE), pa.nulls(len(files), pa.binary()))

    yield from or_failure(written, RESULT)


def _checked(batch: pa.RecordBatch, context: WriteContext) -> list[pa.Array]:
    """Return the columns of the table. Raises ConstraintViolationError for a row that violates a condition."""
    columns: list[pa.Array] = batch.columns
    if context.checks:
        check_violations(columns.pop(), context.checks)
    return columns
