"""Streams of the change data feed: which changes a batch has, by version and index."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.hand_made import Json, metadata
from tests.lengths import length
from tests.unit.streaming.tables import FIRST_TIME, ID, TABLE_ID, Log, Run, add, column, features, remove, vector

from pyspark_delta.changes.plan import plan_changes
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.errors import InvalidOperationError, StreamSchemaError
from pyspark_delta.scan.plan import ScanTask
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.offset import Offset

FEED = {"delta.enableChangeDataFeed": "true"}
LEGACY = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
VECTORS = features("deletionVectors", "changeDataFeed", reader=["deletionVectors"])
NO_CHANGE = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")


def cdc(path: str, size: int = 1) -> Json:
    """A change data file."""
    return {"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A table whose feed is on from version 0, on the local disk for the times of commits."""
    made = Log(str(tmp_path))
    made.create(protocol=LEGACY, configuration=FEED)
    return made


def changes(run: Run, start: Offset | None, end: Offset) -> list[tuple[str, str | None, int, str]]:
    """Path, kind of change (None where the rows have it), version and time of each file of a batch."""
    found = []
    for part in run.planner.batch(start, end):
        constants = {field.name for field in part.source.constants}
        assert {"_commit_version", "_commit_timestamp"} <= constants
        assert ("_change_type" in constants) != (bool(part.source.stored_too))
        for file in part.files.to_pylist():
            values = dict(file["partition_values"])
            kind = values["_change_type"] if "_change_type" in constants else None
            found.append((file["path"], kind, int(values["_commit_version"]), values["_commit_timestamp"]))
    return sorted(found, key=lambda change: change[2])


def kinds(run: Run, limits: Limits | None = None) -> list[tuple[str, str | None, int]] | None:
    """The next batch without times, None if nothing is new."""
    end = run.planner.latest(run.end, limits)
    assert end is not None
    if end == run.end:
        return None
    found = [change[:3] for change in changes(run, run.end, end)]
    run.end = end
    return found


def shown(milliseconds: int) -> str:
    """A time as partition values show it, without its fraction."""
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).isoformat()[:19]


def test_the_initial_snapshot_is_inserted_at_its_version_and_time(log: Log) -> None:
    log.append("a", "b")
    log.commit(remove("a"), add("c"))
    log.append("d")
    run = log.stream(readChangeFeed="true")
    assert run.planner.schema.names == ("id", "_change_type", "_commit_version", "_commit_timestamp")
    end = run.planner.latest(None)
    at = shown(FIRST_TIME + 3000)
    assert end == Offset(TABLE_ID, 4)
    found = changes(run, None, end)
    assert [(path, kind, version) for path, kind, version, _ in found] == [
        (path, "insert", 3) for path in ("b", "c", "d")
    ]
    assert {time.replace(" ", "T")[:19] for *_, time in found} == {at}
    log.commit(remove("b"), add("e"))
    assert kinds(run.restart()) is not None


def test_a_batch_goes_from_the_snapshot_into_commits_by_index(log: Log) -> None:
    log.append("a", "b")
    run = log.stream(readChangeFeed="true")
    assert kinds(run, Limits(files=1)) == [("a", "insert", 1)]
    assert run.end == Offset(TABLE_ID, 1, 0, initial=True)
    log.commit(remove("a"), add("c"), remove("x", dataChange=False), add("d"))
    assert kinds(run, Limits(files=3)) == [("b", "insert", 1), ("c", "insert", 2), ("a", "delete", 2)]
    assert run.end == Offset(TABLE_ID, 2, 1)
    assert kinds(run.restart(), Limits(files=3)) == [("d", "insert", 2)]


def test_c169_a_commit_with_change_data_is_whole(log: Log) -> None:
    log.append("a")
    log.commit(add("b"), cdc("_change_data/1"), remove("a"), cdc("_change_data/2"), cdc("_change_data/3"))
    log.append("c")
    run = log.stream(readChangeFeed="true", startingVersion=1)
    assert kinds(run, Limits(files=2)) == [("a", "insert", 1)]
    assert run.end == Offset(TABLE_ID, 2)
    recorded = [(f"_change_data/{number}", None, 2) for number in (1, 2, 3)]
    assert kinds(run, Limits(files=2)) == recorded  # it alone is more than the limit
    assert run.end == Offset(TABLE_ID, 3)
    assert kinds(run, Limits(files=2)) == [("c", "insert", 3)]


def test_an_offset_within_change_data_counts_change_data_alone(log: Log) -> None:
    log.commit(add("b"), cdc("_change_data/1"), remove("a"), cdc("_change_data/2"), cdc("_change_data/3"))
    run = log.stream(readChangeFeed="true", startingVersion=1)
    found = changes(run, Offset(TABLE_ID, 1, 0), Offset(TABLE_ID, 1, 1))
    assert [path for path, *_ in found] == ["_change_data/2"]


def test_c173_a_commit_with_deletion_vectors_is_whole_and_gives_the_rows_that_differ(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create(protocol=VECTORS, configuration=FEED)
    log.append("a", "b")
    log.commit(remove("a"), add("a", **vector(1)), add("c"))
    log.commit(add("a", **vector(2)), remove("a", **vector(1)))
    run = log.stream(readChangeFeed="true", startingVersion=1)
    assert kinds(run, Limits(files=3)) == [("a", "insert", 1), ("b", "insert", 1)]
    assert kinds(run, Limits(files=1)) == [("a", "delete", 2), ("c", "insert", 2)]
    assert kinds(run, Limits(files=1)) == [("a", "delete", 3), ("a", "insert", 3)]
    assert kinds(run) is None


def test_a_merge_that_changed_nothing_gives_nothing(log: Log) -> None:
    log.append("a")
    log.commit(remove("a"), add("b"), operation="MERGE", operationMetrics=NO_CHANGE)
    log.append("c")
    run = log.stream(readChangeFeed="true", startingVersion=1)
    assert kinds(run, Limits(files=2)) == [("a", "insert", 1), ("c", "insert", 3)]


def test_options_that_ignore_changes_do_not_apply_and_paths_are_excluded(log: Log) -> None:
    log.append("a", "b.x")
    log.commit(remove("a"))
    run = log.stream(readChangeFeed="true", startingVersion=1, skipChangeCommits="true", excludeRegex="x$")
    assert kinds(run) == [("a", "insert", 1), ("a", "delete", 2)]


def test_partition_values_come_with_the_facts_of_the_commit(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create(ID, column("p", "string"), protocol=LEGACY, partition=["p"], configuration=FEED)
    log.append("p=1/a", partition={"p": "1"})
    log.commit(remove("p=1/a"), add("p=2/b", partition={"p": "2"}))  # the remove has no partition values
    run = log.stream(readChangeFeed="true", startingVersion=1)
    for _ in range(2):
        end = run.planner.latest(run.end, Limits(files=1))
        assert end is not None
        (part,) = run.planner.batch(run.end, end)
        (values,) = part.files["partition_values"].to_pylist()
        path = part.files["path"][0].as_py()
        assert dict(values)["p"] == path[2]
        run.end = end
    (part,) = run.planner.batch(run.end, Offset(TABLE_ID, 3))
    assert dict(part.files["partition_values"][0].as_py())["p"] == "2"


def test_the_feed_must_be_on_in_the_initial_snapshot(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create(protocol=LEGACY)
    log.append("a")
    with pytest.raises(InvalidOperationError, match="not enabled in version 1") as caught:
        log.stream(readChangeFeed="true").planner.latest(None)
    assert caught.value.error_class == "DELTA_MISSING_CHANGE_DATA"
    log.commit(metadata(ID, configuration=FEED))
    assert kinds(log.stream(readChangeFeed="true")) == [("a", "insert", 2)]


@pytest.mark.parametrize("at_start", [True, False])
def test_the_feed_must_be_on_in_every_commit(tmp_path: Path, at_start: bool) -> None:
    log = Log(str(tmp_path))
    log.create(protocol=LEGACY, configuration={} if at_start else FEED)
    log.append("a")
    run = None if at_start else log.stream(readChangeFeed="true", startingVersion=1)
    log.commit(metadata(ID, configuration=FEED if at_start else {}))
    log.append("b")
    run = run or log.stream(readChangeFeed="true", startingVersion=1)
    with pytest.raises(InvalidOperationError, match=f"not enabled in version {1 if at_start else 2}") as caught:
        run.planner.latest(None)
    assert caught.value.error_class == "DELTA_MISSING_CHANGE_DATA"
    if at_start:
        later = log.stream(readChangeFeed="true", startingVersion=2)
        assert kinds(later) == [("b", "insert", 3)]


def test_c171_times_are_those_in_commits_from_the_version_that_has_them(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create(protocol=LEGACY, configuration=FEED)
    log.append("a")
    run = log.stream(readChangeFeed="true", startingVersion=1)
    timed = {**FEED, "delta.enableInCommitTimestamps": "true"}
    timed |= {"delta.inCommitTimestampEnablementVersion": "2", "delta.inCommitTimestampEnablementTimestamp": "1"}
    protocol = features("inCommitTimestamp", "changeDataFeed", reader=[])
    log.commit(protocol, metadata(ID, configuration=timed), add("b"), inCommitTimestamp=FIRST_TIME + 86_400_000)
    log.commit(add("c"), inCommitTimestamp=FIRST_TIME + 86_401_000)
    for planned in (run, run.restart()):
        times = [time.replace(" ", "T")[:19] for *_, time in changes(planned, None, Offset(TABLE_ID, 4))]
        assert times == [shown(FIRST_TIME + after) for after in (1000, 86_400_000, 86_401_000)]


def test_a_changed_schema_ends_the_feed(log: Log) -> None:
    run = log.stream(readChangeFeed="true", startingVersion=1)
    log.commit(metadata(ID, column("more"), configuration=FEED))
    with pytest.raises(StreamSchemaError, match="version 1"):
        run.planner.latest(run.end)


@pytest.mark.parametrize("seed", range(length(8, 400)))
def test_batches_of_any_size_give_the_changes_of_the_range(seed: int, tmp_path: Path) -> None:
    """The planner of ranges, which reads the whole range at once, is the model."""
    chosen = random.Random(seed)
    log = Log(str(tmp_path))
    log.create(protocol=VECTORS, configuration=FEED)
    live: dict[str, Json] = {}
    for version in range(1, 15):
        marked = chosen.sample(sorted(live), min(len(live), chosen.randint(0, 2)))
        actions: list[Json] = [remove(path, **live[path]) for path in marked]
        for path in marked:
            if chosen.random() < 0.5:
                live[path] = vector(chosen.randrange(50))
                actions.append(add(path, **live[path]))
            else:
                del live[path]
        for number in range(chosen.randint(0, 3)):
            path = f"{version}-{number}"
            live[path] = {}
            actions.append(add(path, chosen.randint(0, 9)))
        if chosen.random() < 0.2:
            actions += [cdc(f"_change_data/{version}-{number}") for number in range(2)]
        chosen.shuffle(actions)
        merge: dict[str, Any] = {"operation": "MERGE", "operationMetrics": NO_CHANGE}
        log.commit(*actions, **(merge if chosen.random() < 0.1 else {}))
    run = log.stream(readChangeFeed="true", startingVersion=1)
    found: list[ScanTask | dict[str, Any]] = []
    while True:
        run = run.restart() if chosen.random() < 0.3 else run
        limits = Limits(chosen.choice([1, 2, 5, None]), chosen.choice([None, 1, 20]))
        end = run.planner.latest(run.end, limits)
        if end == run.end:
            break
        assert end is not None
        again = run.restart().planner.batch(run.end, end)
        batch = run.planner.batch(run.end, end)
        assert [part.files for part in again] == [part.files for part in batch]
        found += [file for part in batch for file in part.files.to_pylist()]
        run.planner.release(end)
        run.end = end
    (scan,) = plan_changes(log.snapshot(), VersionRange(1, 14)).scans
    assert sorted(map(str, found)) == sorted(map(str, scan.plan.files.to_pylist()))
