"""What the files of one Parquet schema have in common: their columns, and which of them have statistics.

Bounds are used only where the footer is exact or errs outwards. Floating-point numbers have an upper bound only if the
writer drops bounds when there is a NaN, which is greater than any number in Spark; INT96, dates and timestamps of the
old calendar, and unsigned integers have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

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
from pyspark_delta.stats.collect import Bounds, bounds_of
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX, StatsColumn, stats_columns

FLOATING = (FLOAT, DOUBLE)

# parquet-java orders NaN above all numbers, and drops the bounds of a column chunk if one of them is NaN.
_JAVA_WRITER = re.compile(r"parquet-mr version 1\.(\d+)\.")
_FIRST_SAFE_MINOR = 10
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}
_UNIT = re.compile(r"timeUnit=(\w+)")


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A column with statistics in the footer: its leaf, and how its bounds are stored.

    `factor` is that to microseconds; 0 if the column has no bounds.
    """

    column: StatsColumn
    leaf: int
    factor: int
    stored: Bounds

    def bounds(self, lows: Sequence[Any], highs: Sequence[Any], *, drops_nan: bool) -> tuple[Any, Any]:
        """Return the bounds of some chunks as the log holds them; None for one that is not known.

        `lows` and `highs` are as in the footer. With `drops_nan`, the writer leaves out bounds if there is a NaN.
        """
        kind, factor = self.column.type, self.factor
        if isinstance(kind, DecimalType) and isinstance(lows[0], bytes):  # signed and big-endian
            lows, highs = ([int.from_bytes(value, "big", signed=True) for value in values] for values in (lows, highs))
        elif kind in FLOATING:
            if any(value != value for value in (*lows, *highs)):  # NaN, of old writers
                return None, None
            # A zero may have either sign.
            lower, upper = self.stored(min(lows) or -0.0, max(highs) or 0.0)
            return lower, upper if drops_nan else None
        low, high = (lows[0], highs[0]) if len(lows) == 1 else (min(lows), max(highs))
        return self.stored(low, high) if factor == 1 else self.stored(low * factor, high * factor)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What the files of one Parquet schema have in common."""

    parquet: pq.ParquetSchema
    key_values: Mapping[bytes, bytes] | None
    schema: StructType
    columns: tuple[MeasuredColumn, ...]

    @classmethod
    def of(cls, file: pq.ParquetFile, schema: StructType, partitioned: StructType) -> FileLayout:
        """Return the layout of a file, with statistics for the leading columns of a schema."""
        stored = StructType(tuple(field for field in schema if partitioned.find(field.name) is None))
        key_values, leaves = file.metadata.metadata, _leaves(file.schema)
        measured = []
        for column in stats_columns(stored):
            leaf = None if column.leaf is None else leaves.get(".".join(column.path).casefold())
            if leaf is not None:
                factor = _factor(file.schema.column(leaf), column, key_values)
                bounds = bounds_of(column, DEFAULT_STRING_PREFIX)
                measured.append(MeasuredColumn(column, leaf, factor, bounds))
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
        case _ if column.type in FLOATING:
            usable = physical in ("FLOAT", "DOUBLE")
        case _ if column.type == DATE:
            usable = physical == "INT32"
        case _:
            usable = physical in ("INT32", "INT64")
    return int(usable)


def drops_nan(created_by: str | None) -> bool:
    """Return True if a writer leaves out the bounds of a column chunk that has a NaN."""
    match = _JAVA_WRITER.match(created_by or "")
    return match is not None and int(match[1]) >= _FIRST_SAFE_MINOR
