"""Statistics that a Parquet footer lacks, collected while the rows of a file are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.types import PrimitiveType
from pyspark_delta.stats.indexed_columns import StatsColumn

# Parquet writers leave out the bounds of a row group when one of them is longer.
_LONGEST_FOOTER_BOUND = 4096


class Observations:
    """Facts of one file, row group by row group.

    Footers have nothing about floating-point numbers (`data.parquet_columns`), count the null *elements* of arrays and
    maps instead of the null rows, and have no bounds for long strings. NaN is not within `ranges`.
    """

    def __init__(self, columns: Sequence[StatsColumn], string_prefix: int) -> None:
        self.nan: set[tuple[str, ...]] = set()
        self.ranges: dict[tuple[str, ...], tuple[float, float]] = {}
        self.null_counts: dict[tuple[str, ...], int] = {}
        self.bounds: dict[tuple[int, int], tuple[str, str]] = {}  # by row group and leaf, cut after prefix + 1
        self._string_prefix = string_prefix
        self._row_groups = 0
        self._floats = [c for c in columns if isinstance(c.type, PrimitiveType) and c.type.name in ("float", "double")]
        self._strings = [c for c in columns if c.type == PrimitiveType("string") and c.leaf is not None]
        self._nested = [c for c in columns if c.leaf is None]

    def add(self, rows: pa.Table) -> None:
        """Observe the rows of the next row group; columns as in the file."""
        for column in self._floats:
            self._observe_numbers(column, select(rows, column.path))
        for column in self._nested:
            self._count_nulls(column, select(rows, column.path))
        for column in self._strings:
            self._observe_string(column, select(rows, column.path))
        self._row_groups += 1

    def _count_nulls(self, column: StatsColumn, values: Any) -> None:
        self.null_counts[column.path] = self.null_counts.get(column.path, 0) + values.null_count

    def _observe_numbers(self, column: StatsColumn, values: Any) -> None:
        self._count_nulls(column, values)
        if column.path not in self.nan and pc.any(pc.is_nan(values)).as_py():
            self.nan.add(column.path)
        found = pc.min_max(values).as_py()
        if found["min"] is None or math.isnan(found["min"]):  # only NaN
            return
        # Of two zeros with different signs, Arrow takes either.
        lowest, highest = found["min"] or -0.0, found["max"] or 0.0
        low, high = self.ranges.get(column.path, (lowest, highest))
        self.ranges[column.path] = min(low, lowest), max(high, highest)

    def _observe_string(self, column: StatsColumn, values: Any) -> None:
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is None or longest <= _LONGEST_FOOTER_BOUND or column.leaf is None:
            return
        # The order of UTF-8 is that of code points, so truncated strings have the order of the complete ones.
        cut = pc.min_max(pc.utf8_slice_codeunits(values, 0, self._string_prefix + 1)).as_py()
        if not cut["max"].endswith("\U0010ffff"):  # the result depends on characters after the cut
            self.bounds[(self._row_groups, column.leaf)] = (cut["min"], cut["max"])


def select(rows: pa.Table, path: Sequence[str]) -> Any:
    """Return the column at a path of nested fields; null if a parent is null."""
    column = rows.column(rows.schema.get_field_index(path[0]))
    for name in path[1:]:
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return column
