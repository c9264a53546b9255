"""The statistics of a file with the rows of several files, from those of these files (section Per-file Statistics)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.types import BOOLEAN, LONG, STRING
from pyspark_delta.stats.collect import physical_value, put_at, stored_bounds
from pyspark_delta.stats.indexed_columns import StatsColumn
from pyspark_delta.stats.observe import select
from pyspark_delta.stats.parse import parse_stats

_BOUNDS = ("minValues", "maxValues")


def merged_stats(texts: Sequence[str], columns: Sequence[StatsColumn], *, string_prefix: int) -> str | None:
    """Return the statistics of all rows of some files; None if a file lacks the number of records.

    A bound that some file with values does not have is left out (C414). Bounds are tight if all were.
    """
    stats = pa.Table.from_batches([parse_stats(pa.array(texts, pa.string()), list(_leaves(columns)))])
    records = stats["numRecords"]
    if records.null_count:
        return None
    trees: dict[str, dict[str, Any]] = {name: {} for name in (*_BOUNDS, "nullCount")}
    for column in columns:
        nulls = select(stats, ("nullCount", *column.path))
        if not nulls.null_count:
            put_at(trees["nullCount"], column.path, pc.sum(nulls).as_py())
        if column.has_bounds:
            has_values = pc.fill_null(pc.less(nulls, records), True)
            for name, bound in zip(_BOUNDS, _bounds(stats, column, has_values, string_prefix), strict=True):
                put_at(trees[name], column.path, bound)
    tight = pc.all(pc.fill_null(stats["tightBounds"], True)).as_py()
    return orjson.dumps({"numRecords": pc.sum(records).as_py(), **trees, "tightBounds": tight}).decode()


def _leaves(columns: Sequence[StatsColumn]) -> list[Column]:
    bounded = [column for column in columns if column.has_bounds]
    return [
        Column(("numRecords",), LONG),
        Column(("tightBounds",), BOOLEAN),
        *(Column(("nullCount", *column.path), LONG) for column in columns),
        *(Column((name, *column.path), column.type) for name in _BOUNDS for column in bounded),
    ]


def _bounds(stats: pa.Table, column: StatsColumn, has_values: Any, string_prefix: int) -> tuple[Any, Any]:
    """Return the least and the greatest bound of the files that have values, None for one that is not known."""
    low, high = (select(stats, (name, *column.path)).filter(has_values) for name in _BOUNDS)
    least, greatest = _least(low), _greatest(high)
    if column.type == STRING:  # cut already; cutting a padded text would pad it again
        return least, greatest
    lower = None if least is None else stored_bounds(column, least, least, string_prefix)[0]
    upper = None if greatest is None else stored_bounds(column, greatest, greatest, string_prefix)[1]
    return lower, upper


def _least(values: pa.ChunkedArray) -> Any:
    if values.null_count or not len(values):
        return None
    found = _value(pc.min_max(values)["min"], values)
    return -0.0 if found == 0.0 and isinstance(found, float) else found  # Arrow returns either zero


def _greatest(values: pa.ChunkedArray) -> Any:
    if values.null_count or not len(values):
        return None
    found = _value(pc.min_max(values)["max"], values)
    return 0.0 if found == 0.0 and isinstance(found, float) else found


def _value(bound: pa.Scalar, values: pa.ChunkedArray) -> Any:
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return None
    found = bound.as_py() if pa.types.is_string(values.type) else physical_value(bound)
    return None if isinstance(found, float) and math.isinf(found) else found
