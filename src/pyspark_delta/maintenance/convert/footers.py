"""Footers of existing Parquet files: their columns, and their statistics without reading a data page.

Bounds are given only where the footer is exact or errs outwards. Floating-point numbers have an upper bound only if the
writer drops bounds when there is a NaN, which is greater than any number in Spark; INT96, dates and timestamps of the
old calendar, and unsigned integers have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow.parquet as pq

from pyspark_delta.data.opened import check_chunks, opened_file, translated
from pyspark_delta.maintenance.convert.schema import schema_of_file
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.legacy_calendar import legacy_calendar
from pyspark_delta.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    StructType,
)
from pyspark_delta.stats.collect import Bounds, bounds_of, put_at
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX, StatsColumn, stats_columns

# parquet-java orders NaN above all numbers, and drops the bounds of a column chunk if one of them is NaN.
_JAVA_WRITER = re.compile(r"parquet-mr version 1\.(\d+)\.")
_FIRST_SAFE_MINOR = 10
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}
_UNIT = re.compile(r"timeUnit=(\w+)")
_MOST_LAYOUTS = 32
_FLOATING = (FLOAT, DOUBLE)


@dataclass(frozen=True, slots=True)
class Footer:
    """The columns of a file, and its statistics as the log holds them; None if they were not asked for."""

    schema: StructType
    stats: str | None


class FooterReader:
    """Reads footers; thread-safe. Files with the same Parquet schema share what is computed from it.

    `partitioned` are columns without statistics.
    """

    def __init__(self, storage_options: Mapping[str, str], partitioned: StructType, *, statistics: bool) -> None:
        self._storage_options = storage_options
        self._partitioned = partitioned
        self._statistics = statistics
        self._layouts: list[_Layout] = []

    def read(self, location: str) -> Footer:
        """Return the footer of a file. Raises DataFileError, and SchemaMismatchError for a type that Delta lacks."""
        with opened_file(location, self._storage_options) as file:
            layout = next((known for known in self._layouts if known.is_of(file.metadata)), None)
            if layout is None:
                layout = _Layout.of(file, schema_of_file(file), self._partitioned)
                if len(self._layouts) < _MOST_LAYOUTS:
                    self._layouts.append(layout)
            return Footer(layout.schema, _statistics(file, location, layout.columns) if self._statistics else None)

    def read_as(self, location: str, table: StructType) -> str:
        """Return the statistics of a file with the column names of the table. Raises DataFileError."""
        with opened_file(location, self._storage_options) as file:
            return _statistics(file, location, _Layout.of(file, table, self._partitioned).columns)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A column with statistics in the footer: its leaf, and how its bounds are stored.

    `factor` is that to microseconds; 0 if the column has no bounds.
    """

    column: StatsColumn
    leaf: int
    factor: int
    stored: Bounds
    is_floating: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the files of one Parquet schema have in common."""

    parquet: pq.ParquetSchema
    key_values: Mapping[bytes, bytes] | None
    schema: StructType
    columns: tuple[_Measured, ...]

    @classmethod
    def of(cls, file: pq.ParquetFile, schema: StructType, partitioned: StructType) -> _Layout:
        """Return the layout of a file, with statistics for the leading columns of a schema."""
        stored = StructType(tuple(field for field in schema if partitioned.find(field.name) is None))
        key_values, leaves = file.metadata.metadata, _leaves(file.schema)
        measured = []
        for column in stats_columns(stored):
            leaf = None if column.leaf is None else leaves.get(".".join(column.path).casefold())
            if leaf is not None:
                factor = _factor(file.schema.column(leaf), column, key_values)
                bounds = bounds_of(column, DEFAULT_STRING_PREFIX)
                measured.append(_Measured(column, leaf, factor, bounds, column.type in _FLOATING))
        return cls(file.schema, key_values, schema, tuple(measured))

    def is_of(self, metadata: pq.FileMetaData) -> bool:
        """Return True if a file has this layout."""
        return bool(self.parquet.equals(metadata.schema)) and self.key_values == metadata.metadata


def _leaves(schema: pq.ParquetSchema) -> dict[str, int]:
    """Return the numbers of the leaf columns that are not repeated, by path; paths that occur twice are left out."""
    found: dict[str, int] = {}
    twice = set()
    for number in range(len(schema)):
        column = schema.column(number)
        path = column.path.casefold()
        if path in found:
            twice.add(path)
        if column.max_repetition_level == 0:
            found[path] = number
    return {path: number for path, number in found.items() if path not in twice}


def _factor(leaf: pq.ColumnSchema, column: StatsColumn, key_values: Mapping[bytes, bytes] | None) -> int:
    """Return by what to multiply the bounds in the footer; 0 if they cannot be used."""
    physical, logical = leaf.physical_type, str(leaf.logical_type)
    if not column.has_bounds or physical == "INT96" or "isSigned=false" in logical:
        return 0
    calendar = legacy_calendar(key_values, {physical}, "UTC")
    if calendar is not None and calendar.concerns(to_arrow(column.type)):
        return 0
    match column.type:
        case _ if column.type in (TIMESTAMP, TIMESTAMP_NTZ):
            unit = _UNIT.search(logical)
            return _MICROSECONDS.get(unit[1], 0) if unit is not None else 0
        case DecimalType():
            usable = physical in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY")
        case _ if column.type == STRING:
            usable = physical == "BYTE_ARRAY"
        case _ if column.type in _FLOATING:
            usable = physical in ("FLOAT", "DOUBLE")
        case _ if column.type == DATE:
            usable = physical == "INT32"
        case _:
            usable = physical in ("INT32", "INT64")
    return int(usable)


# ------------------------------------------------------------------------------------------------- statistics
def _statistics(file: pq.ParquetFile, location: str, columns: Sequence[_Measured]) -> str:
    """Return the statistics of a file (C404-C415). Raises DataFileError."""
    metadata = file.metadata
    check_chunks(file, location, (measured.leaf for measured in columns))
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    with translated(location):
        drops_nan = _drops_nan(metadata.created_by)
    for measured in columns:
        found = _of_chunks(groups, measured)
        if found is None:
            continue
        path = measured.column.path
        null_count, low, high = found
        put_at(nulls, path, null_count)
        if low is not None:
            lower, upper = measured.stored(low, high)
            put_at(minimum, path, lower)
            if drops_nan or not measured.is_floating:
                put_at(maximum, path, upper)
    stats = {
        "numRecords": metadata.num_rows,
        "minValues": minimum,
        "maxValues": maximum,
        "nullCount": nulls,
        "tightBounds": True,
    }
    return orjson.dumps(stats).decode()


def _of_chunks(groups: Sequence[pq.RowGroupMetaData], measured: _Measured) -> tuple[int, Any, Any] | None:
    """Return the number of nulls and the bounds of a column over all row groups; bounds are None if one lacks them.

    None if a row group lacks the number of nulls.
    """
    nulls, lows, highs, known = 0, [], [], measured.factor > 0
    for group in groups:
        chunk = group.column(measured.leaf)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        nulls += statistics.null_count
        if known and statistics.has_min_max:
            lows.append(statistics.min_raw)
            highs.append(statistics.max_raw)
        else:
            known = known and statistics.null_count == chunk.num_values
    low, high = _widest(measured, lows, highs) if known and lows else (None, None)
    return nulls, low, high


def _widest(measured: _Measured, lows: list[Any], highs: list[Any]) -> tuple[Any, Any]:
    """Return the bounds of all chunks as `bounds_of` takes them; None if one is NaN, as of old writers."""
    kind, factor = measured.column.type, measured.factor
    if isinstance(kind, DecimalType) and isinstance(lows[0], bytes):  # signed and big-endian
        lows, highs = ([int.from_bytes(value, "big", signed=True) for value in values] for values in (lows, highs))
    elif kind in _FLOATING:
        has_nan = any(value != value for value in (*lows, *highs))
        return (None, None) if has_nan else (min(lows) or -0.0, max(highs) or 0.0)  # a zero may have either sign
    low, high = (lows[0], highs[0]) if len(lows) == 1 else (min(lows), max(highs))
    return (low, high) if factor == 1 else (low * factor, high * factor)


def _drops_nan(created_by: str | None) -> bool:
    match = _JAVA_WRITER.match(created_by or "")
    return match is not None and int(match[1]) >= _FIRST_SAFE_MINOR
