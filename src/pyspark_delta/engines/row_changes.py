"""One task of a row change, on a worker: writes data files and change data files, and records deleted rows.

Every row has the number of its action in the statement, and the file that it is from. So one pass over the rows does
everything that a statement needs, and each row is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.data.partitions import pieces
from pyspark_delta.data.parts import RollingFileWriter, delete_written
from pyspark_delta.data.violations import check_violations
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, WrittenFile, written_files
from pyspark_delta.deletion_vectors.bitmap import deserialize, of_indexes, serialize
from pyspark_delta.engines.tasks import or_failure
from pyspark_delta.protocol.draft import ReadSet, no_files
from pyspark_delta.schema.types import StructType
from pyspark_delta.write.change_data import change_files
from pyspark_delta.write.written import Written

_NO_COLUMNS = StructType(())


class RowAction(Enum):
    """What a statement does with a row; the values are those of `_change_type` (C163)."""

    INSERT = "insert"
    UPDATE = "update_postimage"
    DELETE = "delete"
    PREIMAGE = "update_preimage"  # the row before its update; for change data files only

    @property
    def is_written(self) -> bool:
        """True if the row is written to a data file."""
        return self in (RowAction.INSERT, RowAction.UPDATE)

    @property
    def deletes(self) -> bool:
        """True if the row is deleted from its file."""
        return self in (RowAction.UPDATE, RowAction.DELETE)


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """What the tasks of a row change share; small and picklable.

    Batches have, by position: `columns`; the column of violations if `data` has checks; the number of the row's action
    in `actions`, the number of its file, and its position there. `data` and `changes` are given if rows are written to
    data files and to change data files; their columns are among `columns`, by name. Rows of a partition of the table
    are adjacent, unless `in_any_order`. With `first_pair`, change data files have the columns `PAIR`; it is the number
    of the first file there, and other statements have others.
    """

    actions: tuple[RowAction, ...]
    columns: StructType = _NO_COLUMNS
    data: WriteContext | None = None
    changes: WriteContext | None = None
    in_any_order: bool = False
    first_pair: int | None = None


RESULT = pa.schema(
    [
        *WRITTEN_SCHEMA,
        pa.field("failure", pa.binary()),
        pa.field("is_change", pa.bool_()),  # of a written file; null in other rows
        pa.field("file", pa.int64()),  # with "rows": the deleted rows of a file, as a vector
        pa.field("rows", pa.binary()),
        pa.field("counts", pa.list_(pa.int64())),  # number of rows of this task, by action
    ]
)
"""What a task of a row change returns."""


def change_task(context: ChangeContext, part: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Change the rows of a task; yield rows as in `RESULT`, or a single one with the error if it fails."""
    yield from or_failure(lambda: carry_out(context, batches, part), RESULT)


def carry_out(context: ChangeContext, batches: Iterable[pa.RecordBatch], part: int = 0) -> pa.Table:
    """Change rows; return rows as in `RESULT`. A failure leaves no files."""
    change = _Change(context, part)
    try:
        for batch in batches:
            if batch.num_rows:
                change.add(batch)
        return change.finish()
    except BaseException:
        change.abandon()
        raise


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The result of a job: files with `new` rows, change data files, and the deleted rows by number of the file.

    `counts` are the rows of each action. `deletion_count` counts every deletion of a row: it exceeds the rows in
    `deletions` if several source rows matched one row of the table. All rows of the files `rewritten`, by number, are
    among the new ones; `copied` of them are unchanged.
    """

    new: Written
    changes: pa.Table
    deletions: Mapping[int, BitMap64] = field(default_factory=dict)
    counts: Sequence[int] = ()
    deletion_count: int = 0
    rewritten: Sequence[int] = ()
    copied: int = 0

    @classmethod
    def nothing(cls, actions: int) -> ChangedRows:
        """Return the result if no row is changed."""
        return cls(Written.nothing(), no_files(), {}, (0,) * actions)

    @classmethod
    def of_deletions(cls, deletions: Mapping[int, BitMap64]) -> ChangedRows:
        """Return the result of a statement with one action that deletes rows and writes none."""
        count = sum(map(len, deletions.values()))
        return cls(Written.nothing(), no_files(), deletions, (count,), count)

    @property
    def has_repetitions(self) -> bool:
        """True if a row was deleted more than once."""
        return self.deletion_count > sum(len(bitmap) for bitmap in self.deletions.values())


@dataclass(frozen=True, slots=True)
class Changed:
    """The rows that a statement changed, the files that they refer to by number, and the reads of the commit."""

    files: pa.Table
    rows: ChangedRows
    reads: ReadSet


def changed_rows(result: pa.Table, context: ChangeContext) -> ChangedRows:
    """Combine the results of tasks; `result` is as in `RESULT`."""
    files = result.select([*WRITTEN_SCHEMA.names, "is_change"])
    new, changes = (
        files.filter(pc.equal(files["is_change"], is_change)).select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA)
        for is_change in (False, True)
    )
    counts = [one for one in result["counts"].to_pylist() if one is not None]
    totals = np.sum(np.array(counts, np.int64), axis=0).tolist() if counts else [0] * len(context.actions)
    deletion_count = sum(n for n, action in zip(totals, context.actions, strict=True) if action.deletes)
    return ChangedRows(
        new=Written.nothing() if context.data is None else Written.of(new, context.data),
        changes=change_files(changes) if changes.num_rows else no_files(),
        deletions=_deletions(result.filter(pc.is_valid(result["file"]))),
        counts=totals,
        deletion_count=deletion_count,
    )


def _deletions(found: pa.Table) -> dict[int, BitMap64]:
    deletions: dict[int, BitMap64] = {}
    for number, rows in zip(found["file"].to_pylist(), found["rows"].to_pylist(), strict=True):
        bitmap = deserialize(rows)
        known = deletions.get(number)
        deletions[number] = bitmap if known is None else known | bitmap
    return deletions


class _Change:
    """The rows of one task."""

    def __init__(self, context: ChangeContext, part: int) -> None:
        self._context = context
        self._data, self._changes = (
            _Sink(kind, part, in_any_order=context.in_any_order) for kind in (context.data, context.changes)
        )
        self._deletions: dict[int, BitMap64] = {}
        self._counts = np.zeros(len(context.actions), np.int64)
        actions = context.actions
        self._written = pa.array([number for number, action in enumerate(actions) if action.is_written], pa.int32())
        self._deletes = np.array([action.deletes for action in actions], np.bool_)
        self._words = pa.array([action.value for action in actions], pa.string())

    def add(self, batch: pa.RecordBatch) -> None:
        *columns, actions, files, rows = batch.columns
        numbers = actions.to_numpy(zero_copy_only=False)
        self._counts += np.bincount(numbers, minlength=len(self._counts))
        self._record(self._deletes[numbers], files, rows)
        if self._data.context is not None:
            written = pc.is_in(actions, value_set=self._written)
            if self._data.context.checks:
                check_violations(columns.pop().filter(written), self._data.context.checks)
            self._data.add(self._batch(columns).filter(written))
        if self._changes.context is not None:
            added = [self._words.take(actions)]
            if self._context.first_pair is not None:
                added += [pc.add(files, self._context.first_pair), rows]
            self._changes.add(self._batch(columns), added)

    def finish(self) -> pa.Table:
        found = pa.concat_tables([self._data.finish(is_change=False), self._changes.finish(is_change=True)])
        deletions = pa.table(
            {
                "file": pa.array(self._deletions, pa.int64()),
                "rows": pa.array([serialize(bitmap) for bitmap in self._deletions.values()], pa.binary()),
            }
        )
        counts = pa.table({"counts": pa.array([self._counts.tolist()], pa.list_(pa.int64()))})
        return pa.concat_tables([RESULT.empty_table(), found, deletions, counts], promote_options="default")

    def abandon(self) -> None:
        self._data.abandon()
        self._changes.abandon()

    def _batch(self, columns: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns[: len(self._context.columns)], list(self._context.columns.names))

    def _record(self, deletes: np.ndarray, files: pa.Array, rows: pa.Array) -> None:
        if not deletes.any():
            return
        mask = pa.array(deletes)
        numbers = files.filter(mask).to_numpy(zero_copy_only=False)
        indexes = rows.filter(mask).to_numpy(zero_copy_only=False)
        order = np.argsort(numbers, kind="stable")
        numbers, indexes = numbers[order], indexes[order]
        found, starts = np.unique(numbers, return_index=True)
        for number, of_file in zip(found.tolist(), np.split(indexes, starts[1:]), strict=True):
            bitmap = of_indexes(of_file)
            known = self._deletions.get(number)
            self._deletions[number] = bitmap if known is None else known | bitmap


class _Sink:
    """Writes the files of one kind in a task; nothing without a context."""

    def __init__(self, context: WriteContext | None, part: int, *, in_any_order: bool) -> None:
        self.context = context
        self._writer = None if context is None else RollingFileWriter(context, part, side_by_side=in_any_order)
        self._in_any_order = in_any_order
        self._files: list[WrittenFile] = []

    def add(self, rows: pa.RecordBatch, added: Sequence[pa.Array] = ()) -> None:
        """Write the columns of the context; the last ones of them are `added` to the rows."""
        if self._writer is None or self.context is None or not rows.num_rows:
            return
        names = list(self.context.schema.names)
        given = rows.select(names[: len(names) - len(added)])
        rows = pa.RecordBatch.from_arrays([*given.columns, *added], names) if added else given
        if self._in_any_order:
            for piece in pieces(self.context, [rows], rows.nbytes):
                self._files += self._writer.append(piece)
        else:
            self._files += self._writer.add(rows)

    def finish(self, *, is_change: bool) -> pa.Table:
        if self._writer is not None:
            self._files += self._writer.finish()
        files = written_files(self._files)
        return files.append_column("is_change", pa.repeat(pa.scalar(is_change), files.num_rows))

    def abandon(self) -> None:
        """Delete all files, also complete ones: no commit will name them."""
        if self._writer is None or self.context is None:
            return
        self._writer.abandon()
        delete_written(self.context, self._files)
