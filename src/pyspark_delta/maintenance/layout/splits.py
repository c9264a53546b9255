"""Which file a row goes to: a k-d tree of splits, or ranges of a space-filling curve, both made from a sample of rows.

A tree splits the rows again and again by one column, until there is a leaf for each file. It takes the column in which
these rows spread most, as a share of all rows; a weight makes a column count more. Values that are equal stay
together, so a value that many rows have is cut off, and the rows that have it are split by other columns. Where no
column can split rows evenly, chance does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.maintenance.layout.curves import hilbert_positions, most_bits, zorder_positions
from pyspark_delta.maintenance.layout.order_keys import (
    Words,
    byte_strings,
    dense_ranks,
    has_number_keys,
    number_keys,
    ranks_among,
)

Indexes: TypeAlias = "np.ndarray[Any, np.dtype[np.intp]]"
Shares: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

SAMPLE_ROWS = 200_000
"""Rows of a sample that are enough for leaves of equal sizes."""

_BLOCK = 1 << 15  # rows whose keys stay in the cache of a core
_EVEN = 1.08  # a split is even if no side has more than this times its share of the rows
_UNEVEN = 1.15  # beyond, chance splits
_NEVER = np.uint64(2**64 - 1)
_LEAF_SAMPLE = 64  # rows of the sample that a leaf should have


class Splits(Protocol):
    """Numbers of leaves for rows; small and picklable. Neighbouring leaves have neighbouring rows."""

    @property
    def leaf_count(self) -> int:
        """The number of leaves."""
        ...

    def leaves(self, columns: Sequence[pa.Array], first_row: int = 0) -> Indexes:
        """Return the leaf of each row. `first_row` is the row's number in a run: chance depends on it."""
        ...


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """How values of a column become keys: numbers by themselves, bytes by their rank among sorted boundaries."""

    boundaries: tuple[bytes, ...] | None = None

    def keys(self, values: pa.Array) -> Words:
        """Return the keys of values; that of null is 0."""
        return number_keys(values) if self.boundaries is None else ranks_among(values, self.boundaries)


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """One level of a tree. A row at node n goes to the node `child[n]` of the next level, or to the one after it if its
    key in one of the `columns` exceeds the threshold of n.
    """

    columns: tuple[int, ...]
    thresholds: tuple[Words, ...]
    child: Indexes


@dataclass(frozen=True, slots=True, eq=False)
class SplitTree:
    """A tree of splits; see the module. The column behind the last one is chance."""

    columns: tuple[KeyColumn, ...]
    levels: tuple[_Level, ...]
    leaf_count: int

    def leaves(self, columns: Sequence[pa.Array], first_row: int = 0) -> Indexes:
        """Return the leaf of each row; see `Splits`."""
        rows = len(columns[0])
        used = {number for level in self.levels for number in level.columns}
        keys: list[Words] = [
            known.keys(values) if number in used else np.zeros(0, np.uint64)
            for number, (known, values) in enumerate(zip(self.columns, columns, strict=True))
        ]
        keys.append(chance(first_row, rows) if len(columns) in used else np.zeros(0, np.uint64))
        found = np.zeros(rows, np.intp)
        for start in range(0, rows, _BLOCK):
            block = slice(start, start + _BLOCK)
            node = found[block]
            for level in self.levels:
                following = level.child[node]
                for number, thresholds in zip(level.columns, level.thresholds, strict=True):
                    following += keys[number][block] > thresholds[node]
                node = following
            found[block] = node
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CurveSplits:
    """Ranges of positions on a curve; `ranges` are the largest keys of the ranges of each column but the last."""

    columns: tuple[KeyColumn, ...]
    ranges: tuple[Words, ...]
    bits: int
    is_hilbert: bool
    cuts: Words

    @property
    def leaf_count(self) -> int:
        """The number of leaves."""
        return len(self.cuts) + 1

    def leaves(self, columns: Sequence[pa.Array], first_row: int = 0) -> Indexes:
        """Return the leaf of each row; see `Splits`."""
        keys = [known.keys(values) for known, values in zip(self.columns, columns, strict=True)]
        found: Indexes = np.searchsorted(self.cuts, self.positions(keys, first_row), "right")
        return found

    def positions(self, keys: Sequence[Words], first_row: int) -> Words:
        """Return positions on the curve, in which chance orders rows at the same place."""
        numbers = [np.searchsorted(ends, some, "left") for ends, some in zip(self.ranges, keys, strict=True)]
        curve = hilbert_positions if self.is_hilbert else zorder_positions
        noise = 64 - self.bits * len(numbers)
        found = curve(numbers, self.bits)
        if noise <= 0:
            return found
        return (found << np.uint64(noise)) | (chance(first_row, len(found)) >> np.uint64(64 - noise))


def tree_of(
    sample: Sequence[pa.Array], files: int, *, per_file: int = 1, weights: Sequence[float] | None = None
) -> SplitTree:
    """Return a tree for rows like those of a sample, which is given by its columns.

    The tree has `per_file` leaves for each file, or fewer if the sample is small: neighbours, so that
    `leaf // (leaf_count // files)` is the file. A column with a larger weight is split more often. Raises TypeError for
    a column without an order.
    """
    finest = leaves_per_file(len(sample[0]), files, per_file)
    sampled = [_SampledColumn.of(values) for values in sample]
    builder = _Builder([column.keys for column in sampled], weights or [1.0] * len(sample), finest)
    levels = list(builder.levels(files * finest))
    columns = []
    for number, column in enumerate(sampled):
        used = [t for level in levels for n, t in zip(level.columns, level.thresholds, strict=True) if n == number]
        ends = np.unique(np.concatenate([*used, np.zeros(0, np.uint64)]))
        ends = ends[ends != _NEVER]
        known, renamed = column.compared_at(ends)
        columns.append(known)
        if known.boundaries is not None:
            levels = [_renamed(level, number, ends, renamed) for level in levels]
    return SplitTree(tuple(columns), tuple(levels), files * finest)


def curve_of(sample: Sequence[pa.Array], files: int, *, hilbert: bool) -> CurveSplits:
    """Return ranges of a curve for rows like those of a sample. Raises TypeError for a column without an order."""
    sampled, bits = [_SampledColumn.of(values) for values in sample], most_bits(len(sample))
    columns, ranges = [], []
    for column in sampled:
        ends = np.unique(_quantiles(np.sort(column.keys), 1 << bits))
        known, ends = column.compared_at(ends[ends < column.keys.max(initial=0)])
        columns.append(known)
        ranges.append(ends)
    splits = CurveSplits(tuple(columns), tuple(ranges), bits, hilbert, np.zeros(files - 1, np.uint64))
    keys = [known.keys(values) for known, values in zip(columns, sample, strict=True)]
    return replace(splits, cuts=_quantiles(np.sort(splits.positions(keys, 0)), files))


def leaves_per_file(rows: int, files: int, most: int) -> int:
    """Return how many leaves a file has at most if a sample has so many rows."""
    return max(1, min(most, rows // (files * _LEAF_SAMPLE)))


def chance(first: int, count: int) -> Words:
    """Return a well mixed number for each of the numbers from `first` on, always the same one (splitmix64)."""
    mixed: Words = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _quantiles(ordered: Words, parts: int) -> Words:
    """Return the last of the sorted numbers in each part but the last one, for parts of equal sizes."""
    if not len(ordered):
        return np.zeros(parts - 1, np.uint64)
    at = np.arange(1, parts, dtype=np.int64) * len(ordered) // parts
    return ordered[np.maximum(at - 1, 0)]


# ---------------------------------------------------------------------------------------------------- keys of a sample
@dataclass(frozen=True, slots=True)
class _SampledColumn:
    """A column of a sample. The keys of bytes are ranks among the `distinct` values, which are sorted; 0 is null."""

    keys: Words
    distinct: pa.Array | None

    @classmethod
    def of(cls, values: pa.Array) -> _SampledColumn:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if has_number_keys(values.type):
            return cls(number_keys(values), None)
        found = pc.unique(values.drop_null())
        distinct = found.take(pc.array_sort_indices(found))
        return cls(dense_ranks(values), distinct)

    def compared_at(self, ends: Words) -> tuple[KeyColumn, Words]:
        """Return how the column is compared with the values above some keys, and these keys in this comparison."""
        if self.distinct is None:
            return KeyColumn(), ends
        first = ends.astype(np.int64)
        above = _as_bytes(self.distinct.take(pa.array(first)))
        below = _as_bytes(self.distinct.take(pa.array(np.maximum(first - 1, 0))))
        starts = [b"" if i == 0 else _shortest(a, b) for i, a, b in zip(first.tolist(), above, below, strict=True)]
        return KeyColumn(tuple(starts)), np.arange(len(ends), dtype=np.uint64)


def _as_bytes(values: pa.Array) -> list[bytes]:
    found = byte_strings(values)
    return [
        found.data[start : start + length].tobytes()
        for start, length in zip(found.starts.tolist(), found.lengths.tolist(), strict=True)
    ]


def _shortest(value: bytes, below: bytes) -> bytes:
    """Return the shortest prefix of a value that is above a smaller value."""
    same = next((i for i, (a, b) in enumerate(zip(value, below, strict=False)) if a != b), min(len(value), len(below)))
    return value[: same + 1]


def _renamed(level: _Level, column: int, ends: Words, names: Words) -> _Level:
    """Return a level with other keys for the thresholds of one column."""
    thresholds = []
    for number, old in zip(level.columns, level.thresholds, strict=True):
        is_split = old != _NEVER
        new = old.copy()
        if number == column:
            new[is_split] = names[np.searchsorted(ends, old[is_split])]
        thresholds.append(new)
    return replace(level, thresholds=tuple(thresholds))


# ------------------------------------------------------------------------------------------------------------ building
class _Node(NamedTuple):
    """Rows of the sample that share `leaves` leaves, and their range of chance, as shares of 1."""

    rows: Indexes
    leaves: int
    low: float = 0.0
    high: float = 1.0


class _Cut(NamedTuple):
    """A split by one column: rows with a key above the threshold go to the right. 1 is the best `unevenness`."""

    column: int
    threshold: int
    left_leaves: int
    unevenness: float


class _Builder:
    """Splits the rows of a sample, given by the keys of their columns."""

    def __init__(self, keys: Sequence[Words], weights: Sequence[float], per_file: int) -> None:
        self._rows = len(keys[0])
        self._keys = [*keys, chance(0, self._rows)]
        self._weights, self._per_file = weights, per_file
        self._ranks = [_middle_ranks(column) for column in keys]

    def levels(self, leaves: int) -> Iterator[_Level]:
        """Yield the levels of the tree, from the top."""
        nodes = [_Node(np.arange(self._rows), leaves)]
        while any(node.leaves > 1 for node in nodes):
            cuts = [self._cut(node) if node.leaves > 1 else None for node in nodes]
            columns = sorted({cut.column for cut in cuts if cut is not None})
            thresholds = [
                np.array([cut.threshold if cut and cut.column == column else _NEVER for cut in cuts], np.uint64)
                for column in columns
            ]
            sizes = np.array([1 if cut is None else 2 for cut in cuts], np.intp)
            yield _Level(tuple(columns), tuple(thresholds), np.cumsum(sizes) - sizes)
            nodes = [one for node, cut in zip(nodes, cuts, strict=True) for one in self._halves(node, cut)]

    def _halves(self, node: _Node, cut: _Cut | None) -> list[_Node]:
        if cut is None:
            return [node]
        is_right = self._keys[cut.column][node.rows] > np.uint64(cut.threshold)
        middle_low, middle_high = node.high, node.low
        if cut.column == len(self._ranks):
            middle_low = middle_high = node.low + (node.high - node.low) * cut.left_leaves / node.leaves
        left = _Node(node.rows[~is_right], cut.left_leaves, node.low, middle_low)
        return [left, _Node(node.rows[is_right], node.leaves - cut.left_leaves, middle_high, node.high)]

    def _cut(self, node: _Node) -> _Cut:
        """Return the split by the column that spreads most, if it is even; otherwise by the next one that is."""
        unit = self._per_file if node.leaves > self._per_file else 1
        best: _Cut | None = None
        if len(node.rows) >= node.leaves:
            keys = [column[node.rows] for column in self._keys[:-1]]
            spread = np.array([self._spread(number, some) for number, some in enumerate(keys)])
            for number in np.argsort(-spread, kind="stable").tolist():
                found = _even_cut(number, keys[number], node.leaves, unit) if spread[number] > 0 else None
                if found is not None and (best is None or found.unevenness < best.unevenness):
                    best = found
                if best is not None and best.unevenness <= _EVEN:
                    return best
        if best is not None and best.unevenness <= _UNEVEN:
            return best
        left = max(node.leaves // unit // 2, 1) * unit
        share = node.low + (node.high - node.low) * left / node.leaves
        return _Cut(len(self._ranks), min(int(share * 2**64), 2**64 - 2), left, 1.0)

    def _spread(self, column: int, keys: Words) -> float:
        """Return how far values spread, as a share of all rows, times the weight of the column."""
        distinct, ranks = self._ranks[column]
        low, high = np.searchsorted(distinct, [keys.min(), keys.max()])
        return float(ranks[high] - ranks[low]) * self._weights[column]


def _middle_ranks(keys: Words) -> tuple[Words, Shares]:
    """Return the distinct keys, and the share of rows below the middle of the rows with each of them."""
    distinct, counts = np.unique(keys, return_counts=True)
    return distinct, (np.cumsum(counts) - counts / 2) / max(len(keys), 1)


def _even_cut(column: int, keys: Words, leaves: int, unit: int) -> _Cut | None:
    """Return the split nearest to the middle, before or after the rows with the same key; None without any."""
    ordered, units = np.sort(keys), leaves // unit
    rows = len(ordered)
    middle = ordered[min(rows * (units // 2) // units, rows - 1)]
    best: _Cut | None = None
    for at in (int(np.searchsorted(ordered, middle, "left")), int(np.searchsorted(ordered, middle, "right"))):
        if not 0 < at < rows:
            continue
        share = at / rows
        left = min(max(round(share * units), 1), units - 1)
        unevenness = max(share * units / left, (1 - share) * units / (units - left))
        if best is None or unevenness < best.unevenness:
            best = _Cut(column, int(ordered[at - 1]), left * unit, unevenness)
    return best
