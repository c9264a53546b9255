"""One data file as rows of the table: its columns, without the deleted rows, filtered by the residual predicate.

If the columns outside the predicate are large, the columns in it are read first, and the others only from row groups
with matching rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.decoders import CannotDecode, DataFile, Decoded, Decoder, OpenedFile
from pyspark_delta.data.file_columns import Column, read_column
from pyspark_delta.data.layouts import Layouts
from pyspark_delta.data.opened import opened_file, translated
from pyspark_delta.data.raw_rows import Indexes, Leaves, RawRows, RowSelection, raw_rows, runs, shared, without_columns
from pyspark_delta.data.row_groups import RowGroupFilter
from pyspark_delta.deletion_vectors import check_rows, of_indexes
from pyspark_delta.errors import CorruptLogError, DataFileError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.logs import logger
from pyspark_delta.scan.plan import (
    ChangeType,
    ColumnPlan,
    FromFile,
    Missing,
    PartitionConstant,
    ReadContext,
    RowCommitVersion,
    RowId,
    RowIndex,
    ScanTask,
    Stored,
)
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import StructField
from pyspark_delta.storage.paths import resolve_file

_LATE_BYTES = 1 << 20  # bytes of columns that justify a separate read
_SMALL_ROWS = 16_384  # files with at most so many rows and bytes are read at once and converted together
_SMALL_BYTES = 8 << 20
_TOGETHER_ROWS = 65_536
_TOGETHER_BYTES = 32 << 20

_log = logger(__name__)


class _SmallFiles:
    """Raw rows of small files that are converted together."""

    __slots__ = ("files", "rows", "size")

    def __init__(self) -> None:
        self.files: list[tuple[OpenedFile, pa.Table]] = []
        self.rows = self.size = 0

    def takes(self, file: OpenedFile, size: int) -> bool:
        """Return True if there is room for a file, and it has the layout and the constants of the others."""
        if not self.files:
            return True
        first = self.files[0][0]
        return (
            file.layout is first.layout
            and self.rows + file.parquet.metadata.num_rows <= _TOGETHER_ROWS
            and self.size + size <= _TOGETHER_BYTES
            and file.constants == first.constants
        )

    def add(self, file: OpenedFile, rows: pa.Table, size: int) -> None:
        """Add the rows of a file, which has `size` bytes uncompressed."""
        self.files.append((file, rows))
        self.rows += rows.num_rows
        self.size += size


class DataFileReader:
    """Reads the files of one context; thread-safe. PyArrow decodes all files, or those that `decoder` declines."""

    def __init__(
        self, context: ReadContext, schema: pa.Schema, *, use_threads: bool, decoder: Decoder | None = None
    ) -> None:
        self._context = context
        self._decoder = decoder
        self._schema = schema
        self._use_threads = use_threads
        self._names = [column.field.name for column in context.columns]
        places = {name: i for i, name in reversed([*enumerate(self._names)])}
        self._output = [places[name] for name in context.output]
        asked = {column.path[0] for column in columns_of(context.residual)} if context.residual is not None else ()
        self._asked = [i for i, name in enumerate(self._names) if name in asked]
        self._row_groups = RowGroupFilter(context.residual)
        self._layouts = Layouts(context, self._asked)

    def read(
        self, task: ScanTask, constants: Mapping[str, pa.Scalar], selection: RowSelection
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file. `constants` are the typed partition values by physical name."""
        with self._open(task, constants) as file:
            yield from self._rows(file, selection)

    def read_together(self, files: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files, in order. Small files of one layout are converted together, not one by one."""
        decoder = self._decoder
        if decoder is None:
            yield from self._converted_together(files)
            return
        for is_small, some in groupby(files, lambda file: decoder.takes_unopened(file[0])):
            group = list(some)
            decoded = _decoded(decoder.decode_files(group)) if is_small else None
            yield from self._converted_together(group) if decoded is None else decoded

    def _converted_together(self, files: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files that are opened one by one. Small files are converted together by PyArrow."""
        small = _SmallFiles()
        for task, constants, selection in files:
            with self._open(task, constants) as file:
                size = self._size_if_small(file, selection)
                if small.files and (size is None or not small.takes(file, size)):
                    yield from self._converted(small)
                    small = _SmallFiles()
                if size is None:
                    yield from self._rows(file, selection)
                elif not self._row_groups.can_skip or len(self._groups(file)):
                    with translated(file.path):
                        names = file.layout.every.names
                        rows = file.parquet.read_row_group(0, names, use_threads=self._use_threads)
                    small.add(file, rows, size)
        if small.files:
            yield from self._converted(small)

    # ------------------------------------------------------------------------------------------- file to rows
    @contextmanager
    def _open(self, task: ScanTask, constants: Mapping[str, pa.Scalar]) -> Iterator[OpenedFile]:
        path = resolve_file(self._context.table_location, task.path)
        with opened_file(path, self._context.storage_options) as file:
            yield OpenedFile(file, path, self._layouts.layout_of(file, path), task, constants)

    def _rows(self, file: OpenedFile, selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        file.check(file.layout.every)
        metadata = file.parquet.metadata
        if selection.rows is not None:
            check_rows(selection.rows, metadata.num_rows, file.path)
        groups = selection.groups(metadata, shared(metadata, self._groups(file), file.task.share))
        for run, first in runs(metadata, groups):
            decoded = None
            if self._decoder is not None:
                late = self._reads_late(file, run)
                decoded = _decoded(self._decoder.decode_row_groups(file, run, first, selection, late=late))
            yield from self._rows_of(file, run, selection) if decoded is None else decoded

    def _groups(self, file: OpenedFile) -> Sequence[int]:
        """Return the row groups that may have a row for which the residual is true."""
        metadata, layout = file.parquet.metadata, file.layout
        if not self._row_groups.can_skip:
            return range(metadata.num_row_groups)
        file.check(layout.first)
        in_file = [  # the bounds of row groups are in the calendar of the file
            None if _is_constant(plan, file.constants) or legacy is not None else column
            for plan, column, legacy in zip(self._context.columns, layout.columns, layout.legacy, strict=True)
        ]
        return self._row_groups.groups(metadata, zip(self._names, in_file, strict=True))

    def _size_if_small(self, file: OpenedFile, selection: RowSelection) -> int | None:
        """Return the uncompressed bytes of a file that can be read at once, and converted together with others.

        None for large files, and for files with rows or columns that are not read.
        """
        metadata, layout = file.parquet.metadata, file.layout
        if not layout.can_join or metadata.num_rows > _SMALL_ROWS or metadata.num_row_groups != 1:
            return None
        if selection.rows is not None or file.task.share is not None:
            return None
        size: int = metadata.row_group(0).total_byte_size
        if size > _SMALL_BYTES or (size > _LATE_BYTES and self._reads_late(file, (0,))):
            return None
        return size

    def _converted(self, small: _SmallFiles) -> Iterator[pa.RecordBatch]:
        """Yield the rows of small files, converted together; one by one if that fails, to name the file."""
        first = small.files[0][0]
        converted: Iterable[pa.RecordBatch]
        try:
            together = pa.concat_tables([rows for _, rows in small.files]).combine_chunks().to_batches()
            converted = [self._filtered(first, RawRows(batch, 0)) for batch in together]
        except (DataFileError, pa.ArrowException):
            converted = (self._filtered(file, RawRows(b, 0)) for file, rows in small.files for b in rows.to_batches())
        yield from (batch for batch in converted if batch.num_rows)

    def _filtered(self, file: OpenedFile, rows: RawRows) -> pa.RecordBatch:
        """Return the columns of the output, of the rows for which the residual is true."""
        arrays, count, residual = self._arrays(file, rows, range(len(self._names))), len(rows), self._context.residual
        if residual is not None:
            known = pa.RecordBatch.from_arrays(arrays, names=self._names) if arrays else without_columns(count)
            passed = evaluate(residual, known)
            arrays = [array.filter(passed) for array in arrays]
            count = pc.sum(passed).as_py() or 0
        return self._batch(arrays, count)

    def _reads_late(self, file: OpenedFile, groups: Sequence[int]) -> bool:
        layout = file.layout
        if not layout.first.names:
            return False
        file.check(layout.rest)
        return layout.rest.bytes_in(file.parquet.metadata, groups) >= _LATE_BYTES

    def _rows_of(self, file: OpenedFile, groups: Sequence[int], selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some row groups, decoded by PyArrow."""
        if self._reads_late(file, groups):
            batches = self._late(file, groups, selection)
        else:
            every = self._raw(file, file.layout.every, groups, selection)
            batches = (self._filtered(file, rows) for rows in every)
        yield from (batch for batch in batches if batch.num_rows)

    def _late(self, file: OpenedFile, groups: Sequence[int], selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the same rows, but read columns outside the residual only from row groups with matching rows."""
        found = list(self._found(file, groups, selection))
        if not found:
            return
        chosen = RowSelection(of_indexes(np.concatenate([index for index, _ in found])), selects=True)
        known = pa.Table.from_batches([columns for _, columns in found])
        others = [i for i in range(len(self._names)) if i not in self._asked]
        done = 0
        for rows in self._raw(file, file.layout.rest, chosen.groups(file.parquet.metadata, groups), chosen):
            count = len(rows)
            columns = (column.combine_chunks() for column in known.slice(done, count).columns)
            arrays = dict(zip(self._asked, columns, strict=True))
            arrays.update(zip(others, self._arrays(file, rows, others), strict=True))
            yield self._batch([arrays[i] for i in range(len(self._names))], count)
            done += count

    def _found(
        self, file: OpenedFile, groups: Sequence[int], selection: RowSelection
    ) -> Iterator[tuple[Indexes, pa.RecordBatch]]:
        """Yield positions in the file of the rows for which the residual is true, with the columns in the residual."""
        residual = self._context.residual
        assert residual is not None
        names = [self._names[i] for i in self._asked]
        for rows in self._raw(file, file.layout.first, groups, selection):
            known = pa.RecordBatch.from_arrays(self._arrays(file, rows, self._asked), names)
            passed = pc.fill_null(evaluate(residual, known), False)
            index = rows.index[passed.to_numpy(zero_copy_only=False)]
            if len(index):
                yield index, known.filter(passed)

    def _raw(
        self, file: OpenedFile, columns: Leaves, groups: Sequence[int], selection: RowSelection
    ) -> Iterator[RawRows]:
        return raw_rows(file.parquet, file.path, columns, groups, selection, use_threads=self._use_threads)

    def _batch(self, arrays: Sequence[pa.Array], count: int) -> pa.RecordBatch:
        if not self._output:
            return without_columns(count)
        return pa.RecordBatch.from_arrays([arrays[i] for i in self._output], schema=self._schema)

    def _arrays(self, file: OpenedFile, rows: RawRows, numbers: Sequence[int]) -> list[pa.Array]:
        """Return some columns of the context, by their numbers."""
        layout, plans = file.layout, self._context.columns
        arrays = (self._array(file, layout.columns[i], plans[i], rows) for i in numbers)
        calendars = (layout.legacy[i] for i in numbers)
        return [a if calendar is None else calendar.rebased(a) for a, calendar in zip(arrays, calendars, strict=True)]

    def _array(self, file: OpenedFile, column: Column | None, plan: ColumnPlan, rows: RawRows) -> pa.Array:
        count, task = len(rows), file.task
        match plan:
            case FromFile():
                assert column is not None
                return _from_file(column, rows, plan.field, file.path)
            case PartitionConstant(_, physical_name):
                return pa.repeat(file.constants[physical_name], count)
            case ChangeType(field):
                if _is_constant(plan, file.constants):
                    return pa.repeat(file.constants[field.name], count)
                assert column is not None
                return _recorded(column, rows, field, file.path)
            case Stored(field):
                assert column is not None
                return _from_file(column, rows, field, file.path)
            case Missing(field):
                return pa.nulls(count, to_arrow(field.type, all_nullable=True))
            case RowId(field, _, is_optional):
                fresh = None if task.base_row_id is None else pa.array(rows.index + task.base_row_id)
                return _stable(column, fresh, rows, field, file.path, None if is_optional else "baseRowId")
            case RowIndex():
                return pa.array(rows.index, pa.int64())
            case RowCommitVersion(field, _, is_optional):
                version = task.default_row_commit_version
                default = None if version is None else pa.repeat(pa.scalar(version, pa.int64()), count)
                return _stable(
                    column, default, rows, field, file.path, None if is_optional else "defaultRowCommitVersion"
                )
            case _:
                assert_never(plan)


def _decoded(answer: Decoded | CannotDecode) -> Decoded | None:
    """Return the rows that a decoder gave; None if it declined."""
    if isinstance(answer, CannotDecode):
        _log.debug("PyArrow decodes the rows: %s", answer.reason)
        return None
    return answer


def _is_constant(plan: ColumnPlan, constants: Mapping[str, pa.Scalar]) -> bool:
    """Return True if all rows of the file have one kind of change; its column in the file is then ignored."""
    return isinstance(plan, ChangeType) and bool(constants[plan.field.name].is_valid)


def _recorded(column: Column, rows: RawRows, field: StructField, path: str) -> pa.Array:
    """Return the kinds of change in a change data file, one for each row (C163)."""
    found = _from_file(column, rows, field, path)
    if found.null_count:
        raise DataFileError(
            f"The change data file '{path}' has no '{field.name}' for {found.null_count} of its rows, so it is "
            "unknown how they changed. It was written by a faulty writer.",
            path=path,
            column=field.name,
        )
    return found


def _from_file(column: Column, rows: RawRows, field: StructField, path: str) -> pa.Array:
    source = getattr(column, "source", None)
    if source is None:
        return pa.nulls(len(rows), column.type)  # type: ignore[union-attr]
    try:
        return read_column(column, rows.batch.column(source.name))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataFileError(
            f"Column '{field.name}' of data file '{path}' contains a value that is not of type {field.type}: {error}",
            path=path,
            column=field.name,
        ) from None


def _stable(
    column: Column | None, fresh: pa.Array | None, rows: RawRows, field: StructField, path: str, missing: str | None
) -> pa.Array:
    """Return the materialized values, with `fresh` ones where they are null (C323, C326).

    If a row has neither, raises CorruptLogError for what is `missing` in the log; without it, the row has null.
    """
    stored = None if column is None else _from_file(column, rows, field, path)
    if fresh is not None:
        return fresh if stored is None else pc.coalesce(stored, fresh)
    if stored is not None and (missing is None or not stored.null_count):
        return stored
    if missing is None:
        return pa.nulls(len(rows), pa.int64())
    raise CorruptLogError(
        f"The log gives no {missing} for data file '{path}', so its rows have no '{field.name}'. "
        "Row tracking is not complete for this version of the table.",
        path=path,
    )
