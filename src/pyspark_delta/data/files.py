"""One data file as rows of the table: its columns, without the deleted rows, filtered by the residual predicate.

Row indexes are physical positions in the file. They are counted before any row group is skipped or any row dropped, so
deletion vectors and row ids stay right (C271, C281).
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.data.columns import Column, FileSchema, leaves, read_column
from pyspark_delta.data.row_groups import RowGroupFilter
from pyspark_delta.data.views import without_views
from pyspark_delta.errors import CorruptLogError, DataFileError, DeletionVectorError, FileNotFoundInStoreError
from pyspark_delta.expressions.evaluate import evaluate
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
)
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.legacy_calendar import LegacyCalendar, legacy_calendar
from pyspark_delta.schema.types import LONG, StructField
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

_BATCH_ROWS = 65_536
_BATCH_BYTES = 32 << 20
_RUN_BYTES = 128 << 20  # row groups are fetched together up to this size
_KEPT_LAYOUTS = 16

Indexes = np.ndarray[Any, np.dtype[np.int64]]

_OPTIONS: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}
if "arrow_extensions_enabled" in inspect.signature(pq.ParquetFile.__init__).parameters:
    _OPTIONS["arrow_extensions_enabled"] = False


@dataclass(frozen=True, slots=True)
class RowMarks:
    """The row indexes that the deletion vector of a file marks, ascending; None when it has none.

    They are gone, or with `selects` the only ones that are read.
    """

    marked: Indexes | None = None
    selects: bool = False

    def kept(self, start: int, rows: int) -> Indexes | None:
        """Positions within `[start, start + rows)` that are read, relative to `start`; None for all."""
        if self.marked is None:
            return None
        first, end = np.searchsorted(self.marked, (start, start + rows))
        if self.selects:
            return self.marked[first:end] - start
        if first == end:
            return None
        keep = np.ones(rows, np.bool_)
        keep[self.marked[first:end] - start] = False
        return np.flatnonzero(keep)

    def groups(self, metadata: pq.FileMetaData, wanted: Sequence[int]) -> Sequence[int]:
        """Those of the wanted row groups that may have a row to read."""
        if self.marked is None or not self.selects:
            return wanted
        ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
        selected = set(np.searchsorted(ends, self.marked, side="right").tolist())
        return [group for group in wanted if group in selected]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the columns of a context are read from files of one schema."""

    columns: tuple[Column | None, ...]  # None for columns that are not in files
    legacy: tuple[LegacyCalendar | None, ...]  # for columns with dates or times of the legacy calendar
    leaves: list[int]  # Parquet leaves to read
    names: list[str]  # their paths


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows of a file as they are in it: `index` is their physical position, `batch` None without file columns."""

    index: Indexes
    batch: pa.RecordBatch | None


class DataFileReader:
    """Reads the files of one context; thread-safe."""

    def __init__(self, context: ReadContext, schema: pa.Schema, *, use_threads: bool) -> None:
        self._context = context
        self._schema = schema
        self._use_threads = use_threads
        self._names = [column.field.name for column in context.columns]
        self._output = [self._names.index(name) for name in context.output]
        self._row_groups = RowGroupFilter(context.residual)
        self._layouts: dict[str, tuple[pa.Schema, _Layout]] = {}
        self._lock = threading.Lock()

    def read(self, task: ScanTask, constants: Mapping[str, pa.Scalar], marks: RowMarks) -> Iterator[pa.RecordBatch]:
        """The rows of one file. `constants` are the typed partition values by physical name."""
        path = resolve_file(self._context.table_location, task.path)
        with opened_file(path, self._context.storage_options) as file:
            if marks.marked is not None and len(marks.marked) and marks.marked[-1] >= file.metadata.num_rows:
                raise DeletionVectorError(
                    f"The deletion vector of data file '{path}' marks row {marks.marked[-1]}, but the file has only "
                    f"{file.metadata.num_rows} rows. One of the two files does not belong to this version.",
                    path=path,
                )
            layout = self._layout(file, path)
            in_file = [  # the bounds of row groups are in the calendar of the file
                None if _is_constant(plan, constants) or legacy is not None else column
                for plan, column, legacy in zip(self._context.columns, layout.columns, layout.legacy, strict=True)
            ]
            groups = self._row_groups.groups(file.metadata, zip(self._names, in_file, strict=True))
            groups = marks.groups(file.metadata, _shared(file.metadata, groups, task.share))
            for start, batch in self._raw_batches(file, layout, groups, path):
                kept = marks.kept(start, len(batch))
                if kept is None:
                    index = np.arange(start, start + len(batch))
                else:
                    index = kept + start
                    batch = without_views(batch).take(pa.array(kept)) if batch.num_columns else batch
                if len(index):
                    made = self._table_rows(_Rows(index, batch), layout, task, constants, path)
                    if made.num_rows:
                        yield made

    # ------------------------------------------------------------------------------------------- file to batches
    def _raw_batches(
        self, file: pq.ParquetFile, layout: _Layout, groups: Sequence[int], path: str
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of some row groups with the position of their first row in the file."""
        if not layout.names:
            for run, start in _runs(file.metadata, groups):
                yield from _empty_batches(start, sum(file.metadata.row_group(i).num_rows for i in run))
            return
        for run, start in _runs(file.metadata, groups):
            position = start
            with _translated(path):
                for batch in file.iter_batches(
                    batch_size=_batch_rows(file.metadata, run, layout.leaves),
                    row_groups=run,
                    columns=layout.names,
                    use_threads=self._use_threads,
                ):
                    yield position, batch
                    position += batch.num_rows

    # ------------------------------------------------------------------------------------------ batches to rows
    def _table_rows(
        self, rows: _Rows, layout: _Layout, task: ScanTask, constants: Mapping[str, pa.Scalar], path: str
    ) -> pa.RecordBatch:
        arrays = [
            self._array(column, plan, rows, task, constants, path)
            for column, plan in zip(layout.columns, self._context.columns, strict=True)
        ]
        if any(layout.legacy):
            arrays = [a if c is None else c.rebased(a) for a, c in zip(arrays, layout.legacy, strict=True)]
        if self._context.residual is not None:
            known = pa.RecordBatch.from_arrays(arrays, names=self._names) if arrays else rows.batch
            passed = evaluate(self._context.residual, known)
            arrays = [array.filter(passed) for array in arrays]
        if not self._output:
            count = len(arrays[0]) if arrays else len(rows.index)
            return without_columns(count)
        return pa.RecordBatch.from_arrays([arrays[i] for i in self._output], schema=self._schema)

    def _array(
        self,
        column: Column | None,
        plan: ColumnPlan,
        rows: _Rows,
        task: ScanTask,
        constants: Mapping[str, pa.Scalar],
        path: str,
    ) -> pa.Array:
        count = len(rows.index)
        match plan:
            case FromFile():
                assert column is not None
                return _from_file(column, rows, plan.field, path)
            case PartitionConstant(_, physical_name):
                return pa.repeat(constants[physical_name], count)
            case ChangeType(field):
                if _is_constant(plan, constants):
                    return pa.repeat(constants[field.name], count)
                assert column is not None
                return _recorded(column, rows, field, path)
            case Missing(field):
                return pa.nulls(count, to_arrow(field.type, all_nullable=True))
            case RowId(field):
                fresh = None if task.base_row_id is None else pa.array(rows.index + task.base_row_id)
                return _stable(column, fresh, rows, field, path, "baseRowId")
            case RowIndex():
                return pa.array(rows.index, pa.int64())
            case RowCommitVersion(field):
                version = task.default_row_commit_version
                default = None if version is None else pa.repeat(pa.scalar(version, pa.int64()), count)
                return _stable(column, default, rows, field, path, "defaultRowCommitVersion")
            case _:
                assert_never(plan)

    # ------------------------------------------------------------------------------------------------- layouts
    def _layout(self, file: pq.ParquetFile, path: str) -> _Layout:
        """How to read this file; files of one writer share it."""
        schema = file.schema_arrow
        key = str(len(schema)) + "\0".join(schema.names)
        with self._lock:
            known = self._layouts.get(key)
        if known is not None and known[0].equals(schema, check_metadata=True):
            return known[1]
        layout = self._make_layout(file, schema, path)
        with self._lock:
            if len(self._layouts) >= _KEPT_LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = (schema, layout)
        return layout

    def _make_layout(self, file: pq.ParquetFile, schema: pa.Schema, path: str) -> _Layout:
        fields = FileSchema(schema, self._context.column_mapping_mode, path)
        wanted = any(isinstance(plan, FromFile) for plan in self._context.columns)
        if wanted and self._context.column_mapping_mode == "id" and len(schema) and not fields.has_field_ids():
            raise DataFileError(
                f"Data file '{path}' has no field ids, but the table maps columns by id (C248). "
                "It was not written for this table; rewrite it with field ids.",
                path=path,
            )
        columns = tuple(_resolve(fields, plan) for plan in self._context.columns)
        legacy = tuple(
            None if column is None else self._legacy_of(file, schema, leaves(column), plan)
            for column, plan in zip(columns, self._context.columns, strict=True)
        )
        needed = sorted({leaf for column in columns if column is not None for leaf in leaves(column)})
        return _Layout(columns, legacy, needed, [file.schema.column(leaf).path for leaf in needed])

    def _legacy_of(
        self, file: pq.ParquetFile, schema: pa.Schema, column_leaves: Iterable[int], plan: ColumnPlan
    ) -> LegacyCalendar | None:
        physical_types = {file.schema.column(leaf).physical_type for leaf in column_leaves}
        found = legacy_calendar(schema.metadata, physical_types, self._context.time_zone)
        return found if found is not None and found.concerns(to_arrow(plan.field.type)) else None


def _is_constant(plan: ColumnPlan, constants: Mapping[str, pa.Scalar]) -> bool:
    """Whether all rows of the file are of one kind of change; a column of that name in the file then means nothing."""
    return isinstance(plan, ChangeType) and bool(constants[plan.field.name].is_valid)


def _recorded(column: Column, rows: _Rows, field: StructField, path: str) -> pa.Array:
    """The kinds of change that a change data file holds, one for each row (C163)."""
    found = _from_file(column, rows, field, path)
    if found.null_count:
        raise DataFileError(
            f"The change data file '{path}' does not say in '{field.name}' how {found.null_count} of its rows changed. "
            "It was written by a faulty writer.",
            path=path,
            column=field.name,
        )
    return found


def _resolve(fields: FileSchema, plan: ColumnPlan) -> Column | None:
    match plan:
        case FromFile(field, physical):
            return fields.resolve(field, physical)
        case ChangeType(field):
            return fields.resolve_named(field)
        case RowId(_, str(name)) | RowCommitVersion(_, str(name)):
            return fields.resolve_named(StructField(name, LONG))
        case _:
            return None


def _from_file(column: Column, rows: _Rows, field: StructField, path: str) -> pa.Array:
    source = getattr(column, "source", None)
    if source is None:
        return pa.nulls(len(rows.index), column.type)  # type: ignore[union-attr]
    assert rows.batch is not None
    try:
        return read_column(column, rows.batch.column(source.name))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataFileError(
            f"Column '{field.name}' of data file '{path}' holds a value that is not of type {field.type}: {error}",
            path=path,
            column=field.name,
        ) from None


def _stable(
    column: Column | None, fresh: pa.Array | None, rows: _Rows, field: StructField, path: str, missing: str
) -> pa.Array:
    """The materialised value where there is one, else the fresh one (C323, C326)."""
    stored = None if column is None else _from_file(column, rows, field, path)
    if fresh is not None:
        return fresh if stored is None else pc.coalesce(stored, fresh)
    if stored is not None and not stored.null_count:
        return stored
    raise CorruptLogError(
        f"The log gives no {missing} for data file '{path}', so its rows have no '{field.name}'. "
        "Row tracking is not complete for this version of the table.",
        path=path,
    )


def _shared(metadata: pq.FileMetaData, wanted: Sequence[int], share: tuple[int, int] | None) -> Sequence[int]:
    """Those of the wanted row groups that belong to a share: the one that the middle of their rows lies in."""
    if share is None:
        return wanted
    number, of = share
    rows = np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], np.int64)
    shares = (2 * np.cumsum(rows) - rows) * of // (2 * max(1, metadata.num_rows))
    return [group for group in wanted if shares[group] == number]


def _runs(metadata: pq.FileMetaData, wanted: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Neighbouring row groups that are fetched together, with the position of their first row."""
    run: list[int] = []
    size = start = position = 0
    chosen = set(wanted)
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if run and (i not in chosen or size + group.total_byte_size > _RUN_BYTES):
            yield run, start
            run, size = [], 0
        if i in chosen:
            if not run:
                start = position
            run.append(i)
            size += group.total_byte_size
        position += group.num_rows
    if run:
        yield run, start


def _batch_rows(metadata: pq.FileMetaData, run: Sequence[int], leaves: Sequence[int]) -> int:
    """How many rows to decode at once: fewer where rows are wide."""
    groups = [metadata.row_group(i) for i in run]
    rows: int = sum(group.num_rows for group in groups)
    if sum(group.total_byte_size for group in groups) * _BATCH_ROWS <= _BATCH_BYTES * rows:
        return _BATCH_ROWS
    size: int = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * rows // max(1, size)))


def _empty_batches(first: int, rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for start in range(0, rows, _BATCH_ROWS):
        yield first + start, without_columns(min(_BATCH_ROWS, rows - start))


def without_columns(rows: int) -> pa.RecordBatch:
    """A batch that has rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def rows_in_file(path: str, storage_options: Mapping[str, str] | None) -> int:
    """How many rows a data file has, deleted ones included, by its footer. Raises DataFileError."""
    with opened_file(path, storage_options) as file:
        rows: int = file.metadata.num_rows
        return rows


@contextmanager
def opened_file(path: str, storage_options: Mapping[str, str] | None) -> Iterator[pq.ParquetFile]:
    """The data file at a location, open while the block runs. Raises DataFileError, also for what the block reads."""
    with _translated(path):
        source = store_for(path, storage_options).open_input(path)
        try:
            file = pq.ParquetFile(source, pre_buffer=not path.startswith("/"), **_OPTIONS)
        except BaseException:
            source.close()
            raise
    try:
        yield file
    finally:
        file.close()
        source.close()


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundInStoreError:
        raise DataFileError(
            f"Data file '{path}' does not exist, though the log says it is part of the table. It may have been "
            "vacuumed, or removed by hand: read a newer version, or restore the file.",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise DataFileError(
            f"Data file '{path}' cannot be read as Parquet: {error}. It is damaged or incomplete; restore it.",
            path=path,
        ) from None
