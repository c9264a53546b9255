"""Reads, updates and writes rows of files with Arrow: in this process, or in tasks if there are many rows.

Rows stay in the memory of one process; only the files are sent to tasks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from pyspark_delta.data.raw_rows import without_columns
from pyspark_delta.data.reader import read_each, tasks_of
from pyspark_delta.engines.arrow.row_rules import NO_RULES, BoundRules
from pyspark_delta.engines.arrow.values import NewValue, compute_value, expressions_in
from pyspark_delta.engines.contract import DRIVER, TASKS, Done
from pyspark_delta.engines.row_changes import (
    RESULT,
    ChangeContext,
    ChangedRows,
    RowAction,
    carry_out,
    change_task,
    changed_rows,
)
from pyspark_delta.engines.tasks import FileGroup, numbered_groups
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.schema.types import StructType
from pyspark_delta.statements.target import ROW, Target


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """What a statement does with every row that it reads; small and picklable.

    Rows have the `schema` of the table, with new `values` by column, and follow the `rules`. The first action of the
    context is that of the rows; the last may be that of their preimages.
    """

    context: ChangeContext
    schema: StructType
    values: Mapping[str, NewValue] = field(default_factory=dict)
    rules: BoundRules = NO_RULES

    @property
    def stored_ids(self) -> int:
        """The number of columns in which files store row ids."""
        return len(self.context.columns) - len(self.schema)

    def batches(
        self, read: ReadContext, tasks: Sequence[ScanTask], numbers: Sequence[int], threads: int = 1
    ) -> Generator[pa.RecordBatch]:
        """Yield the rows of some files, whose `numbers` are given, as `ChangeContext` says.

        Raises ComputationError for a row whose values Arrow cannot compute.
        """
        yield from read_each(read, tasks, lambda task, rows: self._changed(numbers[task], rows), threads)

    def _changed(self, number: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        width = len(self.schema)
        old = rows.columns[:width]
        new = [
            self._computed(self.values[name], rows, column.type) if name in self.values else column
            for name, column in zip(self.schema.names, old, strict=True)
        ]
        if self.context.data is not None:
            new = self.rules.apply(new, self.schema.names, self.context.data)
        # The id of the row, and the version of this commit, which files store as null.
        ids = [*rows.columns[width:-1][:1], pa.nulls(rows.num_rows, pa.int64())][: self.stored_ids]
        yield self._batch([*new, *ids], 0, number, rows.columns[-1])
        actions = self.context.actions
        if actions[-1] is RowAction.PREIMAGE:
            yield self._batch([*old, *ids], len(actions) - 1, number, rows.columns[-1])

    def applied(self, rows: pa.RecordBatch, at: np.ndarray) -> list[pa.Array]:
        """Return all columns of some rows, with new values in the rows at some positions, in ascending order.

        After the columns of the table come the stored ids, if any, and one more column, which is left out. Raises
        ComputationError and EngineDeclined.
        """
        columns: list[pa.Array] = rows.columns[:-1]
        width, names = len(self.schema), list(self.schema.names)
        whole = len(at) == rows.num_rows
        given = rows.select(self._asked)
        given = given if given.num_columns else without_columns(rows.num_rows)
        given = given if whole else given.take(pa.array(at))
        new = {
            name: self._computed(value, given, columns[names.index(name)].type) for name, value in self.values.items()
        }
        if self.rules != NO_RULES and self.context.data is not None:
            all_new = [new.get(name, given.column(name)) for name in names]
            all_new = self.rules.apply(all_new, names, self.context.data)
            changed = {*new, *(field.name for field, _ in self.rules.generated)}
            new = {name: values for name, values in zip(names, all_new, strict=True) if name in changed}
        replaced = {names.index(name): values for name, values in new.items()}
        if self.stored_ids:  # the version of this commit, which files store as null
            replaced[width + 1] = pa.nulls(len(at), pa.int64())
        for place, values in replaced.items():
            columns[place] = values if whole else _with_values(columns[place], at, values)
        return columns

    @property
    def _asked(self) -> list[str]:
        """The columns that new values and rules are computed from."""
        if self.rules != NO_RULES:
            return list(self.schema.names)
        values = (expression for value in self.values.values() for expression in expressions_in(value))
        used = {column.path[0] for expression in values for column in columns_of(expression)}
        return [name for name in self.schema.names if name in used]

    def _computed(self, value: NewValue, rows: pa.RecordBatch, arrow_type: pa.DataType) -> pa.Array:
        """Return the values of a column, of exactly the type that readers get."""
        found = compute_value(value, rows)
        return found if found.type == arrow_type else found.cast(arrow_type)

    def _batch(self, columns: list[pa.Array], action: int, number: int, positions: pa.Array) -> pa.RecordBatch:
        place = (pa.scalar(action, pa.int32()), pa.scalar(number, pa.int64()))
        arrays = [*columns, *(pa.repeat(one, len(positions)) for one in place), positions]
        return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def change_files(target: Target, files: pa.Table, condition: Expression | None, change: RowUpdate) -> Done[ChangedRows]:
    """Change the rows of files that meet an exact condition, or all rows; files are numbered by position.

    Files of a partition of the table are adjacent. Raises as `RowUpdate.batches`, `read_tasks` and `carry_out`.
    """
    read = target.source.read_context(
        change.schema.fields,
        residual=condition,
        row_ids=change.stored_ids > 0,
        row_index=ROW,
        time_zone=target.time_zone,
    )
    tasks, cost, location = target.tasks, target.cost, read.table_location
    if tasks is None or cost.reads_in_driver(location, files):
        threads = cost.reading_threads(location)
        changed = change.batches(read, list(tasks_of(files)), range(files.num_rows), threads)
        rows = changed if tasks is None else _few(changed, cost.driver_written_bytes)
        if rows is not None:
            return Done(changed_rows(carry_out(change.context, rows), change.context), DRIVER)
    assert tasks is not None
    groups = numbered_groups(read, files, tasks.cores(), cost)
    return Done(changed_rows(tasks.run_each(groups, partial(_change, change), RESULT), change.context), TASKS)


def _with_values(column: pa.Array, at: np.ndarray, values: pa.Array) -> pa.Array:
    """Return a column with other values at some positions."""
    rows = np.arange(len(column))
    rows[at] = np.arange(len(column), len(column) + len(at))
    return pa.concat_arrays([column, values]).take(pa.array(rows))


def _few(batches: Generator[pa.RecordBatch], limit: int) -> list[pa.RecordBatch] | None:
    """Return the rows if they take at most `limit` bytes in memory; else None."""
    found, size = [], 0
    with closing(batches):
        for batch in batches:
            found.append(batch)
            size += batch.nbytes
            if size > limit:
                return None
    return found


def _change(change: RowUpdate, part: int, item: tuple[Sequence[int], FileGroup]) -> Iterator[pa.RecordBatch]:
    """Change the rows of the files of a task."""
    numbers, group = item
    yield from change_task(change.context, part, change.batches(group.context, group.tasks(), numbers))
