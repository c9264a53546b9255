"""Conditions on partition values or statistics, over every form in which the log holds the two."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.synthetic_log import SyntheticLog, write_log

from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot


def paths(snapshot: Snapshot, where: str) -> set[str]:
    return set(plan_scan(snapshot, where=where).files["path"].to_pylist())


@pytest.mark.parametrize("struct_stats", [False, True], ids=["texts", "parsed"])
def test_a_file_is_kept_for_either_side(tmp_path: Path, struct_stats: bool) -> None:
    location = str(tmp_path)
    write_log(
        tmp_path, SyntheticLog(1_000, commits=3, adds=20, removes=10, row_group_rows=250, struct_stats=struct_stats)
    )
    left, right = "p_date = DATE'2024-01-02'", "id >= 990000"
    both = f"{left} OR {right}"
    expected = paths(Snapshot.load(location), left) | paths(Snapshot.load(location), right)
    assert 0 < len(expected) < 100
    before = paths(Snapshot.load(location, version=10), both)
    assert expected - before, "some of them are in commits after the checkpoint"
    snapshot = Snapshot.load(location)
    assert paths(snapshot, both) == expected  # from the checkpoint
    assert paths(snapshot, both) == expected  # from memory
    nested = f"({both}) AND id < 995000"
    assert paths(snapshot, nested) == expected & paths(snapshot, "id < 995000")
    assert paths(Snapshot.load(location), f"{left} AND ({both})") == paths(snapshot, left)
