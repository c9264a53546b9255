"""Cleaning up the log, and log compactions that are written (CLN, CMP)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.errors import CorruptLogError, DeltaError, InvalidOptionError, VersionNotFoundError
from pyspark_delta.log.cleanup import CleanedLog, clean_log
from pyspark_delta.log.compaction import write_compaction
from pyspark_delta.log.segment import earliest_version, load_segment
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, crash
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol, remove

DAY = 86_400_000
NOW = int(datetime(2024, 6, 30, 15, 0, tzinfo=UTC).timestamp() * 1000)
MIDNIGHT = int(datetime(2024, 6, 30, tzinfo=UTC).timestamp() * 1000)
TEN_DAYS = {"delta.logRetentionDuration": "interval 10 days"}
SIDECARS = protocol(3, 7, ["v2Checkpoint"])


def a_log(path: Path, *, first: Any = None, properties: Any = None, days: int = 20) -> TableBuilder:
    """Versions 0 to 19, version v committed at the midnight 20 - v days before."""
    table = TableBuilder(path)
    for version in range(days):
        actions = [first or protocol(), metadata(configuration=properties or TEN_DAYS)] if version == 0 else []
        table.commit(version, [*actions, add(str(version))], time_ms=MIDNIGHT - (days - version) * DAY)
        table.checksum(version, {})
    return table


def checkpoint(table: TableBuilder, *versions: int) -> None:
    for version in versions:
        Snapshot.load(table.location, version=version).checkpoint()


def clean(table: TableBuilder, now: int = NOW) -> CleanedLog:
    configuration = Snapshot.load(table.location).configuration
    return clean_log(store_for(table.location), table.location, configuration, now_ms=now)


def versions(table: TableBuilder, suffix: str) -> list[int]:
    """The versions that have a file with this ending."""
    return sorted(int(p.name[:20]) for p in table.log.iterdir() if p.name[20:] == suffix)


# ----------------------------------------------------------------------------------------------------------- CLN
def test_c364_the_cutoff_is_a_midnight_and_a_commit_at_it_counts(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    checkpoint(table, 9, 10, 11)
    assert clean(table).first_version == 10  # ten days before this midnight
    assert versions(table, ".json") == list(range(10, 20))
    assert clean(table) == CleanedLog(10)


def test_c365_c366_c367_c370_everything_before_the_checkpoint_goes_and_it_stays(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    checkpoint(table, 3, 7, 12)
    expected = {v: Snapshot.load(table.location, version=v).num_files() for v in range(7, 20)}
    cleaned = clean(table)
    assert cleaned == CleanedLog(7, 7 + 7 + 1)
    assert versions(table, ".json") == list(range(7, 20))
    assert versions(table, ".crc") == list(range(7, 20))
    assert versions(table, ".checkpoint.parquet") == [7, 12]
    store = store_for(table.location)
    assert earliest_version(store, table.location) == 7
    for version, number in expected.items():
        assert Snapshot.load(table.location, version=version).num_files() == number
    with pytest.raises(VersionNotFoundError):
        Snapshot.load(table.location, version=6)


def test_c365_without_a_checkpoint_nothing_goes(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    checkpoint(table, 15)
    assert clean(table) == CleanedLog()
    assert versions(table, ".json") == list(range(20))


def test_c104_c366_compactions_that_begin_before_the_checkpoint_go(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    store = store_for(table.location)
    for start, end in ((2, 4), (8, 12), (9, 11), (10, 13)):
        write_compaction(store, table.location, start, end)
    checkpoint(table, 9)
    clean(table)
    assert [p.name[:41] for p in sorted(table.log.glob("*.compacted.json"))] == [f"{10:020d}.{13:020d}"]


def test_c364_times_that_run_backwards(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    checkpoint(table, 8)
    late = MIDNIGHT - 2 * DAY
    os.utime(table.log / f"{5:020d}.json", ns=(late * 1_000_000,) * 2)
    assert clean(table) == CleanedLog()  # versions after it are taken as later
    assert versions(table, ".json") == list(range(20))


@pytest.mark.parametrize(("name", "value"), [("checkpoint_protection", "9"), ("catalog", "")])
def test_c370_protected_logs_are_left_alone(tmp_path: Path, name: str, value: str) -> None:
    feature = {"checkpoint_protection": "checkpointProtection", "catalog": "vacuumProtocolCheck"}[name]
    properties = {**TEN_DAYS, "delta.requireCheckpointProtectionBeforeVersion": value} if value else TEN_DAYS
    table = a_log(tmp_path, first=protocol(3, 7, [], [feature]), properties=properties)
    checkpoint(table, 8)
    assert (clean(table).log_files == 0) == (name == "checkpoint_protection")
    if value:  # all that is protected goes at once, or nothing of it
        checkpoint(table, 9, 10)
        assert clean(table).first_version == 10


def test_c371_an_incomplete_checkpoint_cannot_stand_for_what_was_before(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    actions = [protocol(), metadata(configuration=TEN_DAYS), *(add(str(v)) for v in range(10))]
    table.multi_part_checkpoint(4, actions[:7], 2)
    table.multi_part_checkpoint(9, actions, 2)[0].unlink()
    checkpoint(table, 6)
    assert clean(table).first_version == 6
    assert not list(table.log.glob(f"{4:020d}.checkpoint.*"))


def test_an_unreadable_checkpoint_cannot_stand_for_what_was_before(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    checkpoint(table, 9)
    configuration = Snapshot.load(table.location).configuration
    (table.log / f"{9:020d}.checkpoint.parquet").write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(CorruptLogError, match="not readable"):
        clean_log(store_for(table.location), table.location, configuration, now_ms=NOW)
    assert versions(table, ".json") == list(range(20))


def test_c368_c369_sidecars_that_no_checkpoint_names_go_after_a_day(tmp_path: Path) -> None:
    table = a_log(tmp_path, first=SIDECARS, properties={**TEN_DAYS, "delta.checkpointPolicy": "v2"})
    checkpoint(table, 4, 9, 15)
    folder = table.log / "_sidecars"
    (folder / "young.parquet").write_bytes(b"being written")
    (folder / "orphan.parquet").write_bytes(b"left behind")
    for path in folder.iterdir():
        age = MIDNIGHT - DAY - (path.name != "young.parquet")
        os.utime(path, ns=(age * 1_000_000,) * 2)
    kept = {s.path for v in (9, 15) for s in _sidecars(table, v)}
    cleaned = clean(table)
    assert cleaned.sidecars == 2  # that of version 4, and the orphan
    assert {str(p) for p in folder.iterdir()} == {*kept, str(folder / "young.parquet")}
    assert Snapshot.load(table.location, version=9).num_files() == 10


def _sidecars(table: TableBuilder, version: int) -> Any:
    reader = Snapshot.load(table.location, version=version)._replay.checkpoint
    assert reader is not None
    return reader.sidecars


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_c365_a_clean_up_that_ends_anywhere_keeps_every_version_that_is_to_stay(
    tmp_path: Path, policy: str, when: Any
) -> None:
    properties = {**TEN_DAYS, "delta.checkpointPolicy": policy}
    table = a_log(tmp_path / "table", first=SIDECARS, properties=properties, days=13)
    checkpoint(table, 0, 2, 8)
    for path in table.log.rglob("_sidecars/*"):
        os.utime(path, ns=((MIDNIGHT - 5 * DAY) * 1_000_000,) * 2)
    configuration = Snapshot.load(table.location).configuration
    for number in range(1, 100):
        copy = tmp_path / f"{number}"
        shutil.copytree(table.directory, copy)
        faulty = FaultyStore(store_for(str(copy)), Fault(kind="any", nth=number, when=when, raises=crash))
        with contextlib.suppress(SimulatedCrash):
            clean_log(faulty, str(copy), configuration, now_ms=NOW)
        for version in (2, 3, 7, 8, 12):
            assert Snapshot.load(str(copy), version=version).num_files() == version + 1
        if not faulty.struck:
            assert number > 6
            return
    raise AssertionError("it never ends")


def test_tables_clean_their_log(tmp_path: Path) -> None:
    table = a_log(tmp_path)
    checkpoint(table, 9)
    assert Table.open(table.location).clean_log() == 18
    assert Table.open(table.location).snapshot.num_files() == 20


# ----------------------------------------------------------------------------------------------------------- CMP
TXN = "3ae45b72-24e1-865a-a211-34987ae02f2a"


def example(path: Path) -> TableBuilder:
    """The example of the specification: versions 4 to 6."""
    table = TableBuilder(path)
    info = {"commitInfo": {"operation": "WRITE"}}
    table.commit(0, [info, protocol(), metadata(), add("f1")])
    for version in (1, 2, 3):
        table.commit(version, [info])
    table.commit(4, [info, add("f2"), remove("f1")])
    table.commit(5, [info, add("f3"), add("f4"), {"txn": {"appId": TXN, "version": 4389}}])
    table.commit(6, [info, remove("f3"), {"txn": {"appId": TXN, "version": 4390}}])
    return table


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_c096_c099_c100_c101_the_example(tmp_path: Path) -> None:
    table = example(tmp_path)
    Table.open(table.location).compact_log(4, 6)
    found = lines(table.log / f"{4:020d}.{6:020d}.compacted.json")
    expected = [{"txn": {"appId": TXN, "version": 4390}}, add("f2"), remove("f1"), remove("f3"), add("f4")]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_c098_readers_use_it_in_place_of_the_commits(tmp_path: Path) -> None:
    table = example(tmp_path)
    before = Snapshot.load(table.location)
    files, transactions = sorted(before.files()["path"].to_pylist()), before.transactions()
    Table.open(table.location).compact_log(4, 6)
    Table.open(table.location).compact_log(0, 3)
    used = [p.file.path[-61:] for p in load_segment(store_for(table.location), table.location).replay_files()]
    assert all("compacted" in path for path in used)
    after = Snapshot.load(table.location)
    assert (sorted(after.files()["path"].to_pylist()), after.transactions()) == (files, transactions)
    assert after.tombstones().num_rows == 2
    assert [entry["version"] for entry in Table.open(table.location).history()] == list(range(6, -1, -1))


def test_c102_removed_domains_stay(tmp_path: Path) -> None:
    table = example(tmp_path)
    domain = {"domain": "d", "configuration": "{}", "removed": False}
    table.commit(7, [{"domainMetadata": domain}])
    table.commit(8, [{"domainMetadata": {**domain, "removed": True}}])
    table.commit(9, [{"domainMetadata": {**domain, "domain": "e"}}])
    write_compaction(store_for(table.location), table.location, 8, 9)
    found = lines(table.log / f"{8:020d}.{9:020d}.compacted.json")
    assert [a["domainMetadata"]["removed"] for a in found] == [True, False]
    assert set(Snapshot.load(table.location).domains()) == {"e"}


def test_c097_of_two_versions_or_more_that_are_there(tmp_path: Path) -> None:
    table = Table.open(example(tmp_path).location)
    for start, end in ((4, 4), (5, 4), (-1, 3)):
        with pytest.raises(InvalidOptionError, match="at least two versions"):
            table.compact_log(start, end)
    with pytest.raises(VersionNotFoundError):
        table.compact_log(4, 7)
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError):
        table.compact_log(0, 3)
    assert not list(tmp_path.rglob("*.compacted.json"))


def test_a_compaction_is_written_once(tmp_path: Path) -> None:
    table = example(tmp_path)
    for _ in range(2):
        write_compaction(store_for(table.location), table.location, 4, 6)
    fault = Fault(kind="write_if_absent", nth=1, when="before")
    with intercepted(lambda store: FaultyStore(store, fault)), pytest.raises(DeltaError):
        write_compaction(store_for(table.location), table.location, 0, 6)
    assert Snapshot.load(table.location).num_files() == 2
