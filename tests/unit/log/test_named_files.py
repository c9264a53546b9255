"""Versions that are found by the names of their files, without a listing of the whole log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.last_checkpoint import read_last_checkpoint
from pyspark_delta.log.named_files import NEAR, later_commits
from pyspark_delta.log.segment import LogSegment, later_segment, load_segment, published_segment
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol

V2 = protocol(3, 7, ["v2Checkpoint"])


def a_log(path: Path, versions: int, first: Any = None, **properties: str) -> TableBuilder:
    """Versions from 0 on, with a checksum file each, that add one file each."""
    table = TableBuilder(path)
    table.commit(0, [first or protocol(), metadata(configuration=properties), add("0")])
    for version in range(1, versions):
        table.commit(version, [add(str(version))])
    for version in range(versions):
        table.checksum(version, {})
    return table


def counted(table: TableBuilder) -> CountingStore:
    return CountingStore(store_for(table.location))


def without_older(segment: LogSegment) -> tuple[Any, ...]:
    return segment.end_version, segment.checkpoint, segment.commits, segment.checksum


# ------------------------------------------------------------------------------------------------ later commits
def test_later_versions_are_found_without_a_listing(tmp_path: Path) -> None:
    table = a_log(tmp_path, 5)
    store = counted(table)
    known = load_segment(store, table.location)
    assert later_segment(store, known) is known
    for version in (5, 6, 7):
        table.commit(version, [add(str(version))])
    table.checksum(7, {})
    store.counts.reset()
    found = later_segment(store, known)
    assert store.counts.calls["list"] == 0
    assert found is not None
    assert without_older(found) == without_older(load_segment(store, table.location))


@pytest.mark.parametrize("hole", [1, 2, 3, 7, 40])
def test_c017_a_hole_shows_whatever_its_width(tmp_path: Path, hole: int) -> None:
    table = a_log(tmp_path, 5)
    snapshot = Snapshot.load(table.location)
    for version in range(5 + hole, 5 + 2 * hole):
        table.commit(version, [add(str(version))])
    assert later_commits(store_for(table.location), table.location, 4) is None
    with pytest.raises(CorruptLogError, match="version 5 is missing"):
        snapshot.update()


def test_many_later_versions_are_listed(tmp_path: Path) -> None:
    table = a_log(tmp_path, 2)
    store = counted(table)
    known = load_segment(store, table.location)
    for version in range(2, 2 + NEAR):
        table.commit(version, [])
    store.counts.reset()
    found = later_segment(store, known)
    assert found is not None
    assert found.end_version == 1 + NEAR
    assert store.counts.calls["list"] == 1


def test_up_to_a_version_that_is_known_nothing_behind_it_is_looked_at(tmp_path: Path) -> None:
    table = a_log(tmp_path, 5)
    store = counted(table)
    assert sorted(later_commits(store, table.location, 1, 3) or ()) == [1, 2, 3]
    assert sorted(later_commits(store, table.location, 1, 3, known={2}) or ()) == [1, 3]
    assert [path[-6:-5] for _, path in store.counts.log] == ["1", "2", "3", "1", "3"]
    assert later_commits(store, table.location, 3, 5) is None
    assert later_commits(store, table.location, 7) is None


def test_a_long_tail_gives_way_to_the_checkpoint_of_the_hint_by_one_listing(tmp_path: Path) -> None:
    table = a_log(tmp_path, 150)
    store = counted(table)
    segment = load_segment(store, table.location)
    Snapshot.load(table.location).checkpoint()
    listings = []
    for version in range(150, 260):
        table.commit(version, [add(str(version))])
        store.counts.reset()
        later = later_segment(store, segment)
        assert later is not None
        segment = later
        if store.counts.calls["list"]:
            listings.append(version)
    assert listings == [202]  # of a segment that had more than 200 commits
    assert (segment.checkpoint_version, len(segment.commits)) == (149, 110)


# ------------------------------------------------------------------------------------------------- one version
@pytest.mark.parametrize("kind", ["classic", "multi-part", "v2 json", "v2 parquet"])
def test_a_version_near_the_hint_is_opened_without_a_listing(tmp_path: Path, kind: str) -> None:
    v2 = kind.startswith("v2")
    table = a_log(tmp_path, 9, V2 if v2 else None, **({"delta.checkpointPolicy": "v2"} if v2 else {}))
    if kind == "multi-part":
        table.multi_part_checkpoint(6, [protocol(), metadata(), *(add(str(v)) for v in range(7))], 3)
        table.hint({"version": 6, "size": 9, "parts": 3})
    else:
        snapshot = Snapshot.load(table.location, version=6)
        snapshot.checkpoint("json" if kind == "v2 json" else "parquet" if v2 else None)
    hint = read_last_checkpoint(store_for(table.location), table.location)
    assert hint is not None
    assert (hint.top_level is not None) == v2
    for version in (6, 7, 8):
        store = counted(table)
        segment = published_segment(store, table.location, version)
        assert store.counts.calls["list"] == 0
        assert segment.checkpoint_version == 6
        assert without_older(segment) == without_older(load_segment(store, table.location, version))


def test_a_hint_that_names_no_checkpoint_is_passed_over(tmp_path: Path) -> None:
    table = a_log(tmp_path, 9)
    Snapshot.load(table.location, version=3).checkpoint()
    for hint in (
        {"version": 5, "size": 1},
        {"version": 5, "size": 1, "parts": 2},
        {"version": 5, "size": 1, "v2Checkpoint": {"path": f"{5:020}.checkpoint.{'1' * 8}.json"}},
        {"version": 20, "size": 1},
    ):
        table.hint(hint)
        segment = published_segment(store_for(table.location), table.location, 8)
        assert (segment.checkpoint_version, segment.end_version) == (3, 8)


def test_an_empty_checkpoint_or_a_missing_commit_is_passed_over(tmp_path: Path) -> None:
    table = a_log(tmp_path, 9)
    Snapshot.load(table.location, version=3).checkpoint()
    (table.log / f"{5:020}.checkpoint.parquet").touch()
    table.hint({"version": 5, "size": 1})
    assert published_segment(store_for(table.location), table.location, 8).checkpoint_version == 3
    (table.log / f"{7:020}.json").unlink()
    with pytest.raises(CorruptLogError, match="version 7 is missing"):
        published_segment(store_for(table.location), table.location, 8)
