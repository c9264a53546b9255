"""Statistics of some columns for existing data files, from Parquet footers or from the values.

Footers are used for integers, dates and timestamps, whose bounds writers never shorten. All other columns are decoded,
one batch at a time. Deleted rows are included: a file with a deletion vector gets wide bounds (C256, C413).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.actions.columns import STATS
from pyspark_delta.data.file_columns import Absent, Column, FileSchema, Leaf, Struct
from pyspark_delta.data.opened import check_chunks, opened_file
from pyspark_delta.data.reader import read_task, tasks_of
from pyspark_delta.expressions.tree import Column as StatsLeaf
from pyspark_delta.parallel import flat_map_ordered
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import STATS_STRING_PREFIX_LENGTH
from pyspark_delta.scan.plan import FromFile, ReadContext, ScanTask
from pyspark_delta.scan.planner import read_context
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.legacy_calendar import legacy_calendar
from pyspark_delta.schema.types import LONG, TIMESTAMP, StructField, StructType
from pyspark_delta.stats.collect import physical_value, stored_bounds
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX, StatsColumn
from pyspark_delta.stats.observe import select
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.stats.texts import with_member
from pyspark_delta.storage.paths import resolve_file

_THREADS = 8


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A column to measure: its logical path, and its description for statistics."""

    path: tuple[str, ...]
    stored: StatsColumn


def with_column_statistics(
    files: pa.Table,
    location: str,
    configuration: TableConfiguration,
    columns: Sequence[MeasuredColumn],
    storage_options: Mapping[str, str],
) -> pa.Table:
    """Return file actions with numRecords and the statistics of some columns.

    `files` has all columns of `actions.columns`. Other statistics keep their exact text. Opens every file. Raises
    DataFileError, UnsupportedDataFileError for a file that only Spark can read, and UnsupportedTableError.
    """
    measure = _Measure(location, configuration, tuple(columns), storage_options)
    texts = flat_map_ordered(measure.texts, _rows(files), min(_THREADS, files.num_rows))
    return files.set_column(files.column_names.index("stats"), "stats", pa.array(texts, pa.string()))


def lacking_statistics(
    batches: Iterable[pa.RecordBatch], columns: Sequence[tuple[str, ...]]
) -> Iterator[pa.RecordBatch]:
    """Yield the files that lack their number of records, or of nulls in some of the columns, by physical path.

    Bounds are not required: there are none if all values are null or NaN, or if a string has no upper bound.
    """
    leaves = [StatsLeaf(("numRecords",), LONG), *(StatsLeaf(("nullCount", *path), LONG) for path in columns)]
    for batch in batches:
        stats = parse_stats(batch.column(STATS.name), leaves)
        yield batch.filter(reduce(pc.or_, (pc.is_null(select(stats, leaf.path)) for leaf in leaves)))


def _rows(files: pa.Table) -> Iterator[tuple[ScanTask, str | None]]:
    for batch in files.to_batches(max_chunksize=4096):
        texts = batch.column("stats").to_pylist()
        yield from zip(tasks_of(pa.Table.from_batches([batch])), texts, strict=True)


class _Measure:
    """Measures the files of one table; thread-safe."""

    def __init__(
        self,
        location: str,
        configuration: TableConfiguration,
        columns: tuple[MeasuredColumn, ...],
        storage_options: Mapping[str, str],
    ) -> None:
        self._location = location
        self._columns = columns
        self._string_prefix = STATS_STRING_PREFIX_LENGTH.of(configuration.properties) or DEFAULT_STRING_PREFIX

        def context(chosen: tuple[MeasuredColumn, ...]) -> ReadContext:
            fields = _pruned(configuration.schema, [column.path for column in chosen])
            return read_context(location, configuration, fields, storage_options=storage_options)

        self._context = cache(context)
        # If no footer can have exact bounds, files are only opened to decode columns; without columns, to count rows.
        self._uses_footers = not columns or any(_may_be_exact(column.stored) for column in columns)

    def texts(self, file: tuple[ScanTask, str | None]) -> Iterator[str]:
        """Yield the statistics of one file as JSON."""
        task, text = file
        context = self._context(self._columns)
        found, rows = [_Range() for _ in self._columns], 0
        if self._uses_footers:
            with opened_file(resolve_file(self._location, task.path), context.storage_options) as opened:
                found, rows = _Footer(opened, context, task.path).ranges(self._columns), opened.metadata.num_rows
        decoded = [(column, values) for column, values in zip(self._columns, found, strict=True) if not values.is_known]
        if decoded:
            rows = 0
            chosen = self._context(tuple(column for column, _ in decoded))
            for batch in read_task(chosen, replace(task, deletion_vector=None)):
                rows += batch.num_rows
                for column, values in decoded:
                    values.add(select(batch, column.path), bounded=column.stored.has_bounds)
        text = with_member(text, ["numRecords"], str(rows))
        for column, values in zip(self._columns, found, strict=True):
            text = values.written(text, column.stored, self._string_prefix)
        yield text if task.deletion_vector is None else with_member(text, ["tightBounds"], "false")


@dataclass(slots=True)
class _Range:
    """The number of nulls and the physical bounds of a column, in the form of `stored_bounds`.

    `is_known` is True if they come from the footer. Without `bounded`, the bounds depend on the reader and are omitted.
    """

    is_known: bool = False
    bounded: bool = True
    nulls: int = 0
    low: Any = None
    high: Any = None
    has_nan: bool = False

    def add(self, values: Any, *, bounded: bool = True) -> None:
        """Include some values of the column; only the number of nulls if columns of its type have no bounds."""
        self.nulls += values.null_count
        if not bounded:
            return
        if pa.types.is_floating(values.type):
            self.has_nan = self.has_nan or bool(pc.any(pc.is_nan(values)).as_py())
        found = pc.min_max(values)
        low, high = physical_value(found["min"]), physical_value(found["max"])
        if low is None or (isinstance(low, float) and math.isnan(low)):  # only null and NaN
            return
        if isinstance(low, float):  # of zeros with different signs, Arrow returns either
            low, high = low or -0.0, high or 0.0
        self.widen(low, high)

    def widen(self, low: Any, high: Any) -> None:
        """Include other bounds."""
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def written(self, text: str, column: StatsColumn, string_prefix: int) -> str:
        """Return the statistics `text` with those of this column."""
        lower = upper = None
        if self.bounded and self.low is not None:
            lower, upper = stored_bounds(column, self.low, self.high, string_prefix)
        text = with_member(text, ["nullCount", *column.path], str(self.nulls))
        text = with_member(text, ["minValues", *column.path], _json(lower))
        return with_member(text, ["maxValues", *column.path], None if self.has_nan else _json(upper))


class _Footer:
    """The footer of a data file."""

    def __init__(self, file: pq.ParquetFile, context: ReadContext, path: str) -> None:
        self._file, self._path = file, path
        self._metadata = file.metadata
        self._schema = file.schema
        self._key_values = file.schema_arrow.metadata
        self._groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        fields = FileSchema(file.schema_arrow, context.column_mapping_mode, path)
        plans = [plan for plan in context.columns if isinstance(plan, FromFile)]
        self._found = {plan.field.name: fields.resolve(plan.field, plan.physical) for plan in plans}

    def ranges(self, columns: Sequence[MeasuredColumn]) -> list[_Range]:
        """Return the statistics of each column that the footer has."""
        return [self._range(self._column(column.path), column.stored) for column in columns]

    def _column(self, path: Sequence[str]) -> Column | None:
        column: Column | None = self._found[path[0]]
        for name in path[1:]:
            column = dict(column.members)[name] if isinstance(column, Struct) else column
        return column

    def _range(self, column: Column | None, stored: StatsColumn) -> _Range:
        if isinstance(column, Absent):  # all null
            return _Range(is_known=True, nulls=self._metadata.num_rows)
        if not isinstance(column, Leaf):
            return _Range()
        leaf = column.source.first
        check_chunks(self._file, self._path, [leaf])
        if not stored.has_bounds:
            return self._counted(leaf) or _Range()
        physical = self._schema.column(leaf).physical_type
        calendar = legacy_calendar(self._key_values, {physical}, "UTC")
        if calendar is not None and calendar.concerns(to_arrow(stored.type)):
            return _Range(bounded=stored.type != TIMESTAMP)  # its instants depend on the time zone of the reader
        exact = physical in ("INT32", "INT64") and _is_stored_exactly(column.source.type, to_arrow(stored.type))
        return (self._summed(leaf) if exact else None) or _Range()

    def _counted(self, leaf: int) -> _Range | None:
        """Return the number of nulls in all row groups; None if one row group lacks it."""
        known = [group.column(leaf).statistics for group in self._groups]
        if any(statistics is None or not statistics.has_null_count for statistics in known):
            return None
        return _Range(is_known=True, bounded=False, nulls=sum(statistics.null_count for statistics in known))

    def _summed(self, leaf: int) -> _Range | None:
        """Return the statistics of all row groups together; None if one row group lacks them."""
        total = _Range(is_known=True)
        for group in self._groups:
            chunk = group.column(leaf)
            known = chunk.statistics
            if known is None or not known.has_null_count:
                return None
            if known.has_min_max:
                total.widen(known.min_raw, known.max_raw)
            elif known.null_count < chunk.num_values:
                return None
            total.nulls += known.null_count
        return total


def _may_be_exact(column: StatsColumn) -> bool:
    """Return True if footers may have all statistics of the type, exactly."""
    if not column.has_bounds:
        return column.leaf is not None
    found = to_arrow(column.type)
    return bool(pa.types.is_signed_integer(found) or pa.types.is_date32(found) or pa.types.is_timestamp(found))


def _is_stored_exactly(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_signed_integer(found):
        return bool(pa.types.is_signed_integer(wanted))
    return bool(found == wanted and (pa.types.is_date32(found) or pa.types.is_timestamp(found)))


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _pruned(struct: StructType, paths: Sequence[tuple[str, ...]]) -> tuple[StructField, ...]:
    """Return the columns at some paths; structs contain only these columns."""
    found = []
    for field in struct:
        below = [path[1:] for path in paths if path[0] == field.name]
        if below and isinstance(field.type, StructType) and () not in below:
            field = replace(field, type=StructType(_pruned(field.type, below)))
        if below:
            found.append(field)
    return tuple(found)
