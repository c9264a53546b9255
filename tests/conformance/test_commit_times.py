"""Versions and times: time travel by timestamp, in-commit timestamps, and history (ICT)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.errors import CorruptLogError, TimestampOutOfRangeError
from pyspark_delta.log.history import commit_history, version_at
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol

T = 1_700_000_000_000
ICT = protocol(1, 7, writer_features=["inCommitTimestamp"])


def info(time: int | None, **values: Any) -> dict[str, Any]:
    stamp = {} if time is None else {"inCommitTimestamp": time}
    return {"commitInfo": {**stamp, "timestamp": 5, "operation": "WRITE", **values}}


def properties(**extra: str) -> dict[str, str]:
    return {"delta.enableInCommitTimestamps": "true", **extra}


def at(table: TableBuilder, timestamp: int) -> int:
    return Snapshot.load(table.location, timestamp_ms=timestamp).version


@pytest.fixture
def by_files(tmp_path: Path) -> TableBuilder:
    """Versions 0 to 4 a second apart by the times of their files; 2 runs behind 1, and 3 is as 2."""
    table = TableBuilder(tmp_path)
    table.commit(0, [info(None), protocol(), metadata()], time_ms=T)
    for version, offset in enumerate((1000, 500, 500, 4000), 1):
        table.commit(version, [info(None), add(str(version))], time_ms=T + offset)
    return table


def test_time_travel_by_file_times(by_files: TableBuilder) -> None:
    assert at(by_files, T) == 0
    assert at(by_files, T + 999) == 0
    assert at(by_files, T + 1000) == 1
    assert at(by_files, T + 1001) == 2  # a commit is at least 1 ms after the one before
    assert at(by_files, T + 1002) == 3
    assert at(by_files, T + 3999) == 3
    assert at(by_files, T + 4000) == 4


def test_times_out_of_range_name_the_nearest_version(by_files: TableBuilder) -> None:
    with pytest.raises(TimestampOutOfRangeError, match=r"after the latest version .* 4, committed") as late:
        at(by_files, T + 4001)
    assert late.value.error_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    with pytest.raises(TimestampOutOfRangeError, match=r"before the earliest version .* 0, committed") as early:
        at(by_files, T - 1)
    assert early.value.error_class == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


def test_versions_that_cannot_be_read_any_more_are_out_of_range(by_files: TableBuilder) -> None:
    by_files.classic_checkpoint(3, [protocol(), metadata(), add("1"), add("2"), add("3")])
    (by_files.log / f"{0:020d}.json").unlink()
    assert at(by_files, T + 3000) == 3
    with pytest.raises(TimestampOutOfRangeError, match="that can be read, 3,"):
        at(by_files, T + 500)


def test_c355_c360_all_commits_carry_their_time(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [info(T), ICT, metadata(configuration=properties())], time_ms=1)
    for version in range(1, 6):
        table.commit(version, [info(T + 10 * version)], time_ms=1)
    assert [at(table, T + offset) for offset in (0, 9, 10, 49, 50)] == [0, 0, 1, 4, 5]
    assert Snapshot.load(table.location).timestamp == T + 50
    assert Snapshot.load(table.location, version=2).timestamp == T + 20
    with pytest.raises(TimestampOutOfRangeError):
        at(table, T + 51)


def test_c355_the_feature_must_be_supported_and_its_name_is_singular(tmp_path: Path) -> None:
    for number, features in enumerate((["appendOnly"], ["inCommitTimestamps", "appendOnly"])):
        table = TableBuilder(tmp_path / str(number))
        listed = protocol(1, 7, writer_features=features)
        table.commit(0, [info(T + 99), listed, metadata(configuration=properties())], time_ms=T)
        assert Snapshot.load(table.location).timestamp == T


def test_c355_the_preview_of_the_feature_counts_too(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    listed = protocol(1, 7, writer_features=["inCommitTimestamp-preview"])
    table.commit(0, [info(T), listed, metadata(configuration=properties())], time_ms=1)
    table.commit(1, [info(T + 10)], time_ms=2)
    assert Snapshot.load(table.location).timestamp == T + 10
    assert [at(table, T + offset) for offset in (0, 9, 10)] == [0, 0, 1]


@pytest.fixture
def enabled_later(tmp_path: Path) -> TableBuilder:
    """In-commit timestamps from version 3 on, which is at T + 1000; file times before."""
    table = TableBuilder(tmp_path)
    table.commit(0, [info(None), protocol(), metadata()], time_ms=T)
    for version in (1, 2):
        table.commit(version, [info(None)], time_ms=T + 100 * version)
    since = {
        "delta.inCommitTimestampEnablementVersion": "3",
        "delta.inCommitTimestampEnablementTimestamp": str(T + 1000),
    }
    table.commit(3, [info(T + 1000), ICT, metadata(configuration=properties(**since))], time_ms=T + 300)
    table.commit(4, [info(T + 2000)], time_ms=T + 400)
    return table


def test_c358_c360_c361_enabled_midway(enabled_later: TableBuilder) -> None:
    assert [at(enabled_later, T + offset) for offset in (0, 150, 200, 999, 1000, 1999, 2000)] == [0, 1, 2, 2, 3, 3, 4]
    assert [Snapshot.load(enabled_later.location, version=v).timestamp - T for v in range(5)] == [
        0,
        100,
        200,
        1000,
        2000,
    ]
    rows = commit_history(Snapshot.load(enabled_later.location))
    assert [round(row["timestamp"].timestamp() * 1000) - T for row in rows] == [2000, 1000, 200, 100, 0]


def test_c356_a_commit_without_its_time_is_an_error(enabled_later: TableBuilder) -> None:
    enabled_later.commit(4, [info(None)])
    with pytest.raises(CorruptLogError, match=r"00000000000000000004\.json' has no inCommitTimestamp"):
        _ = Snapshot.load(enabled_later.location).timestamp


def test_history_names_and_limit(by_files: TableBuilder) -> None:
    by_files.commit(5, [{"commitInfo": {"operation": "MERGE", "operationMetrics": {"n": "1"}, "unknown": 1}}])
    rows = commit_history(Snapshot.load(by_files.location), 2)
    assert [row["version"] for row in rows] == [5, 4]
    assert rows[0]["operation"] == "MERGE"
    assert rows[0]["operationMetrics"] == {"n": "1"}
    assert rows[0]["engineInfo"] is None
    assert "unknown" not in rows[0]
    assert commit_history(Snapshot.load(by_files.location), 0) == []


class _Counted:
    """A snapshot whose reads are counted."""

    def __init__(self, snapshot: Snapshot, counts: Counts) -> None:
        self.segment, self.version, self.configuration = snapshot.segment, snapshot.version, snapshot.configuration
        self.store = CountingStore(snapshot.store, counts)


def test_few_commits_are_read_to_find_a_time_or_to_show_some_history(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [info(T), ICT, metadata(configuration=properties())])
    for version in range(1, 400):
        table.commit(version, [info(T + version)])
    snapshot, counts = Snapshot.load(table.location), Counts()
    assert version_at(_Counted(snapshot, counts), T + 123) == 123
    assert counts.calls["read"] <= 12
    counts.reset()
    assert len(commit_history(_Counted(snapshot, counts), 10)) == 10
    assert (counts.calls["read"], counts.calls["list"]) == (10, 0)  # the snapshot has been read from these files
    table.classic_checkpoint(395, [ICT, metadata(configuration=properties())])
    snapshot = Snapshot.load(table.location)
    counts.reset()
    rows = commit_history(_Counted(snapshot, counts), 10)
    assert [row["version"] for row in rows] == list(range(399, 389, -1))
    assert (counts.calls["read"], counts.calls["list"], counts.files) == (10, 1, 11)
