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

from pyspark_delta.data.opened import opened_file
from pyspark_delta.maintenance.convert.schema import schema_of_file
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.legacy_calendar import legacy_calendar
from pyspark_delta.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    StructType,
)
from pyspark_delta.stats.collect import stored_bounds
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX, StatsColumn, stats_columns

# parquet-java orders NaN above all numbers, and drops the bounds of a column chunk if one of them is NaN.
_JAVA_WRITER = re.compile(r"parquet-mr version 1\.(\d+)\.")
_FIRST_SAFE_MINOR = 10
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}
_UNIT = re.compile(r"timeUnit=(\w+)")


@dataclass(frozen=True, slots=True)
class Footer:
    """The columns of a file, and its statistics as the log holds them; None if they were not asked for."""

    schema: StructType
    stats: str | None


def read_footer(path: str, storage_options: Mapping[str, str], partitioned: StructType, *, statistics: bool) -> Footer:
    """Return the footer of the file at a location. `partitioned` are columns without statistics.

    Raises DataFileError, and SchemaMismatchError for a type that Delta does not have.
    """
    with opened_file(path, storage_options) as file:
        schema = schema_of_file(file)
        return Footer(schema, footer_statistics(file, schema, partitioned) if statistics else None)


def read_statistics(path: str, storage_options: Mapping[str, str], table: StructType, partitioned: StructType) -> str:
    """Return the statistics of a file with the column names of the table. Raises DataFileError."""
    with opened_file(path, storage_options) as file:
        return footer_statistics(file, table, partitioned)


def footer_statistics(file: pq.ParquetFile, schema: StructType, partitioned: StructType) -> str:
    """Return the statistics of a file, for the leading columns of a schema (C404-C415)."""
    stored = StructType(tuple(field for field in schema if partitioned.find(field.name) is None))
    leaves = _leaves(file)
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    for column in stats_columns(stored):
        if column.leaf is None:
            continue
        leaf = leaves.get(".".join(column.path).casefold())
        found = _Chunks.of(groups, leaf) if leaf is not None else None
        if found is None:
            continue
        _put(nulls, column.path, found.nulls)
        if column.has_bounds and found.bounds:
            low, high = _bounds(file, column, leaf, found.bounds)
            lower, upper = (None, None) if low is None else stored_bounds(column, low, high, DEFAULT_STRING_PREFIX)
            _put(minimum, column.path, lower)
            if column.type not in (FLOAT, DOUBLE) or _drops_nan(file.metadata.created_by):
                _put(maximum, column.path, upper)
    stats = {
        "numRecords": file.metadata.num_rows,
        "minValues": minimum,
        "maxValues": maximum,
        "nullCount": nulls,
        "tightBounds": True,
    }
    return orjson.dumps(stats).decode()


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The number of nulls of a column, and the bounds of each column chunk; empty if a chunk lacks them."""

    nulls: int
    bounds: list[tuple[Any, Any]]

    @classmethod
    def of(cls, groups: Sequence[pq.RowGroupMetaData], leaf: int) -> _Chunks | None:
        """Return them for a leaf column; None if a chunk has no number of nulls."""
        nulls, bounds, known = 0, [], True
        for group in groups:
            chunk = group.column(leaf)
            statistics = chunk.statistics
            if statistics is None or not statistics.has_null_count:
                return None
            nulls += statistics.null_count
            if statistics.has_min_max:
                bounds.append((statistics.min_raw, statistics.max_raw))
            else:
                known = known and statistics.null_count == chunk.num_values
        return cls(nulls, bounds if known else [])


def _bounds(file: pq.ParquetFile, column: StatsColumn, leaf: int, chunks: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the physical bounds of a column as `stored_bounds` takes them; None where the footer cannot be used."""
    described = file.schema.column(leaf)
    physical, logical = described.physical_type, str(described.logical_type)
    if physical == "INT96" or "isSigned=false" in logical:
        return None, None
    calendar = legacy_calendar(file.metadata.metadata, {physical}, "UTC")
    if calendar is not None and calendar.concerns(to_arrow(column.type)):
        return None, None
    factor = 1
    if column.type in (TIMESTAMP, TIMESTAMP_NTZ):
        unit = _UNIT.search(logical)
        factor = _MICROSECONDS.get(unit[1] if unit else "", 0)
        if not factor:
            return None, None
    elif not _is_of_kind(column, physical):
        return None, None
    lows, highs = ([_value(column, chunk[at]) for chunk in chunks] for at in (0, 1))
    low, high = min(lows), max(highs)
    if column.type in (FLOAT, DOUBLE):
        if low != low or high != high:  # NaN, of old writers
            return None, None
        return low or -0.0, high or 0.0  # of zeros with different signs, a footer may have either
    return (low * factor, high * factor) if factor > 1 else (low, high)


def _is_of_kind(column: StatsColumn, physical: str) -> bool:
    match column.type:
        case DecimalType():
            return physical in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY")
        case _ if column.type == STRING:
            return physical == "BYTE_ARRAY"
        case _ if column.type == FLOAT:
            return physical == "FLOAT"
        case _ if column.type == DOUBLE:
            return physical == "DOUBLE"
        case _ if column.type == DATE:
            return physical == "INT32"
        case _ if column.type == BINARY:
            return False
        case _:
            return physical in ("INT32", "INT64")


def _value(column: StatsColumn, raw: Any) -> Any:
    if isinstance(column.type, DecimalType) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw.encode() if isinstance(raw, str) else raw


def _leaves(file: pq.ParquetFile) -> dict[str, int]:
    """Return the numbers of the leaf columns that are not repeated, by path; paths that occur twice are left out."""
    found: dict[str, int] = {}
    twice = set()
    for number in range(len(file.schema)):
        column = file.schema.column(number)
        path = column.path.casefold()
        if path in found:
            twice.add(path)
        if column.max_repetition_level == 0:
            found[path] = number
    return {path: number for path, number in found.items() if path not in twice}


def _drops_nan(created_by: str) -> bool:
    match = _JAVA_WRITER.match(created_by or "")
    return match is not None and int(match[1]) >= _FIRST_SAFE_MINOR


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
