"""How the work of opening and planning grows: by counts of calls, bytes, row groups and parsed texts, not by time."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.synthetic_log import SyntheticLog, write_log

from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import later_segment, load_segment
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol

SMALL, LARGE = 5_000, 100_000


def made(path: Path, files: int, **options: object) -> str:
    """A synthetic log with small commits."""
    log = SyntheticLog(files, commits=3, adds=20, removes=10, row_group_rows=5_000, **options)  # type: ignore[arg-type]
    write_log(path, log)
    return str(path)


def opened(location: str) -> tuple[Snapshot, Counts]:
    """A snapshot whose every access to the store is counted."""
    counts = Counts()
    store = CountingStore(store_for(location), counts)
    replay = LogReplay(store, load_segment(store, location))
    return Snapshot(replay, TableConfiguration(*replay.protocol_and_metadata()), {}), counts


@pytest.mark.parametrize("kind", ["classic", "multi-part", "v2"])
def test_opening_does_not_grow_with_the_files(tmp_path: Path, kind: str) -> None:
    counted = []
    for files in (SMALL, LARGE):
        _, counts = opened(made(tmp_path / str(files), files, kind=kind))
        counted.append(counts)
    small, large = counted
    assert large.calls == small.calls
    assert large.files == small.files
    footer = 150_000  # of a file with more row groups
    assert large.total_bytes <= small.total_bytes + footer * (10 if kind == "multi-part" else 1)


def test_a_checkpoint_is_opened_once_for_protocol_and_metadata(tmp_path: Path) -> None:
    _, counts = opened(made(tmp_path, SMALL))
    assert counts.calls["open_input"] == 1


def test_opening_looks_at_as_many_row_groups_whatever_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values_in, looked_at = ParquetPart.values_in, []

    def counted(part: ParquetPart, row_group: int, leaf: str) -> int | None:
        looked_at.append((row_group, leaf))
        return values_in(part, row_group, leaf)

    monkeypatch.setattr(ParquetPart, "values_in", counted)
    opened(made(tmp_path / "short", 4 * SMALL))
    assert sorted(set(looked_at)) == [(0, "metaData.id"), (0, "protocol.minReaderVersion")]
    looked_at.clear()
    read = []
    monkeypatch.setattr(ParquetPart, "open", lambda part: read.append(part.path))
    opened(made(tmp_path / "long", LARGE))
    assert looked_at == read == []  # of its footer, only the beginning


def test_opening_with_a_checksum_reads_neither_commits_nor_checkpoints(tmp_path: Path) -> None:
    _, counts = opened(made(tmp_path, LARGE, checksum=True))
    assert [path.rsplit("/")[-1] for kind, path in counts.log if kind in ("read", "open_input")] == [
        "_last_checkpoint",
        f"{13:020d}.crc",
    ]


def test_a_clustered_predicate_decodes_the_row_groups_that_matter(tmp_path: Path) -> None:
    decoded = []
    for files in (20_000, LARGE):
        snapshot, _ = opened(made(tmp_path / str(files), files, struct_stats=True))
        assert plan_scan(snapshot, where="id = 4321000").files.num_rows == 1
        decoded.append(snapshot._replay.counters.row_groups)
        assert snapshot._replay.counters.stats_texts == 0
    assert decoded == [1, 1]


def test_a_partition_predicate_decodes_the_row_groups_that_matter(tmp_path: Path) -> None:
    snapshot, _ = opened(made(tmp_path, LARGE, struct_stats=True))
    assert plan_scan(snapshot, where="p_date = DATE'2024-01-02'").files.num_rows > 0
    assert snapshot._replay.counters.row_groups <= LARGE / 5_000 / 4


def test_texts_of_statistics_are_parsed_for_survivors_of_the_partition_filter_only(tmp_path: Path) -> None:
    snapshot, _ = opened(made(tmp_path, 20_000))
    plan_scan(snapshot, where="p_date = DATE'2024-01-02' AND id = 30000")
    assert 0 < snapshot._replay.counters.stats_texts <= 100


def test_an_update_reads_only_new_commits(tmp_path: Path) -> None:
    for files in (SMALL, LARGE):
        location = made(tmp_path / str(files), files)
        counts = Counts()
        store = CountingStore(store_for(location), counts)
        replay = LogReplay(store, load_segment(store, location, 11))
        earlier = Snapshot(replay, TableConfiguration(*replay.protocol_and_metadata()), {})
        earlier.files()
        counts.reset()
        later = earlier.update()
        assert later.version == 13
        assert counts.calls["list"] == 0
        assert [path.rsplit("/")[-1] for kind, path in counts.log if kind != "status"] == [
            f"{13:020d}.json",
            f"{12:020d}.json",
        ]
        counts.reset()
        assert later.update() is later
        assert (counts.calls["list"], counts.calls["read"]) == (0, 0)


def test_loaded_columns_serve_later_versions_without_reading_the_checkpoint_again(tmp_path: Path) -> None:
    location = made(tmp_path, SMALL)
    snapshot, counts = opened(location)
    for _ in range(2):
        plan_scan(snapshot, where="id = 4321000")
    counts.reset()
    assert plan_scan(snapshot, where="id = 4321000").files.num_rows == 1
    assert counts.calls["open_input"] == 0
    assert snapshot._replay.counters.row_groups == 1  # of the first request


def test_the_listing_begins_at_the_checkpoint(tmp_path: Path) -> None:
    location = made(tmp_path, SMALL)
    for version in range(10):
        (tmp_path / "_delta_log" / f"{version:020d}.json").write_text("")
    _, counts = opened(location)
    assert counts.files <= 5
    segment = load_segment(store_for(location), location)
    assert later_segment(store_for(location), segment) is segment


def counted_load(location: str, **wanted: int) -> tuple[Snapshot, Counts]:
    """A version that was opened by its number or time, with every access to the store counted."""
    counts = Counts()
    with intercepted(lambda inner: CountingStore(inner, counts)):
        return Snapshot.load(location, **wanted), counts


def test_a_version_without_a_checkpoint_lists_each_file_once(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata()])
    for version in range(1, 1200):
        table.commit(version, [add(str(version))])
    table.compaction(50, 150, [add(str(version)) for version in range(50, 151)])  # over the border of two listings
    snapshot, counts = counted_load(table.location, version=1100)
    assert (snapshot.version, len(snapshot.segment.commits), len(snapshot.segment.compactions)) == (1100, 1101, 1)
    assert counts.files <= 1100 + 5
    assert snapshot.num_files() == 1100


def test_a_time_is_found_with_one_listing_and_no_commit_is_read_twice(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata()], time_ms=1000)
    for version in range(1, 60):
        table.commit(version, [add(str(version))], time_ms=1000 + version)
    snapshot, counts = counted_load(table.location, timestamp_ms=1020)
    assert (snapshot.version, snapshot.num_files()) == (20, 20)
    assert (counts.calls["list"], counts.calls["read"]) == (1, 60)


def test_the_columns_of_an_earlier_version_by_time_are_its_own(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata(id="first")], time_ms=1000)
    table.commit(1, [add("1")], time_ms=2000)
    table.classic_checkpoint(1, [protocol(), metadata(id="first"), add("1")])
    table.commit(2, [metadata(id="second"), add("2")], time_ms=3000)
    found = [Snapshot.load(table.location, timestamp_ms=time) for time in (1500, 2500, 3000)]
    assert [(s.version, s.metadata.id, s.num_files()) for s in found] == [
        (0, "first", 0),
        (1, "first", 1),
        (2, "second", 2),
    ]
