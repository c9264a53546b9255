"""Trees of splits and ranges of curves: even leaves whatever the values, and files that queries can skip."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_delta.maintenance.layout.layouts import Cluster, Sort, splits_of
from pyspark_delta.maintenance.layout.order_keys import dense_ranks
from pyspark_delta.maintenance.layout.splits import curve_of, tree_of

ROWS = 60_000
FILES = 64
CHANCE = np.random.default_rng(3)

COLUMNS: dict[str, pa.Array] = {
    "uniform": pa.array(CHANCE.integers(0, 1 << 60, ROWS)),
    "time": pa.array((np.arange(ROWS) + CHANCE.normal(0, 500, ROWS)).astype(np.int64), pa.timestamp("us")),
    "zipf": pa.array(np.minimum(CHANCE.zipf(1.3, ROWS), 10**9)),
    "half": pa.array(np.where(CHANCE.random(ROWS) < 0.5, 7, CHANCE.integers(0, 1000, ROWS))),
    "nulls": pa.array(CHANCE.random(ROWS), mask=CHANCE.random(ROWS) < 0.6),
    "text": pa.array([f"https://example.com/{n:07d}" for n in CHANCE.integers(0, 5000, ROWS)]),
    "constant": pa.array(["x"] * ROWS),
    "two": pa.array(CHANCE.random(ROWS) < 0.3),
}
KINDS = [
    ("uniform",),
    ("uniform", "time"),
    ("zipf", "time"),
    ("half", "uniform"),
    ("half", "two"),
    ("nulls", "text", "zipf"),
    ("constant", "text"),
    ("constant",),
    ("uniform", "time", "zipf", "text"),
]


def sample(columns: list[pa.Array]) -> list[pa.Array]:
    rows = pa.array(np.sort(np.random.default_rng(5).choice(ROWS, 20_000, replace=False)))
    return [column.take(rows) for column in columns]


def depth(columns: list[pa.Array], files: np.ndarray) -> list[float]:
    """The average number of files whose bounds hold the value of a row, by column; nulls have no bounds."""
    found = []
    for column in columns:
        ranks = dense_ranks(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).astype(np.int64)
        low, high = np.full(FILES, 1 << 40), np.full(FILES, -1)
        known = ranks > 0
        np.minimum.at(low, files[known], ranks[known])
        np.maximum.at(high, files[known], ranks[known])
        values = np.random.default_rng(0).choice(ranks[known], 2_000)
        found.append(float(((low[:, None] <= values) & (values <= high[:, None])).sum(axis=0).mean()))
    return found


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_files_have_equal_sizes_with_heavy_hitters_and_overlap_less_than_before(kind: tuple[str, ...]) -> None:
    columns = [COLUMNS[name] for name in kind]
    tree = tree_of(sample(columns), FILES, per_file=4)
    leaves = tree.leaves(columns)
    files = leaves * FILES // tree.leaf_count
    sizes = np.bincount(files, minlength=FILES)
    assert sizes.max() <= 1.3 * sizes.mean()
    before = depth(columns, np.arange(ROWS) * FILES // ROWS)
    after = depth(columns, files)
    assert sum(after) <= sum(before) * 1.01
    if "uniform" in kind:
        assert after[kind.index("uniform")] <= 2.2 * FILES ** ((len(kind) - 1) / len(kind))


def test_two_values_that_two_files_cannot_share_evenly_are_divided_by_chance() -> None:
    columns = [COLUMNS["two"]]  # 30 % of the rows have one value
    sizes = np.bincount(tree_of(sample(columns), 2).leaves(columns), minlength=2)
    assert sizes.max() <= 1.3 * sizes.mean()


def test_a_tree_is_small_and_the_same_in_another_process() -> None:
    columns = [COLUMNS["uniform"], COLUMNS["text"]]
    tree = tree_of(sample(columns), FILES)
    text = pickle.dumps(tree)
    assert len(text) < 8_000
    assert np.array_equal(pickle.loads(text).leaves(columns), tree.leaves(columns))
    halves = [tree.leaves([c.slice(at, ROWS // 2) for c in columns], at) for at in (0, ROWS // 2)]
    assert np.array_equal(np.concatenate(halves), tree.leaves(columns))


def test_a_column_with_a_larger_weight_is_split_more_often() -> None:
    columns = [COLUMNS["uniform"], COLUMNS["time"]]
    even, weighted = (
        depth(columns, tree_of(sample(columns), FILES, weights=weights).leaves(columns))
        for weights in (None, (1.0, 16.0))
    )
    assert weighted[1] < even[1] / 2
    assert weighted[0] > even[0]


@pytest.mark.parametrize("make", [Cluster("a"), Cluster("a", curve="hilbert"), Cluster("a", curve="zorder"), Sort("a")])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_rows_are_enough(make: Any, rows: int) -> None:
    columns = [COLUMNS["uniform"].slice(0, rows)]
    splits = splits_of(make, columns, 4)
    leaves = splits.leaves(columns)
    assert len(leaves) == rows
    assert all(0 <= leaf < splits.leaf_count for leaf in leaves.tolist())


@pytest.mark.parametrize("kind", [("uniform", "time"), ("text", "uniform", "zipf")], ids="-".join)
def test_a_tree_is_better_than_curves_and_a_hilbert_curve_than_zorder(kind: tuple[str, ...]) -> None:
    columns = [COLUMNS[name] for name in kind]
    tree, hilbert, zorder = (
        sum(depth(columns, splits.leaves(columns)))
        for splits in (
            tree_of(sample(columns), FILES),
            curve_of(sample(columns), FILES, hilbert=True),
            curve_of(sample(columns), FILES, hilbert=False),
        )
    )
    assert tree < hilbert < zorder


def test_leaves_of_a_sort_are_ranges_of_all_columns() -> None:
    columns = [COLUMNS["two"], COLUMNS["text"]]
    leaves = splits_of(Sort("a", "b"), sample(columns), FILES).leaves(columns)
    rows = list(zip(columns[0].to_pylist(), columns[1].to_pylist(), strict=True))
    highest: dict[int, Any] = {}
    lowest: dict[int, Any] = {}
    for leaf, row in zip(leaves.tolist(), rows, strict=True):
        highest[leaf] = max(row, highest.get(leaf, row))
        lowest[leaf] = min(row, lowest.get(leaf, row))
    order = sorted(highest)
    assert all(highest[a] <= lowest[b] for a, b in pairwise(order))
    assert np.bincount(leaves).max() <= 1.3 * ROWS / (max(order) + 1)
