"""Updating snapshots, and the snapshots that a process remembers."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyspark_delta.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import ENTRIES_VARIABLE, clear_cache, latest_snapshot, remember
from pyspark_delta.storage import store_for
from pyspark_delta.storage.counting import CountingStore
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


@pytest.mark.parametrize("more", [0, 1])
def test_an_update_finds_that_a_table_was_replaced_whose_last_version_has_a_checkpoint(
    table: TableBuilder, more: int
) -> None:
    """As after a conversion or a clone: the first version is a commit and a checkpoint."""
    table.classic_checkpoint(1, [protocol(), metadata(), add("0"), add("1")])
    old = Snapshot.load(table.location)
    shutil.rmtree(table.directory)
    again = TableBuilder(table.directory)
    again.commit(0, [protocol(), metadata({"y": "long"}), add("new 0")], time_ms=1_600_000_000_000)
    for version in range(1, 2 + more):
        again.commit(version, [add(f"new {version}")], time_ms=1_600_000_000_000 + version)
    updated = old.update()
    assert paths(updated) == [f"new {version}" for version in range(2 + more)]
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


def clean(table: TableBuilder, before: int) -> None:
    """What log cleanup may delete once there is a checkpoint of version `before`."""
    for file in table.log.iterdir():
        if file.name[:20].isdecimal() and int(file.name[:20]) < before:
            file.unlink()
    for sidecar in table.log.glob("_sidecars/00000000-*"):
        sidecar.unlink()


def based(table: TableBuilder, kind: str) -> None:
    """Two commits after a checkpoint of version 1."""
    state = [protocol(), metadata(), add("0"), add("1"), remove("gone", deletionTimestamp=1)]
    if kind == "classic":
        table.classic_checkpoint(1, state)
    elif kind == "parts":
        table.multi_part_checkpoint(1, state, 3)
    else:
        table.v2_checkpoint(0, state, form=kind, sidecars=2)
        next(table.log.glob("*0.checkpoint.*")).rename(
            table.log / f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
        )
    table.commit(2, [add("2"), {"txn": {"appId": "a", "version": 7}}])


@pytest.mark.parametrize("warm", ["not yet", "opened", "all"])
@pytest.mark.parametrize("kind", ["classic", "parts", "json", "parquet"])
def test_a_remembered_snapshot_outlives_its_checkpoint(table: TableBuilder, kind: str, warm: str) -> None:
    based(table, kind)
    table.commit(3, [add("3")])
    old = latest_snapshot(table.location)
    assert old.segment.checkpoint_version == 1
    if warm != "not yet":
        old.tombstones()
    if warm == "all":
        paths(old)
        paths(old)
    state = [protocol(), metadata(), {"txn": {"appId": "a", "version": 7}}, *(add(str(i)) for i in range(3))]
    table.classic_checkpoint(2, state)
    clean(table, 2)
    assert paths(latest_snapshot(table.location)) == ["0", "1", "2", "3"]
    assert paths(old) == ["0", "1", "2", "3"]
    assert old.files(("path", "stats")).num_rows == 4
    assert len(old.record_count.unknown) == 4
    assert old.tombstones().num_rows == 0  # which the new checkpoint has forgotten
    assert old.transactions()["a"].version == 7
    table.commit(4, [remove("0")])
    newest = latest_snapshot(table.location)
    assert newest.version == 4
    assert paths(newest) == ["1", "2", "3"]
    assert newest.checkpoint().totals.num_files == 3


def test_an_update_of_a_snapshot_whose_checkpoint_and_commits_are_gone(table: TableBuilder) -> None:
    based(table, "classic")
    old = latest_snapshot(table.location)
    table.commit(3, [add("3")])
    table.classic_checkpoint(3, [protocol(), metadata(), *(add(str(i)) for i in range(4))])
    table.commit(4, [add("4")])
    clean(table, 3)
    with pytest.raises(VersionNotFoundError, match=r"2.*3"):
        old.files(("path", "tags"))
    assert paths(latest_snapshot(table.location)) == ["0", "1", "2", "3", "4"]


def test_a_commit_that_is_gone_is_replaced_by_a_newer_checkpoint(table: TableBuilder) -> None:
    segment = load_segment(store_for(table.location), table.location)
    table.classic_checkpoint(1, [protocol(), metadata(), add("0"), add("1")])
    for version in (0, 1):
        (table.log / f"{version:020d}.json").unlink()
    assert paths(Snapshot.from_replay(LogReplay(store_for(table.location), segment), {})) == ["0", "1"]


@pytest.mark.parametrize("lost", ["sidecar", "part", "commit"])
def test_a_file_that_is_really_missing_is_named_after_one_more_listing(table: TableBuilder, lost: str) -> None:
    based(table, "json" if lost == "sidecar" else "parts")
    for version in (0, 1):
        (table.log / f"{version:020d}.json").unlink()
    table.commit(3, [add("3")])
    store = CountingStore(store_for(table.location))
    replay = LogReplay(store, load_segment(store, table.location))
    pattern = {"sidecar": "_sidecars/*", "part": "*1.checkpoint.0000000003.*", "commit": "*02.json"}[lost]
    gone = next(table.log.glob(pattern))
    gone.unlink()
    for _ in range(2):
        store.counts.reset()
        with pytest.raises(CorruptLogError, match=re.escape(str(gone))) as raised:
            Snapshot.from_replay(replay, {}).files()
        assert raised.value.path == str(gone)
        assert (raised.value.error_class == "DELTA_MISSING_PART_FILES") == (lost != "commit")
        assert store.counts.calls["list"] <= 2


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
