"""Rows of files that Arrow reads, computes anew and writes: in this process, or on the workers where they are many.

Spark only hands out the files. Rows stay in the memory of one process, as they are.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from pyspark_delta.data.partitions import null_empty_partitions
from pyspark_delta.data.reader import read_each, tasks_of
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.cores import cores_of
from pyspark_delta.spark.dml.job import ChangedRows, changed_rows
from pyspark_delta.spark.dml.plain.checks import check_rows
from pyspark_delta.spark.dml.target import ROW, Target
from pyspark_delta.spark.dml.task import RESULT, ChangeContext, RowAction, carry_out, change_partition
from pyspark_delta.spark.source.partitions import is_soon_read, numbered_groups, reading_threads
from pyspark_delta.spark.write.job import run_each

_FEW_BYTES = 32 << 20  # of rows in memory that one process writes before others would have begun to


@dataclass(frozen=True, slots=True)
class PlainChange:
    """What a statement does with every row that is read; small, picklable.

    Rows are of the `schema` of the table, with new `values` by column, which must meet the `checks`. The first action
    of the context is that of the rows; the last may be that of their preimages.
    """

    context: ChangeContext
    schema: StructType
    values: Mapping[str, Expression] = field(default_factory=dict)
    checks: tuple[Expression, ...] = ()

    @property
    def stored_ids(self) -> int:
        """How many columns files keep the ids of rows in."""
        return len(self.context.columns) - len(self.schema)

    def batches(
        self, read: ReadContext, tasks: Sequence[ScanTask], numbers: Sequence[int], threads: int = 1
    ) -> Generator[pa.RecordBatch]:
        """The rows of some files, whose `numbers` are given, as `ChangeContext` says.

        Raises InvalidPredicateError for rows that only Spark can tell the values of.
        """
        yield from read_each(read, tasks, lambda task, rows: self._changed(numbers[task], rows), threads)

    def _changed(self, number: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        width = len(self.schema)
        old = rows.columns[:width]
        new = [
            self._computed(self.values[name], rows, column.type) if name in self.values else column
            for name, column in zip(self.schema.names, old, strict=True)
        ]
        if self.checks:
            check_rows(self.checks, self._stored(new))
        # The id of the row; and the version of this commit, which files say by null.
        ids = [*rows.columns[width:-1][:1], pa.nulls(rows.num_rows, pa.int64())][: self.stored_ids]
        yield self._batch([*new, *ids], 0, number, rows.columns[-1])
        actions = self.context.actions
        if actions[-1] is RowAction.PREIMAGE:
            yield self._batch([*old, *ids], len(actions) - 1, number, rows.columns[-1])

    def _stored(self, columns: list[pa.Array]) -> pa.RecordBatch:
        """New rows as readers get them: conditions must see that."""
        rows = pa.RecordBatch.from_arrays(columns, names=list(self.schema.names))
        return rows if self.context.data is None else null_empty_partitions(self.context.data, rows)

    def _computed(self, value: Expression, rows: pa.RecordBatch, arrow_type: pa.DataType) -> pa.Array:
        """The values of a column, of exactly the type that it is read as."""
        found = compute(value, rows)
        return found if found.type == arrow_type else found.cast(arrow_type)

    def _batch(self, columns: list[pa.Array], action: int, number: int, positions: pa.Array) -> pa.RecordBatch:
        place = (pa.scalar(action, pa.int32()), pa.scalar(number, pa.int64()))
        arrays = [*columns, *(pa.repeat(one, len(positions)) for one in place), positions]
        return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def change_files(target: Target, files: pa.Table, condition: Expression | None, change: PlainChange) -> ChangedRows:
    """Carry out a change of the rows of files that meet an exact condition, or of all; files count by their place.

    Files of a partition of the table are side by side. Raises as `PlainChange.batches`, `read_tasks` and `carry_out`.
    """
    read = target.source.read_context(
        change.schema.fields,
        residual=condition,
        row_ids=change.stored_ids > 0,
        row_index=ROW,
        time_zone=target.time_zone,
    )
    if is_soon_read(read.table_location, files):
        threads = reading_threads(read.table_location)
        few = _few(change.batches(read, list(tasks_of(files)), range(files.num_rows), threads))
        if few is not None:
            return changed_rows(carry_out(change.context, few), change.context)
    groups = numbered_groups(read, files, cores_of(target.spark))
    result = run_each(target.spark, groups, partial(_change, change), RESULT)
    return changed_rows(result, change.context)


def _few(batches: Generator[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
    """Rows that one process writes soon; None where they are many."""
    found, size = [], 0
    with closing(batches):
        for batch in batches:
            found.append(batch)
            size += batch.nbytes
            if size > _FEW_BYTES:
                return None
    return found


def _change(change: PlainChange, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from change_partition(change.context, _rows(change, batches))


def _rows(change: PlainChange, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What becomes of the rows of the files that a task was given."""
    for batch in batches:
        for pickled in batch.column(0):
            numbers, group = pickle.loads(pickled.as_py())
            yield from change.batches(group.context, group.tasks(), numbers)
