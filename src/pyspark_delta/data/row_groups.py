"""Skipping of row groups that cannot contain a row for which the residual predicate is true.

The predicate is rewritten as for the statistics in the log, and evaluated over the statistics of the Parquet footer,
with one row for each row group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.data.file_columns import Column, Leaf, Struct
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.text import columns_of, conjuncts
from pyspark_delta.expressions.tree import Column as ColumnReference
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.scan.bounds import Rewriter, StatisticsColumn
from pyspark_delta.schema.arrow import to_arrow

_BOUNDS = ("minValues", "maxValues")


class RowGroupFilter:
    """The residual predicate of a scan as a condition on footer statistics."""

    __slots__ = ("_condition",)

    def __init__(self, residual: Expression | None) -> None:
        self._condition: Expression | None = None
        if residual is not None:
            known = {c.path: StatisticsColumn(c.path) for c in columns_of(residual)}
            parts = Rewriter(known).rewrite(conjuncts(residual))
            self._condition = all_of(*(part for part in parts if part is not None))

    @property
    def can_skip(self) -> bool:
        """True if there is a condition on the statistics."""
        return self._condition is not None

    def groups(self, metadata: pq.FileMetaData, columns: Iterable[tuple[str, Column | None]]) -> Sequence[int]:
        """Return the row groups to read. `columns` are the top-level columns of the predicate, as the file has them."""
        every = range(metadata.num_row_groups)
        if self._condition is None or not every:
            return every
        known = dict(columns)
        tree: dict[str, Any] = {}
        for reference in columns_of(self._condition):
            *above, last = reference.path
            node = tree
            for name in above:
                node = node.setdefault(name, {})
            node[last] = _statistics(metadata, reference, known)
        dropped = pc.equal(evaluate(self._condition, _record(tree)), False)
        return [int(i) for i in np.flatnonzero(~np.asarray(pc.fill_null(dropped, False)))]


def _statistics(
    metadata: pq.FileMetaData, reference: ColumnReference, columns: Mapping[str, Column | None]
) -> pa.Array:
    """Return one statistic of one column for every row group, null where the footer lacks it."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    unknown = pa.nulls(len(groups), to_arrow(reference.type))
    kind, *path = reference.path
    if kind == "numRecords":
        return pa.array([group.num_rows for group in groups], pa.int64())
    leaf = _leaf(path, columns)
    if leaf is None:
        return unknown
    found = [group.column(leaf.source.first).statistics for group in groups]
    if kind not in _BOUNDS:
        return pa.array([s.null_count if s is not None and s.has_null_count else None for s in found], pa.int64())
    try:
        bounds = [None if s is None or not s.has_min_max else _bound(s, kind, leaf.source.type) for s in found]
        return leaf.convert(pa.array(bounds, _storage_of(leaf.source.type)).view(leaf.source.type)).cast(unknown.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return unknown  # bounds that cannot be represented are ignored


def _leaf(path: list[str], columns: Mapping[str, Column | None]) -> Leaf | None:
    column = columns.get(path[0])
    for name in path[1:]:
        column = dict(column.members).get(name) if isinstance(column, Struct) else None
    return column if isinstance(column, Leaf) else None


def _bound(statistics: pq.Statistics, kind: str, arrow_type: pa.DataType) -> Any:
    if pa.types.is_decimal(arrow_type):
        return statistics.min if kind == "minValues" else statistics.max
    if pa.types.is_floating(arrow_type) and (math.isnan(statistics.min_raw) or math.isnan(statistics.max_raw)):
        return None  # the writer compared values with NaN, so the other bound may be wrong too
    raw = statistics.min_raw if kind == "minValues" else statistics.max_raw
    return raw.decode("utf-8") if isinstance(raw, bytes) and pa.types.is_string(arrow_type) else raw


def _storage_of(arrow_type: pa.DataType) -> pa.DataType:
    """Return the Arrow type of raw footer values."""
    if pa.types.is_date32(arrow_type):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(arrow_type) else arrow_type


def _record(tree: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_array(node) for node in tree.values()], names=list(tree))


def _array(node: Any) -> pa.Array:
    if not isinstance(node, dict):
        return node
    return pa.StructArray.from_arrays([_array(inner) for inner in node.values()], names=list(node))
