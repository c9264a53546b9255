"""What commits mean to a stream: its files, nothing, or an error that says which version and operation it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.hand_made import Json
from tests.unit.streaming.tables import (
    FIRST_TIME,
    ID,
    TABLE_ID,
    Log,
    Run,
    add,
    column,
    features,
    metadata,
    remove,
    vector,
)

from pyspark_delta.errors import (
    ChangedRowsError,
    CorruptLogError,
    DeltaError,
    InvalidOffsetError,
    StreamDataLossError,
    StreamSchemaError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.offset import BASE_INDEX, Offset

DELETES, CHANGES = "DELTA_SOURCE_IGNORE_DELETE", "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
ALLOWING = ("ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits")
SCHEMA_LOG = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
RESTART = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
LOST = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"


@pytest.fixture
def log() -> Log:
    """A table with two files, `a` and `b`."""
    made = Log()
    made.create()
    made.append("a", "b")
    return made


def refused(run: Run, kind: type[DeltaError], error_class: str, *facts: str) -> DeltaError:
    """The error with which a stream ends before its next batch; the message has the facts."""
    with pytest.raises(kind) as caught:
        run.planner.latest(run.end)
    assert caught.value.error_class == error_class
    for fact in facts:
        assert fact in str(caught.value)
    return caught.value


# ------------------------------------------------------------------------------------------------ changed rows
@pytest.mark.parametrize(
    ("actions", "error_class", "files"),
    [
        ([add("c"), add("d")], None, ["c", "d"]),
        ([], None, []),
        ([{"txn": {"appId": "x", "version": 1}}], None, []),
        ([add("c", dataChange=False), remove("a", dataChange=False)], None, []),
        ([add("c", dataChange=False), remove("a", dataChange=False), add("d")], None, ["d"]),
        ([remove("a"), remove("b")], DELETES, []),
        ([remove("a"), add("c", dataChange=False)], DELETES, []),
        ([remove("a"), add("c")], CHANGES, ["c"]),
        ([add("a", **vector(0)), remove("a")], CHANGES, ["a"]),
        ([add("c"), remove("a", dataChange=False)], None, ["c"]),
    ],
)
def test_c150_a_commit(log: Log, actions: list[Json], error_class: str | None, files: list[str]) -> None:
    for allowing in (None, *ALLOWING):
        run = log.stream(**({allowing: "true"} if allowing else {}))
        run.end = Offset(TABLE_ID, 2)
        if log.latest == 1:
            log.commit(*actions, operation="DELETE OR SO")
        allowed = allowing in ALLOWING[1:] or (allowing == "ignoreDeletes" and error_class == DELETES)
        if error_class is None or allowed:
            skipped = allowing == "skipChangeCommits" and error_class is not None
            assert run.all() == ([] if skipped else files)
            assert run.end == Offset(TABLE_ID, 3)
        else:
            error = refused(run, ChangedRowsError, error_class, "Version 2 of", "DELETE OR SO")
            assert (error.facts["version"], error.facts["operation"]) == (2, "DELETE OR SO")
            with pytest.raises(ChangedRowsError):  # also where a planned batch is repeated
                run.restart().paths(run.end, Offset(TABLE_ID, 3))


def test_the_commit_after_a_full_batch_is_not_looked_at(log: Log) -> None:
    run = log.stream(maxFilesPerTrigger=2)
    assert run.next() == ["a", "b"]
    log.append("c", "d")
    log.commit(remove("a"))
    assert run.next() == ["c", "d"]
    assert run.end == Offset(TABLE_ID, 3)
    refused(run, ChangedRowsError, DELETES)


# ------------------------------------------------------------------------------------------ schema and protocol
@pytest.mark.parametrize(
    ("columns", "error_class", "problem"),
    [
        ([ID], None, ""),
        ([column("id", note="changed", **{"delta.identity.highWaterMark": 7})], None, ""),
        ([ID, column("more")], RESTART, "column 'more'"),
        ([column("ID")], SCHEMA_LOG, "column 'ID'"),
        ([column("other")], SCHEMA_LOG, "column 'other'"),
        ([column("id", "string")], SCHEMA_LOG, "column 'id' has type string instead of long"),
        ([column("id", "integer")], None, ""),
        ([column("id", nullable=False)], None, ""),
    ],
)
def test_another_schema(log: Log, columns: list[Json], error_class: str | None, problem: str) -> None:
    run = log.stream()
    assert run.next() == ["a", "b"]
    log.commit(metadata(*columns), add("c"))
    if error_class is None:
        assert run.all() == ["c"]
        return
    error = refused(run, StreamSchemaError, error_class, "version 2", problem)
    assert error.facts["retryable"] == (error_class == RESTART)
    if error_class == RESTART:
        assert run.restart().all() == ["c"]


NESTED = {"type": "struct", "fields": [column("x", "integer")]}
WIDER = {"type": "struct", "fields": [column("x", "integer"), column("y")]}
RENAMED = {"type": "struct", "fields": [column("z", "integer")]}
LONGER = {"type": "struct", "fields": [column("x", "long")]}


def array_of(element: Any, contains_null: bool = True) -> Json:
    """An array type."""
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def map_of(value: Any, contains_null: bool = True) -> Json:
    """A map type."""
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": contains_null}


@pytest.mark.parametrize(
    ("before", "after", "error_class", "problem"),
    [
        ("integer", "long", RESTART, "column 'c' has type long instead of integer"),
        (NESTED, WIDER, RESTART, "column 'c.y'"),
        (NESTED, RENAMED, SCHEMA_LOG, "column 'c.z'"),
        (NESTED, LONGER, RESTART, "column 'c.x' has type long"),
        (array_of(NESTED), array_of(WIDER), RESTART, "column 'c.element.y'"),
        (array_of("long", False), array_of("long"), RESTART, "elements of column 'c' became nullable"),
        (map_of("long", False), map_of("long"), RESTART, "values of column 'c' became nullable"),
        (map_of(NESTED), map_of(WIDER), RESTART, "column 'c.value.y'"),
        (map_of("string"), map_of("long"), SCHEMA_LOG, "column 'c.value' has type long instead of string"),
        (array_of("long"), "long", SCHEMA_LOG, "column 'c' has type"),
    ],
)
def test_another_schema_of_a_nested_column(before: Any, after: Any, error_class: str, problem: str) -> None:
    log = Log()
    log.create(ID, column("c", before))
    log.append("a")
    run = log.stream()
    assert run.next() == ["a"]
    log.commit(metadata(ID, column("c", after)))
    log.append("b")
    refused(run, StreamSchemaError, error_class, "version 2", problem)
    if error_class == RESTART:
        assert run.restart().all() == ["b"]


def test_a_column_that_becomes_nullable() -> None:
    log = Log()
    log.create(column("id", nullable=False))
    run = log.stream(startingVersion=0)
    log.commit(metadata(ID), add("a"))
    refused(run, StreamSchemaError, RESTART, "column 'id' became nullable")
    assert run.restart().all() == ["a"]


def test_another_partitioning(log: Log) -> None:
    run = log.stream(ignoreChanges="true")
    assert run.next() == ["a", "b"]
    log.commit(metadata(ID, partition=["id"]), remove("a"), remove("b"), add("id=1/c", partition={"id": "1"}))
    refused(run, StreamSchemaError, SCHEMA_LOG, "partition columns are ['id'] instead of []")
    # A query that begins where the former partitioning still holds would read wrong partition values.
    earlier = log.stream(startingVersion=1, skipChangeCommits="true")
    earlier.end = Offset(TABLE_ID, 1)
    refused(earlier, StreamSchemaError, SCHEMA_LOG, "partition columns are [] instead of ['id']")


def mapped(name: str, physical: str, number: int, data_type: str = "long") -> Json:
    """A column with column mapping."""
    return column(name, data_type, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical})


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ([mapped("a", "c1", 1), mapped("c", "c2", 2)], "column 'b' was renamed to 'c'"),
        ([mapped("a", "c1", 1)], "column 'b' was dropped"),
        ([mapped("a", "c1", 1), mapped("b", "c3", 3)], "column 'b' was replaced by another column of that name"),
    ],
)
def test_column_mapping(columns: list[Json], problem: str) -> None:
    log, mode = Log(), {"configuration": {"delta.columnMapping.mode": "name"}}
    log.create(mapped("a", "c1", 1), mapped("b", "c2", 2), protocol=features("columnMapping"), **mode)
    log.append("x")
    run = log.stream(startingVersion=1, maxFilesPerTrigger=1)
    assert run.next() == ["x"]
    log.append("y")
    log.commit(metadata(*columns, **mode))
    assert run.next() == ["y"]
    refused(run, StreamSchemaError, SCHEMA_LOG, "version 3", problem)
    behind = run.restart()
    behind.end = Offset(TABLE_ID, 2)
    for _ in range(2):  # it has not read `y`, whose columns had other names
        refused(behind, StreamSchemaError, SCHEMA_LOG, "version 1")


def test_a_stream_begins_with_the_version_that_renames_a_column() -> None:
    log, mode = Log(), {"configuration": {"delta.columnMapping.mode": "name"}}
    log.create(mapped("a", "c1", 1), mapped("b", "c2", 2), protocol=features("columnMapping"), **mode)
    log.append("x")
    log.commit(metadata(mapped("a", "c1", 1), mapped("c", "c2", 2), **mode), add("y"), add("z"))
    run = log.stream(startingVersion=2, maxFilesPerTrigger=1)
    assert run.next() == ["y"]
    assert run.restart().paths(None, Offset(TABLE_ID, 2, 0)) == ["y"]
    assert run.restart().all() == ["z"]


@pytest.mark.parametrize("start", [2, "latest"])
def test_the_schema_changed_before_a_stream_began(log: Log, start: int | str) -> None:
    run = log.stream(startingVersion=start)  # and after its schema was chosen
    log.commit(metadata(ID, column("more")))
    log.append("c")
    for _ in range(2):
        refused(run, StreamSchemaError, RESTART, "version 2" if start == 2 else "version 3", "column 'more'")
    assert run.restart().all() == (["c"] if start == 2 else [])


def test_a_protocol_that_cannot_be_read(log: Log) -> None:
    run = log.stream()
    assert run.next() == ["a", "b"]
    log.commit(features("deletionVectors"))
    log.append("c")
    assert run.next() == ["c"]
    log.commit(features("deletionVectors", "fromTheFuture"))
    error = refused(run, UnsupportedFeatureError, "DELTA_UNSUPPORTED_FEATURES_FOR_READ", "fromTheFuture")
    assert isinstance(error, UnsupportedFeatureError)


def test_another_table_at_the_location(log: Log) -> None:
    run = log.stream()
    assert run.next() == ["a", "b"]
    log.commit(metadata(ID, id="other"))
    error_class = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    refused(run, InvalidOffsetError, error_class, TABLE_ID, "other")
    refused(run.restart(), InvalidOffsetError, error_class, TABLE_ID, "other")
    assert run.end is not None
    with pytest.raises(InvalidOffsetError):
        run.restart().planner.parse(run.end.to_json())


def test_a_table_that_was_deleted_and_created_again(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create()
    log.append("a")
    run = log.stream()
    assert run.next() == ["a"]
    log.lose(0, 1)
    again = Log(str(tmp_path))
    again.create(id="other")
    refused(run, InvalidOffsetError, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE")


# ---------------------------------------------------------------------------------------------------- lost commits
@pytest.fixture(params=["memory", "local"])
def cleaned(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """A table with versions 0 to 5 and a checkpoint of version 4; version n from 1 on adds the file `n`."""
    log = Log() if request.param == "memory" else Log(str(tmp_path))
    log.create()
    for version in range(1, 5):
        log.append(str(version))
    log.snapshot().checkpoint()
    log.append("5")
    return log


def at(run: Run, version: int) -> Run:
    """The query with an offset before a version."""
    run.end = Offset(TABLE_ID, version)
    return run


def test_commits_before_the_stream_may_be_lost(cleaned: Log) -> None:
    run = at(cleaned.stream(), 3)
    cleaned.lose(0, 1, 2)
    assert run.all() == ["3", "4", "5"]


def test_commits_at_the_position_of_a_stream_are_lost(cleaned: Log) -> None:
    run = at(cleaned.stream(), 2)
    tolerant = at(cleaned.stream(failOnDataLoss="false"), 2)
    cleaned.lose(0, 1, 2, 3)
    error = refused(
        run, StreamDataLossError, LOST, "needs version 2", "earliest commit in its log is 4", "failOnDataLoss"
    )
    assert error.facts["earliest"] == 4
    refused(run.restart(), StreamDataLossError, LOST)
    assert tolerant.all() == ["4", "5"]
    assert tolerant.end == Offset(TABLE_ID, 6)


def test_a_starting_time_finds_commits_before_the_first_checkpoint_that_is_left(cleaned: Log) -> None:
    run = cleaned.stream(startingTimestamp="2000-01-01")
    cleaned.lose(0, 1, 2)
    assert run.all() == ["3", "4", "5"]


def test_a_position_within_a_lost_commit_skips_no_other_file(cleaned: Log) -> None:
    cleaned.append("6a", "6b", "6c")
    cleaned.snapshot().checkpoint()
    run = cleaned.stream(failOnDataLoss="false", maxFilesPerTrigger=2)
    run.end = Offset(TABLE_ID, 3, 7)
    cleaned.lose(*range(6))
    assert list(run.batches()) == [["6a", "6b"], ["6c"]]


def test_a_lost_commit_changed_the_schema(cleaned: Log) -> None:
    run = at(cleaned.stream(failOnDataLoss="false"), 6)
    cleaned.commit(metadata(ID, column("more")))
    cleaned.append("7")
    cleaned.snapshot().checkpoint()
    cleaned.append("8")
    cleaned.lose(*range(8))
    refused(run, StreamSchemaError, RESTART, "version 8", "column 'more'")
    assert run.restart().all() == ["8"]


def test_log_clean_up_between_finding_commits_and_reading_them(cleaned: Log) -> None:
    run = at(cleaned.stream(maxFilesPerTrigger=1), 1)
    run.planner.end_of_table()
    cleaned.append("6")
    run.planner.end_of_table()  # finds version 6
    cleaned.append("7")
    cleaned.snapshot().checkpoint()
    cleaned.lose(*range(7))
    refused(run, StreamDataLossError, LOST, "earliest commit in its log is 7")


@pytest.mark.parametrize("tolerated", ["true", "false"])
def test_a_commit_is_lost_among_others(cleaned: Log, tolerated: str) -> None:
    run = at(cleaned.stream(failOnDataLoss=tolerated, maxFilesPerTrigger=1), 1)
    cleaned.lose(3)
    assert [run.next(), run.next()] == [["1"], ["2"]]
    if tolerated == "true":
        refused(run, StreamDataLossError, "DELTA_VERSIONS_NOT_CONTIGUOUS", "version 3")
    with pytest.raises(StreamDataLossError, match="version 3") as caught:
        run.restart().paths(Offset(TABLE_ID, 2), Offset(TABLE_ID, 5))
    assert caught.value.error_class == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_the_newest_commits_are_lost(cleaned: Log) -> None:
    run = at(cleaned.stream(), 6)
    trailing = "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
    cleaned.lose(5)
    assert run.planner.latest(Offset(TABLE_ID, 5)) == Offset(TABLE_ID, 5)
    refused(run, StreamDataLossError, trailing, "up to version 5", "latest version is 4")
    refused(run.restart(), StreamDataLossError, trailing)
    with pytest.raises(StreamDataLossError) as caught:
        run.restart().paths(Offset(TABLE_ID, 4), Offset(TABLE_ID, 5, 0))
    assert caught.value.error_class == trailing
    assert run.restart().paths(Offset(TABLE_ID, 4), Offset(TABLE_ID, 5)) == ["4"]


def test_a_batch_that_ends_before_a_version_that_is_missing_does_not_need_it(cleaned: Log) -> None:
    end = Offset(TABLE_ID, 6)
    run = cleaned.stream()
    cleaned.lose(5)
    cleaned.latest = 4
    with pytest.raises(StreamDataLossError):
        run.restart().paths(Offset(TABLE_ID, 4), end)
    cleaned.append("5 again")
    assert run.restart().paths(Offset(TABLE_ID, 4), end) == ["4", "5 again"]


def test_the_initial_snapshot_was_cleaned_up(cleaned: Log) -> None:
    run = cleaned.stream(maxFilesPerTrigger=2)
    early = Offset(TABLE_ID, 3, BASE_INDEX, initial=True)
    run.end = run.planner.latest(early)
    assert run.end == Offset(TABLE_ID, 3, 1, initial=True)
    assert sorted(run.paths(early, run.end)) == ["1", "2"]
    cleaned.lose(0, 1, 2, 3)
    assert run.next() is not None  # the planner has it
    restarted = run.restart()
    restarted.end = Offset(TABLE_ID, 3, 1, initial=True)
    for tolerated in (restarted, Run(cleaned, cleaned.stream(failOnDataLoss="false").options, restarted.end)):
        refused(tolerated, StreamDataLossError, "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE", "version 3", "is 4")


def test_a_damaged_commit_is_named(log: Log) -> None:
    run = log.stream()
    assert run.next() == ["a", "b"]
    log.commit({"add": {"path": "c", "size": "big", "modificationTime": 1, "partitionValues": {}}})
    refused(run, CorruptLogError, "DELTA_LOG_FILE_MALFORMED", f"{2:020}.json")


# -------------------------------------------------------------------------------------------------------- beginnings
def test_where_a_stream_begins(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create()
    for version in range(1, 4):
        log.append(str(version))
    assert sorted(log.stream().all()) == ["1", "2", "3"]
    assert log.stream(startingVersion=2).all() == ["2", "3"]
    time = FIRST_TIME / 1000
    for moment, files in ((0, ["1", "2", "3"]), (time + 2, ["2", "3"]), (time + 2.001, ["3"]), (time + 3, ["3"])):
        from datetime import UTC, datetime

        text = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        assert log.stream(startingTimestamp=text).all() == files
    newest = log.stream(startingVersion="latest")
    assert newest.next() == []
    first = newest.end
    assert first == Offset(TABLE_ID, 4)
    log.append("4")
    assert newest.restart().all() == ["4"]
    assert newest.restart().paths(None, first) == []


def test_a_beginning_after_the_latest_version(tmp_path: Path) -> None:
    log = Log(str(tmp_path))
    log.create()
    refused(log.stream(startingVersion=1), VersionNotFoundError, "DELTA_VERSION_NOT_FOUND", "0 to 0")
    with pytest.raises(TimestampOutOfRangeError):
        log.stream(startingTimestamp="2099-01-01").planner.latest(None)


def test_a_bound_is_where_available_data_ends(log: Log) -> None:
    run = log.stream(maxFilesPerTrigger=1)
    bound = run.planner.end_of_table()
    log.append("c")
    found = []
    while (batch := run.next(bound=bound)) is not None:
        found.append(batch)
    assert found == [["a"], ["b"]]
    assert run.end == bound == Offset(TABLE_ID, 2)
    assert run.next(Limits()) == ["c"]
