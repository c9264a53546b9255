from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from benchmarks.workloads.merge_sources import source_file

_ROWS, _FILES = 4000, 40


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def _made(**statement: Any) -> tuple[pa.Table, pa.Table]:
    """The rows with ids that the table has, and the others."""
    rows = pq.read_table(source_file({"rows": _ROWS, **statement}))
    there = pc.less(rows["id"], _ROWS)
    return rows.filter(there), rows.filter(pc.invert(there))


@pytest.mark.parametrize(
    ("touched", "matched", "unmatched", "files", "known", "new"),
    [(0.05, 0.1, 0.01, 2, 20, 2), (0.05, 0.0, 1.0, 0, 0, 200), (1.0, 0.01, 0.0, 20, 40, 0), (0.5, 1.0, 0, 20, 2000, 0)],
)
def test_a_sample_takes_shares_of_some_files(
    touched: float, matched: float, unmatched: float, files: int, known: int, new: int
):
    sample = {"files": _FILES, "touched": touched, "matched": matched, "unmatched": unmatched}
    old, added = _made(sample=sample)
    assert (old.num_rows, added.num_rows) == (known, new)
    ids = old["id"].to_pylist()
    assert ids == sorted(set(ids))
    # Some rows of all files need not touch every file.
    assert files <= len({number // (_ROWS // _FILES) for number in ids}) <= touched * _FILES
    assert set(old["amount"].to_pylist()) <= {-1}


def test_every_so_manieth_row_and_new_ones_behind_the_end():
    old, added = _made(start=100, stop=200, step=50, new=3)
    assert old.select(["id", "amount"]).to_pylist() == [{"id": 100, "amount": -1}, {"id": 150, "amount": -1}]
    assert added["id"].to_pylist() == [4000, 4001, 4002]


def test_a_file_is_made_once():
    statement = {"rows": _ROWS, "start": 0, "stop": 10, "step": 1, "new": 0}
    path = Path(source_file(statement))
    made = path.stat().st_mtime_ns
    assert source_file(statement) == str(path)
    assert path.stat().st_mtime_ns == made
