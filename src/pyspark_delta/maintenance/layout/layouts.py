"""Layouts that a caller can ask for: rows sorted by columns, or clustered by several columns at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.distribute import one_batch
from pyspark_delta.maintenance.layout.order_keys import sort_order
from pyspark_delta.maintenance.layout.splits import Indexes, Splits, curve_of, leaves_per_file, tree_of

Curve: TypeAlias = Literal["hilbert", "zorder"]

LEAVES_PER_FILE = 8
"""Leaves of a file, which are written one after another, so that row groups are boxes too."""


@dataclass(frozen=True, init=False)
class Sort:
    """Rows sorted by columns, as ORDER BY sorts: ascending, with nulls first. The first column counts most.

    Queries by the first column read few files, those by other columns many. Clustering is better for several columns.
    """

    columns: tuple[str, ...]

    def __init__(self, *columns: str) -> None:
        object.__setattr__(self, "columns", _names("Sort", columns))


@dataclass(frozen=True, init=False)
class Cluster:
    """Rows clustered by columns, so that rows that are near in all columns are in the same file.

    By default, a tree of splits divides the rows; with `weights`, columns with a larger one are split more often. With
    `curve`, files are ranges of a Hilbert or Z-order curve.
    """

    columns: tuple[str, ...]
    weights: tuple[float, ...] | None = None
    curve: Curve | None = None

    def __init__(self, *columns: str, weights: Sequence[float] | None = None, curve: Curve | None = None) -> None:
        names = _names("Cluster", columns)
        if weights is not None and (len(weights) != len(names) or not all(weight > 0 for weight in weights)):
            raise InvalidOptionError(
                f"weights has a positive number for each of the {len(names)} columns, found {list(weights)}.",
                option="weights",
            )
        if curve not in (None, "hilbert", "zorder"):
            raise InvalidOptionError(f"curve is 'hilbert' or 'zorder', found {curve!r}.", option="curve")
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "weights", None if weights is None else tuple(map(float, weights)))
        object.__setattr__(self, "curve", curve)


Layout: TypeAlias = Sort | Cluster


def splits_of(layout: Layout, sample: Sequence[pa.Array], files: int, per_file: int = LEAVES_PER_FILE) -> Splits:
    """Return how the rows of a layout are divided among files, with at most so many leaves of each.

    The leaves of a file are neighbours. `sample` has the columns of some rows. Raises TypeError for a column without an
    order.
    """
    if isinstance(layout, Sort):
        leaves = files * leaves_per_file(len(sample[0]), files, per_file)
        order = sort_order(sample)
        at = order[np.arange(1, leaves) * len(order) // leaves] if len(order) else order
        return SortSplits(tuple(column.take(pa.array(at)) for column in sample), leaves)
    if layout.curve is not None:
        return curve_of(sample, files, hilbert=layout.curve == "hilbert")
    return tree_of(sample, files, per_file=per_file, weights=layout.weights)


def ordered(
    layout: Layout, leaf: Iterable[pa.RecordBatch], columns: Sequence[LayoutColumn]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a leaf as the layout orders them: sorted, or as they are if they are only clustered."""
    if not isinstance(layout, Sort):
        yield from leaf
        return
    batches = list(leaf)
    if batches:
        rows = one_batch(batches)
        yield rows.take(pa.array(sort_order([column.values(rows) for column in columns])))


@dataclass(frozen=True, slots=True, eq=False)
class SortSplits:
    """Ranges of rows in the order of some columns; `boundaries` are the first rows of the ranges but the first one."""

    boundaries: tuple[pa.Array, ...]
    leaf_count: int

    def leaves(self, columns: Sequence[pa.Array], first_row: int = 0) -> Indexes:
        """Return the range of each row; see `Splits`."""
        known = len(self.boundaries[0])
        order = sort_order(
            [pa.concat_arrays([b, _plain(c).cast(b.type)]) for b, c in zip(self.boundaries, columns, strict=True)]
        )
        is_boundary = order < known
        found = np.empty(len(order), np.intp)
        found[order] = np.cumsum(is_boundary)
        leaves: Indexes = found[known:]
        return leaves


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _names(layout: str, columns: Sequence[Any]) -> tuple[str, ...]:
    if not columns or not all(isinstance(column, str) for column in columns):
        raise InvalidOptionError(
            f"{layout} takes the names of one or more columns, found {list(columns)!r}.", option="layout"
        )
    return tuple(columns)
