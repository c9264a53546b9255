"""Rewrites files that lose or update rows: reads and writes their rows with Arrow, on threads here or in tasks.

Rows stay in the memory of one process. They are not converted for Spark, and changed rows are known by position. Rows
keep their order; a group of small files becomes one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.data.parts import write_each
from pyspark_delta.data.reader import read_each, read_tasks
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, written_files
from pyspark_delta.deletion_vectors import indexes_between
from pyspark_delta.deletion_vectors.bitmap import deserialize, serialize
from pyspark_delta.engines.arrow.file_changes import RowUpdate
from pyspark_delta.engines.contract import DRIVER, TASKS, Done
from pyspark_delta.engines.tasks import FileGroup, numbered_groups, thread_groups
from pyspark_delta.engines.write_task import RESULT, write_rows
from pyspark_delta.statements.target import ROW, Target, by_partition
from pyspark_delta.write.written import Written, with_row_ids

_Rows = Callable[[FileGroup], Iterator[pa.RecordBatch]]
"""Reads the rows to write of a group of files; picklable."""


def rewrite_files(target: Target, files: pa.Table) -> Done[Written]:
    """Write the rows of files that their deletion vectors do not delete, with their ids if they have some.

    `files` have columns of `actions.columns`; rows are read in the schema of the target, and written as its context
    says. Small files of a partition of the table are combined.

    Raises as `read_tasks` and `write_each`. Files of other tasks then stay behind; no commit names them.
    """
    return _rewritten(target, by_partition(files, target.context), lambda numbers: _remaining)


def update_files(target: Target, files: pa.Table, found: Mapping[int, BitMap64], update: RowUpdate) -> Done[Written]:
    """Write all rows of files like `rewrite_files`, those that are `found` with new values.

    `found` has the positions of rows by the number of their file. Files of a partition of the table are adjacent. Also
    raises ComputationError and EngineDeclined for a row that Arrow does not update.
    """
    numbers = sorted(found)

    def edit(positions: Sequence[int]) -> _Rows:
        return _Edit(update, [serialize(found[numbers[position]]) for position in positions]).rows

    return _rewritten(target, files.take(pa.array(numbers, pa.int64())), edit, row_index=ROW)


def _rewritten(
    target: Target, files: pa.Table, rows: Callable[[Sequence[int]], _Rows], row_index: str | None = None
) -> Done[Written]:
    """Write rows of files to new files. `rows` returns how those of some files are read, by position in `files`."""
    context = with_row_ids(target.configuration, target.context)
    read = target.source.read_context(
        target.context.schema.fields,
        row_ids=context is not target.context,
        row_index=row_index,
        time_zone=target.time_zone,
    )
    tasks, cost = target.tasks, target.cost
    if tasks is None or cost.rewrites_in_driver(files):
        threads = cost.rewriting_threads()
        groups = thread_groups(read, files, threads, cost)
        sources = [_named(context, rows(numbers)(group)) for numbers, group in groups]
        return Done(Written.of(written_files(write_each(context, sources, threads)), context), DRIVER)
    items = ((rows(numbers), group) for numbers, group in numbered_groups(read, files, tasks.cores(), cost))
    written = tasks.run_each(items, partial(_rewrite, context), RESULT)
    return Done(Written.of(written.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA), context), TASKS)


def _remaining(group: FileGroup) -> Iterator[pa.RecordBatch]:
    return read_tasks(group.context, group.tasks())


@dataclass(frozen=True, slots=True)
class _Edit:
    """The update of rows whose positions are known: a serialized bitmap for each file of a group."""

    update: RowUpdate
    found: Sequence[bytes]

    def rows(self, group: FileGroup) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the files, some of them with new values."""
        found = [deserialize(bitmap) for bitmap in self.found]

        def edit(task: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            *columns, positions = rows.columns
            at = positions.to_numpy()
            listed = indexes_between(found[task], int(at[0]), int(at[-1]) + 1)
            if len(listed):
                columns = self.update.applied(rows, np.searchsorted(at, listed))
            yield pa.RecordBatch.from_arrays(columns, rows.schema.names[:-1])

        return read_each(group.context, group.tasks(), edit)


def _named(context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, list(context.schema.names))


def _rewrite(context: WriteContext, part: int, item: tuple[_Rows, FileGroup]) -> Iterator[pa.RecordBatch]:
    rows, group = item
    yield from write_rows(context, False, part, rows(group))
