"""Rows by leaf: all of them, in bounded memory, in files that go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.distribute import Distribution
from pyspark_delta.maintenance.layout.layouts import Cluster, splits_of
from pyspark_delta.schema.types import LONG

ROWS = 20_000
COLUMN = LayoutColumn(("id",), ("id",), LONG)


def rows() -> pa.Table:
    chance = np.random.default_rng(2)
    return pa.table(
        {
            "id": chance.integers(0, 1 << 40, ROWS),
            "s": [None if n % 7 == 0 else "x" * (n % 13) for n in range(ROWS)],
            "l": pa.array([[n] * (n % 3) for n in range(ROWS)]),
            "m": pa.array([[("k", n)] for n in range(ROWS)], pa.map_(pa.string(), pa.int64())),
            "v": pa.array(
                [{"a": n, "b": None} for n in range(ROWS)], pa.struct([("a", pa.int64()), ("b", pa.string())])
            ),
            "number": np.arange(ROWS),
        }
    )


@pytest.mark.parametrize("memory", [1 << 30, 300_000])
def test_every_row_comes_out_in_its_leaf(tmp_path: Path, memory: int) -> None:
    table = rows()
    splits = splits_of(Cluster("id"), [table["id"].combine_chunks()], 16)
    with Distribution(splits, [COLUMN], memory=memory, directory=str(tmp_path)) as found:
        for batch in table.to_batches(1_000):
            found.add(batch)
        found.finish()
        assert (found.spilled_bytes > 0) == (memory < 1 << 30)
        assert bool(list(tmp_path.iterdir())) == (found.spilled_bytes > 0)
        parts = [pa.Table.from_batches(found.read([leaf]), table.schema) for leaf in range(splits.leaf_count)]
        assert [part.num_rows for part in parts] == found.rows.tolist()
    assert not list(tmp_path.iterdir())
    leaves = splits.leaves([table["id"].combine_chunks()])
    for leaf, part in enumerate(parts):
        assert part.equals(table.take(pa.array(np.flatnonzero(leaves == leaf))))  # in the order in which they came


def test_an_error_leaves_no_files(tmp_path: Path) -> None:
    table = rows()
    splits = splits_of(Cluster("id"), [table["id"].combine_chunks()], 4)

    def fail() -> None:
        with Distribution(splits, [COLUMN], memory=1, directory=str(tmp_path)) as found:
            found.add(table.to_batches()[0])
            assert list(tmp_path.iterdir())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())
