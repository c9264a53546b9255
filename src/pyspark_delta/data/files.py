"""One data file as rows of the table: its columns, without the deleted rows, filtered by the residual predicate.

If the columns outside the predicate are large, the columns in it are read first, and the others only from row groups
with matching rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.data.file_columns import Column, FileSchema, leaves, read_column
from pyspark_delta.data.opened import opened_file
from pyspark_delta.data.raw_rows import Indexes, Leaves, RawRows, RowSelection, raw_rows, runs, shared, without_columns
from pyspark_delta.data.row_groups import RowGroupFilter
from pyspark_delta.deletion_vectors import check_rows, of_indexes
from pyspark_delta.errors import CorruptLogError, DataFileError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.lru import LruCache
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
from pyspark_delta.storage.paths import resolve_file

_KEPT_LAYOUTS = 16
_LATE_BYTES = 1 << 20  # bytes of columns that justify a separate read


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the columns of a context are read from files of one schema."""

    columns: tuple[Column | None, ...]  # None for columns that are not in files
    legacy: tuple[LegacyCalendar | None, ...]  # for columns with dates or times of the legacy calendar
    every: Leaves
    first: Leaves  # of columns in the residual predicate
    rest: Leaves  # leaves of the other columns


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file that is being read."""

    parquet: pq.ParquetFile
    path: str
    layout: _Layout
    task: ScanTask
    constants: Mapping[str, pa.Scalar]


class DataFileReader:
    """Reads the files of one context; thread-safe."""

    def __init__(self, context: ReadContext, schema: pa.Schema, *, use_threads: bool) -> None:
        self._context = context
        self._schema = schema
        self._use_threads = use_threads
        self._names = [column.field.name for column in context.columns]
        places = {name: i for i, name in reversed([*enumerate(self._names)])}
        self._output = [places[name] for name in context.output]
        asked = {column.path[0] for column in columns_of(context.residual)} if context.residual is not None else ()
        self._asked = [i for i, name in enumerate(self._names) if name in asked]
        self._row_groups = RowGroupFilter(context.residual)
        self._layouts: LruCache[str, tuple[pa.Schema, _Layout]] = LruCache(_KEPT_LAYOUTS)

    def read(
        self, task: ScanTask, constants: Mapping[str, pa.Scalar], selection: RowSelection
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file. `constants` are the typed partition values by physical name."""
        path = resolve_file(self._context.table_location, task.path)
        with opened_file(path, self._context.storage_options) as file:
            if selection.rows is not None:
                check_rows(selection.rows, file.metadata.num_rows, path)
            layout = self._layout(file, path)
            groups: Sequence[int] = range(file.metadata.num_row_groups)
            if self._row_groups.can_skip:
                in_file = [  # the bounds of row groups are in the calendar of the file
                    None if _is_constant(plan, constants) or legacy is not None else column
                    for plan, column, legacy in zip(self._context.columns, layout.columns, layout.legacy, strict=True)
                ]
                groups = self._row_groups.groups(file.metadata, zip(self._names, in_file, strict=True))
            groups = selection.groups(file.metadata, shared(file.metadata, groups, task.share))
            opened = _Opened(file, path, layout, task, constants)
            for run, _ in runs(file.metadata, groups):
                for rows in self._rows_of(opened, run, selection):
                    if rows.num_rows:
                        yield rows

    # ------------------------------------------------------------------------------------------- file to rows
    def _rows_of(self, file: _Opened, groups: Sequence[int], selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some row groups. Batches may be empty."""
        layout, residual = file.layout, self._context.residual
        if layout.first.names and layout.rest.bytes_in(file.parquet.metadata, groups) >= _LATE_BYTES:
            yield from self._late(file, groups, selection)
            return
        every = range(len(self._names))
        for rows in self._raw(file, layout.every, groups, selection):
            arrays = self._arrays(file, rows, every)
            count = len(rows)
            if residual is not None:
                known = pa.RecordBatch.from_arrays(arrays, names=self._names) if arrays else without_columns(count)
                passed = evaluate(residual, known)
                arrays = [array.filter(passed) for array in arrays]
                count = pc.sum(passed).as_py() or 0
            yield self._batch(arrays, count)

    def _late(self, file: _Opened, groups: Sequence[int], selection: RowSelection) -> Iterator[pa.RecordBatch]:
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
        self, file: _Opened, groups: Sequence[int], selection: RowSelection
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

    def _raw(self, file: _Opened, columns: Leaves, groups: Sequence[int], selection: RowSelection) -> Iterator[RawRows]:
        return raw_rows(file.parquet, file.path, columns, groups, selection, use_threads=self._use_threads)

    def _batch(self, arrays: Sequence[pa.Array], count: int) -> pa.RecordBatch:
        if not self._output:
            return without_columns(count)
        return pa.RecordBatch.from_arrays([arrays[i] for i in self._output], schema=self._schema)

    def _arrays(self, file: _Opened, rows: RawRows, numbers: Sequence[int]) -> list[pa.Array]:
        """Return some columns of the context, by their numbers."""
        layout, plans = file.layout, self._context.columns
        arrays = (self._array(file, layout.columns[i], plans[i], rows) for i in numbers)
        calendars = (layout.legacy[i] for i in numbers)
        return [a if calendar is None else calendar.rebased(a) for a, calendar in zip(arrays, calendars, strict=True)]

    def _array(self, file: _Opened, column: Column | None, plan: ColumnPlan, rows: RawRows) -> pa.Array:
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
            case Missing(field):
                return pa.nulls(count, to_arrow(field.type, all_nullable=True))
            case RowId(field):
                fresh = None if task.base_row_id is None else pa.array(rows.index + task.base_row_id)
                return _stable(column, fresh, rows, field, file.path, "baseRowId")
            case RowIndex():
                return pa.array(rows.index, pa.int64())
            case RowCommitVersion(field):
                version = task.default_row_commit_version
                default = None if version is None else pa.repeat(pa.scalar(version, pa.int64()), count)
                return _stable(column, default, rows, field, file.path, "defaultRowCommitVersion")
            case _:
                assert_never(plan)

    # ------------------------------------------------------------------------------------------------- layouts
    def _layout(self, file: pq.ParquetFile, path: str) -> _Layout:
        """Return how to read this file. Files with equal schemas share the result."""
        schema = file.schema_arrow
        key = str(len(schema)) + "\0".join(schema.names)
        known = self._layouts.get(key)
        if known is not None and known[0].equals(schema, check_metadata=True):
            return known[1]
        layout = self._make_layout(file, schema, path)
        self._layouts.put(key, (schema, layout))
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
        found = [(i in self._asked, leaf) for i, c in enumerate(columns) if c is not None for leaf in leaves(c)]
        first, rest = ([leaf for is_asked, leaf in found if is_asked is asked] for asked in (True, False))
        return _Layout(columns, legacy, *(Leaves.of(file, some) for some in ([*first, *rest], first, rest)))

    def _legacy_of(
        self, file: pq.ParquetFile, schema: pa.Schema, column_leaves: Iterable[int], plan: ColumnPlan
    ) -> LegacyCalendar | None:
        physical_types = {file.schema.column(leaf).physical_type for leaf in column_leaves}
        found = legacy_calendar(schema.metadata, physical_types, self._context.time_zone)
        return found if found is not None and found.concerns(to_arrow(plan.field.type)) else None


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
    column: Column | None, fresh: pa.Array | None, rows: RawRows, field: StructField, path: str, missing: str
) -> pa.Array:
    """Return the materialized values, with `fresh` ones where they are null (C323, C326).

    Raises CorruptLogError if a row has neither.
    """
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
