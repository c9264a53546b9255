"""What a stream has still to read, as its progress shows it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.unit.streaming.tables import FIRST_TIME, ID, Log, add, column

from pyspark_delta.errors import DeltaWarning
from pyspark_delta.streaming.backlog import Backlog
from pyspark_delta.streaming.offset import Offset


def test_the_backlog_shrinks_to_nothing(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "t"))
    log.create()
    log.append("a", "b", size=10)
    log.append("c", "d", "e", size=100)
    planner = log.stream(startingVersion=0, maxFilesPerTrigger=3).planner
    position: Offset | None = None
    found: list[Backlog] = []
    for _ in range(3):
        position = planner.latest(position)
        assert position is not None
        found.append(planner.backlog(position))
        planner.release(position)
    sums = [(one.files, one.bytes, one.versions) for one in found]
    assert sums == [(2, 200, 1), (0, 0, 0), (0, 0, 0)]
    age = time.time() * 1000 - (FIRST_TIME + 2000)
    assert abs(found[0].oldest_age_ms - age) < 60_000
    assert found[-1].metrics() == {
        "numFilesOutstanding": "0",
        "numBytesOutstanding": "0",
        "versionsBehind": "0",
        "oldestCommitAgeMs": "0",
    }


def test_a_stream_warns_before_log_cleanup_removes_its_commits(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "t"))
    log.create(ID, configuration={"delta.logRetentionDuration": "interval 8 days"})
    log.append("a")
    planner = log.stream(startingVersion=0).planner
    with pytest.warns(DeltaWarning, match=r"version 0, .* ago\. Log clean-up .* 8\.0 days"):
        end = planner.latest(None)
    assert end is not None
    log.append("b")
    planner.latest(end)  # it warns once


def test_files_that_are_ruled_out_are_not_outstanding(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "t"))
    log.create(ID, column("p"), partition=["p"])
    log.commit(*(add(f"{p}-{n}", 10, {"p": str(p)}) for p in (1, 2) for n in range(3)))
    for begin in ({}, {"startingVersion": 0}):
        planner = log.stream(maxFilesPerTrigger=1, where="p = 2", **begin).planner
        end = planner.latest(None)
        assert end is not None
        assert (planner.backlog(end).files, planner.backlog(end).bytes) == (2, 20)


def test_an_error_in_commits_ahead_is_left_to_their_batch(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "t"))
    log.create()
    log.append("a", "b")
    log.commit({"remove": {"path": "a", "dataChange": True, "deletionTimestamp": 0}})
    planner = log.stream(startingVersion=0, maxFilesPerTrigger=1).planner
    end = planner.latest(None)
    assert end is not None
    assert planner.backlog(end).files == 1
