"""Updating snapshots, and the snapshots that a process remembers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyspark_delta.errors import CorruptLogError, TableNotFoundError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import ENTRIES_VARIABLE, clear_cache, latest_snapshot, remember
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol, remove


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path / "table")
    builder.commit(0, [protocol(), metadata(), add("0")])
    builder.commit(1, [add("1")])
    return builder


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    clear_cache()
    yield
    clear_cache()


def paths(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.files(("path",))["path"].to_pylist())


def test_an_update_gives_a_new_snapshot_and_leaves_the_old_one(table: TableBuilder) -> None:
    old = Snapshot.load(table.location)
    assert paths(old) == ["0", "1"]
    table.commit(2, [remove("0"), add("2"), metadata({"x": "string"}), {"txn": {"appId": "a", "version": 1}}])
    new = old.update()
    assert (old.version, new.version) == (1, 2)
    assert paths(old) == ["0", "1"]
    assert paths(new) == ["1", "2"]
    assert (old.schema.names, new.schema.names) == (("id",), ("x",))
    assert (list(old.transactions()), list(new.transactions())) == ([], ["a"])


def test_an_update_over_a_new_checkpoint_and_cleaned_up_commits(table: TableBuilder) -> None:
    old = Snapshot.load(table.location)
    table.commit(2, [add("2")])
    table.classic_checkpoint(2, [protocol(), metadata(), add("0"), add("1"), add("2")])
    for version in (0, 1):
        (table.log / f"{version:020d}.json").unlink()
    table.commit(3, [add("3")])
    assert paths(old.update()) == ["0", "1", "2", "3"]


def test_an_update_finds_a_table_that_was_made_anew(table: TableBuilder) -> None:
    old = Snapshot.load(table.location)
    shutil.rmtree(table.directory)
    again = TableBuilder(table.directory)
    again.commit(0, [protocol(), metadata({"y": "long"}), add("new")], time_ms=1_600_000_000_000)
    again.commit(1, [add("newer")], time_ms=1_600_000_000_001)
    updated = old.update()
    assert paths(updated) == ["new", "newer"]
    assert updated.schema.names == ("y",)


def test_an_update_of_a_log_with_a_hole_is_an_error(table: TableBuilder) -> None:
    old = Snapshot.load(table.location)
    table.commit(3, [add("3")])
    with pytest.raises(CorruptLogError, match="version 2 is missing"):
        old.update()


def test_a_long_tail_gives_way_to_a_newer_checkpoint(table: TableBuilder) -> None:
    old = Snapshot.load(table.location)
    for version in range(2, 260):
        table.commit(version, [])
    table.classic_checkpoint(250, [protocol(), metadata(), add("0"), add("1")])
    assert old.update().segment.checkpoint_version == 250
    assert paths(old.update()) == ["0", "1"]


def test_the_cache_gives_the_same_snapshot_until_there_is_a_new_version(table: TableBuilder) -> None:
    first = latest_snapshot(table.location)
    assert latest_snapshot(table.location) is first
    table.commit(2, [add("2")])
    assert latest_snapshot(table.location).version == 2
    assert latest_snapshot(table.location, {"key": "other"}) is not latest_snapshot(table.location)


def test_the_cache_is_bounded_and_can_be_cleared_and_switched_off(
    table: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TableBuilder(tmp_path / "other")
    other.commit(0, [protocol(), metadata()])
    monkeypatch.setenv(ENTRIES_VARIABLE, "1")
    first = latest_snapshot(table.location)
    latest_snapshot(other.location)
    assert latest_snapshot(table.location) is not first
    second = latest_snapshot(table.location)
    clear_cache(table.location)
    assert latest_snapshot(table.location) is not second
    monkeypatch.setenv(ENTRIES_VARIABLE, "0")
    assert latest_snapshot(table.location) is not latest_snapshot(table.location)


def test_a_table_that_is_gone_is_forgotten(table: TableBuilder) -> None:
    latest_snapshot(table.location)
    shutil.rmtree(table.directory)
    with pytest.raises(TableNotFoundError):
        latest_snapshot(table.location)


def test_remembering_a_newer_snapshot(table: TableBuilder) -> None:
    first = latest_snapshot(table.location)
    table.commit(2, [add("2")])
    newer = first.update()
    remember(newer)
    assert latest_snapshot(table.location) is newer
    remember(first)
    assert latest_snapshot(table.location) is newer


def test_threads_may_share_a_snapshot(table: TableBuilder) -> None:
    table.classic_checkpoint(1, [protocol(), metadata(), add("0"), add("1")])
    table.commit(2, [add("2")])
    os.environ.pop(ENTRIES_VARIABLE, None)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: paths(latest_snapshot(table.location)), range(64)))
    assert answers == [["0", "1", "2"]] * 64
