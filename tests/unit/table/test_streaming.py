"""`Table.stream`: batches of new rows, and continuing from an offset."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

from pyspark_delta import ChangedRowsError, InvalidOffsetError, InvalidOperationError, InvalidOptionError, Table


@pytest.fixture
def location(tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    Table.create(location, "id BIGINT, part STRING", partition_by=["part"])
    for number in range(4):
        Table.open(location).append({"id": [number, number + 100], "part": [f"p{number % 2}"] * 2})
    return location


def _ids(batches: list[pa.Table]) -> list[int]:
    return sorted(number for batch in batches for number in batch["id"].to_pylist())


def test_a_stream_returns_current_rows_then_those_of_later_versions(location: str) -> None:
    stream = Table.open(location).stream(max_files=3)
    first = [batch.to_arrow() for batch in stream]
    assert [batch.num_rows for batch in first] == [6, 2]
    assert _ids(first) == [0, 1, 2, 3, 100, 101, 102, 103]

    assert stream.next() is None
    Table.open(location).append({"id": [7], "part": ["p0"]})
    assert [batch.to_arrow()["id"].to_pylist() for batch in stream] == [[7]]


def test_a_stream_continues_from_the_offset_of_a_batch(location: str) -> None:
    first = Table.open(location).stream(max_files=1).next()
    assert first is not None
    rest = [batch.to_arrow() for batch in Table.open(location).stream(first.offset, max_files=1)]
    assert len(rest) == 3
    assert _ids([first.to_arrow(), *rest]) == [0, 1, 2, 3, 100, 101, 102, 103]


def test_columns_and_conditions_apply_to_every_batch(location: str) -> None:
    stream = Table.open(location).stream(max_files=1, columns=["id"], where="part = 'p1' AND id < 100")
    rows = [batch.to_arrow() for batch in stream]
    assert _ids(rows) == [1, 3]
    assert rows[0].column_names == ["id"]


def test_files_that_a_condition_rules_out_cost_nothing_of_the_limits(location: str) -> None:
    initial = Table.open(location).stream(max_files=1, where="part = 'p1'")
    assert [batch.num_files for batch in initial] == [1, 1]
    commits = Table.open(location).stream(max_files=1, starting_version=1, where="id < 1 OR id > 102")
    assert [batch.num_files for batch in commits] == [1, 1]  # by statistics


@pytest.mark.parametrize("condition", ["operation = 'DELETE'", "userMetadata LIKE 'erase%'", "version = 6"])
@pytest.mark.parametrize("changes", [False, True])
def test_commits_are_skipped_by_a_condition(location: str, condition: str, changes: bool) -> None:
    Table.open(location).alter().set_properties({"delta.enableChangeDataFeed": True})
    stream = Table.open(location).stream(starting_version="latest", skip_commits_where=condition, changes=changes)
    list(stream)
    Table.open(location).delete("id = 0", commit_info="erase 0")
    Table.open(location).append({"id": [8], "part": ["p0"]})
    assert Table.open(location).version == 7
    assert _ids([batch.to_arrow() for batch in stream]) == [8]


@pytest.mark.parametrize(
    ("start", "expected"), [({"starting_version": 3}, [2, 3, 102, 103]), ({"starting_version": "latest"}, [])]
)
def test_a_stream_starts_with_a_version(location: str, start: dict[str, int | str], expected: list[int]) -> None:
    stream = Table.open(location).stream(**start)
    assert _ids([batch.to_arrow() for batch in stream]) == expected
    Table.open(location).append({"id": [8], "part": ["p0"]})
    assert _ids([batch.to_arrow() for batch in stream]) == [8]


def test_follow_waits_for_new_versions(location: str) -> None:
    stream = Table.open(location).stream(starting_version="latest")
    writer = Thread(target=lambda: Table.open(location).append({"id": [9], "part": ["p0"]}))
    found = []
    for batch in stream.follow(0.01, timeout=30):
        found.append(batch.to_arrow())
        if batch.num_files:
            break
        writer.start()  # after the first batch, which only marks the beginning
    writer.join()
    assert _ids(found) == [9]


def test_follow_ends_when_nothing_was_new_for_the_timeout(location: str) -> None:
    stream = Table.open(location).stream()
    assert len(list(stream.follow(0.01, timeout=0.02))) == 1


def test_changed_rows_are_an_error_that_names_the_version(location: str) -> None:
    stream = Table.open(location).stream()
    list(stream)
    Table.open(location).delete("id = 0")
    with pytest.raises(ChangedRowsError, match=r"(?s)Version 5 .*\(DELETE\).*skipChangeCommits") as caught:
        stream.next()
    assert caught.value.error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    skipping = Table.open(location).stream(stream.offset, skip_change_commits=True)
    assert [batch.num_files for batch in skipping] == [0]


def test_an_offset_of_another_table_is_refused(location: str, tmp_path: Path) -> None:
    offset = Table.open(location).stream()
    list(offset)
    other = Table.write(str(tmp_path / "other"), {"id": [1]})
    with pytest.raises(InvalidOffsetError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        other.stream(offset.offset)


def test_a_stream_does_not_go_on_in_a_table_that_replaced_its_own(location: str) -> None:
    table = Table.open(location)
    stream = table.stream(skip_change_commits=True)
    list(stream)
    Table.create(location, table.schema, if_exists="replace").append({"id": [1000]})
    with pytest.raises(InvalidOffsetError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        stream.next()
    with pytest.raises(InvalidOffsetError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        Table.open(location).stream(stream.offset, skip_change_commits=True)


def test_an_old_version_cannot_be_streamed(location: str) -> None:
    with pytest.raises(InvalidOperationError, match="starting_version=3"):
        Table.open(location, version=2).stream()


@pytest.mark.parametrize(
    "given",
    [
        {"starting_version": -1},
        {"starting_version": "newest"},
        {"starting_version": 1, "starting_timestamp": "2024-01-01"},
        {"max_files": 0},
        {"max_bytes": 0},
    ],
)
def test_bad_options_are_refused(location: str, given: dict[str, int | str]) -> None:
    with pytest.raises(InvalidOptionError):
        Table.open(location).stream(**given)
