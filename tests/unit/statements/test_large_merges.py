"""Merges of sources that do not fit into memory: the same rows as in memory, flat memory, and no file stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_delta.engines.arrow.engines import ArrowSettings
from pyspark_delta.engines.arrow.key_hashes import hash_keys
from pyspark_delta.engines.arrow.merge_source import HeldRows
from pyspark_delta.engines.arrow.spill import SpilledRows, remove_abandoned
from pyspark_delta.engines.cost import CostModel
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.execution import execute
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.statements.merge.merge import Merge
from pyspark_delta.table import Table

SMALL = CostModel(merge_bytes=20_000)
SCHEMA = pa.schema([("k", pa.string()), ("d", pa.decimal128(20, 2)), ("n", pa.int64()), ("s", pa.string())])
CLAUSES = (
    Clause(RowKind.MATCHED, RowAction.DELETE, "s.n % 7 = 0"),
    Clause(RowKind.MATCHED, RowAction.UPDATE, None, {"n": "t.n + s.n", "s": "s.s"}),
    Clause(RowKind.NOT_MATCHED, RowAction.INSERT, "s.n % 2 = 0"),
    Clause(RowKind.BY_SOURCE, RowAction.DELETE, "t.n % 3 = 0"),
    Clause(RowKind.BY_SOURCE, RowAction.UPDATE, "t.n % 3 = 1", {"s": "'alone'"}),
)


@pytest.fixture
def spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def rows(start: int, stop: int, step: int = 1) -> pa.Table:
    numbers = range(start, stop, step)
    keys = [None if n % 11 == 0 else f"key {n // 2}" for n in numbers]
    decimals = [None if n % 13 == 0 else Decimal(n - 900) / 4 for n in numbers]
    return pa.table([keys, decimals, list(numbers), ["x" * 20] * len(numbers)], schema=SCHEMA)


def held(source: pa.Table, cost: CostModel) -> HeldRows:
    return HeldRows(source.to_batches(max_chunksize=100), source.schema, cost.merge_bytes)


def merged(path: Path, condition: str, clauses: tuple[Clause, ...], cost: CostModel) -> tuple[list[Any], list[Any]]:
    """The result of a merge, and the rows after it."""
    table = Table.write(path, rows(0, 2000))
    source = held(rows(1000, 4000, 3), cost)
    opened = ArrowSettings(cost=cost).merging(source, "s")
    staged = execute(lambda: Snapshot.load(str(path)), Merge(opened, condition, "t", clauses))
    assert staged is not None
    assert isinstance(source.rows(), SpilledRows) is (cost is SMALL)
    return list(staged.result), sorted(map(repr, table.refresh().scan().to_arrow().to_pylist()))


@pytest.mark.parametrize("condition", ["t.k = s.k AND t.n <= s.n", "t.k <=> s.k AND t.n = s.n", "s.d = t.d"])
@pytest.mark.parametrize("clauses", [CLAUSES, CLAUSES[:3], CLAUSES[2:3]], ids=["all", "matched", "inserts"])
def test_a_source_in_files_is_merged_as_one_in_memory(
    tmp_path: Path, spills: Path, condition: str, clauses: tuple[Clause, ...]
) -> None:
    found = merged(tmp_path / "files", condition, clauses, SMALL)
    assert found == merged(tmp_path / "memory", condition, clauses, CostModel())
    assert found[0][0] > 100
    assert not list(spills.iterdir())


def test_equal_keys_have_equal_hashes_wherever_they_are() -> None:
    many = rows(0, 3000)
    columns = [many["k"].combine_chunks(), many["d"].combine_chunks(), many["n"].combine_chunks().cast(pa.int32())]
    hashes = hash_keys(columns)
    some = np.random.default_rng(1).permutation(3000)[:500]
    assert np.array_equal(hash_keys([column.take(pa.array(some)) for column in columns]), hashes[some])
    assert np.array_equal(hash_keys([column.slice(700, 90) for column in columns]), hashes[700:790])
    assert len(np.unique(hashes)) == 3000
    assert np.bincount((hash_keys(columns[2:]) >> np.uint64(32)) % np.uint64(10)).min() > 200


def test_a_stream_that_fails_leaves_nothing(tmp_path: Path, spills: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 3000).to_batches(max_chunksize=100)
        assert list(spills.iterdir())
        raise OSError("the disk of the source is gone")

    Table.write(tmp_path / "t", rows(0, 10))
    source = HeldRows(failing(), SCHEMA, SMALL.merge_bytes)
    merge = Merge(ArrowSettings(cost=SMALL).merging(source), "t.k = s.k", "t", CLAUSES)
    with pytest.raises(OSError, match="the source is gone"):
        execute(lambda: Snapshot.load(str(tmp_path / "t")), merge)
    assert not list(spills.iterdir())
    assert Table.open(tmp_path / "t").version == 0
    with pytest.raises(InvalidOperationError, match="can be read only once"):
        execute(lambda: Snapshot.load(str(tmp_path / "t")), merge)


def test_files_of_killed_processes_are_removed_by_age(spills: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    folders = {}
    for name, process, age in (("old", ended.pid, 2), ("new", ended.pid, 0), ("mine", os.getpid(), 2)):
        folders[name] = spills / f"pyspark-delta-spill-{process}-{name}"
        folders[name].mkdir()
        (folders[name] / "source.arrow").write_bytes(b"x")
        then = time.time() - age * 24 * 3600
        os.utime(folders[name], (then, then))
    remove_abandoned()
    assert {name for name, folder in folders.items() if folder.exists()} == {"new", "mine"}


PEAK = """
import sys
import pyarrow as pa
from pyspark_delta.engines.arrow.engines import ArrowSettings
from pyspark_delta.engines.arrow.merge_source import HeldRows
from pyspark_delta.engines.cost import CostModel
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.execution import execute
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.statements.merge.merge import Merge

count, cost, path = int(sys.argv[1]), CostModel(merge_bytes=4 << 20), sys.argv[2]
def batches():
    for start in range(0, count, 10_000):
        ids = pa.array(range(start, start + 10_000))
        yield pa.record_batch([ids, pa.array(["some text of a row, the same for all"] * 10_000)], ["id", "s"])
held = HeldRows(batches(), pa.schema([("id", pa.int64()), ("s", pa.string())]), cost.merge_bytes)
delete = Clause(RowKind.MATCHED, RowAction.DELETE, "s.s <> t.s")
merge = Merge(ArrowSettings(cost=cost).merging(held), "t.id = s.id", "t", (delete,))
staged = execute(lambda: Snapshot.load(path), merge)
print(staged.result[0], held.rows().nbytes, pa.default_memory_pool().max_memory())
"""


def test_memory_does_not_grow_with_the_source(tmp_path: Path) -> None:
    Table.write(tmp_path, pa.table({"id": range(0, 4_000_000, 100), "s": ["a"] * 40_000}))
    found = []
    for count in (400_000, 1_600_000):
        run = [sys.executable, "-c", PEAK, str(count), str(tmp_path)]
        deleted, size, peak = map(int, subprocess.check_output(run, text=True).split())
        assert deleted == (4_000 if not found else 12_000)
        found.append((size, peak))
    (small, low), (large, high) = found
    assert large > 4 * small * 0.99
    assert high < 1.5 * low < large / 2, found
