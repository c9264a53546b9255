"""VACUUM without Spark: only files that no retained version needs are deleted, whatever their names (C016, C282)."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from tests.managed import Warehouse

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.deletion_vectors import deletion_vector_path
from pyspark_delta.errors import (
    InvalidOperationError,
    InvalidOptionError,
    MaintenanceNotAllowedError,
    StorageError,
    StoreThrottledError,
    UnsupportedFeatureError,
)
from pyspark_delta.maintenance.vacuum import RunOptions, VacuumPlan, VacuumRequest, deletion, plan_vacuum
from pyspark_delta.progress import Progress
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, crash

DAY = 86_400_000
VECTORS = {"delta.enableDeletionVectors": "true"}


def make(path: Path, rows: int = 10, **properties: str) -> Table:
    table = Table.create(path, "id BIGINT, p STRING", properties=properties)
    table.append({"id": list(range(rows)), "p": ["a"] * rows})
    return table


def ids(path: Path, version: int | None = None) -> list[int]:
    found: list[int] = sorted(Table.open(path, version=version).scan(columns=["id"]).to_arrow()["id"].to_pylist())
    return found


def files(path: Path) -> set[str]:
    """Return the files below a table, without its log."""
    return {
        str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts
    }


def plan(table: Table, days: float = 8, **request: Any) -> VacuumPlan:
    """Return the plan of a vacuum some days from now."""
    return plan_vacuum(table.refresh().snapshot, VacuumRequest(**request), now=int(time.time() * 1000 + days * DAY))


def planned(table: Table, days: float = 8, **request: Any) -> set[str]:
    return set(plan(table, days, **request).files["path"].to_pylist())


def age(path: Path, days: float = 30) -> None:
    """Make every file below a path some days older."""
    then = time.time() - days * 86_400
    for file in path.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


# ----------------------------------------------------------------------------------------------------- which files
def test_c016_c159_removed_files_stay_as_long_as_the_retention(tmp_path: Path) -> None:
    table = make(tmp_path)
    (removed,) = files(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    for mode in ("full", "lite"):
        assert planned(table, 6.9, mode=mode) == set()
        assert planned(table, 7.1, mode=mode) == {removed}
    table.alter().set_properties({"delta.deletedFileRetentionDuration": "interval 10 days"})
    assert planned(table, 9.9) == set()
    assert planned(table, 10.1) == {removed}
    assert planned(table, 10.1, retention_hours=24 * 12) == set()


def test_a_shorter_retention_must_be_asked_for(tmp_path: Path) -> None:
    table = make(tmp_path)
    (removed,) = files(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    with pytest.raises(InvalidOperationError, match="shorter than that of the table, 'interval 1 week'") as caught:
        table.vacuum(24)
    assert caught.value.error_class == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    assert planned(table, 1.1, retention_hours=24, enforce_retention_duration=False) == {removed}
    result = table.vacuum(0, enforce_retention_duration=False)
    assert (result.num_deleted_files, result.oldest_readable_version) == (1, 2)
    assert ids(tmp_path) == [1]
    for wrong in (-1, float("nan"), True, "7"):
        with pytest.raises(InvalidOptionError, match="retention_hours"):
            table.vacuum(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="auto, full, lite"):
        table.vacuum(mode="slow")  # type: ignore[call-overload]


def test_files_stay_longer_than_their_tombstones(tmp_path: Path) -> None:
    """A checkpoint drops tombstones after the retention of the table; a longer argument still protects their files."""
    table = make(tmp_path, **{"delta.deletedFileRetentionDuration": "interval 0 days"})
    (removed,) = files(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    table.append({"id": [2], "p": ["b"]})
    table.checkpoint()
    clear_cache(str(tmp_path))
    table = Table.open(tmp_path)
    assert table.snapshot.tombstones().num_rows == 0
    assert planned(table, 1) == {removed}
    assert planned(table, 1, retention_hours=48) == set()


def test_c282_vectors_of_live_files_and_tombstones_stay(tmp_path: Path) -> None:
    """deltalake 1.6.6 deletes live vector files in a full vacuum; the table cannot be read afterwards."""
    table = Table.create(tmp_path, "id BIGINT", properties=VECTORS)
    table.append({"id": list(range(20_000))})
    table.delete("id % 3 = 1")
    (first,) = tmp_path.glob("deletion_vector_*.bin")
    table.delete("id % 3 = 2")
    live = {file.name for file in tmp_path.glob("deletion_vector_*.bin")} - {first.name}
    age(tmp_path)
    assert planned(table, 1) == set()
    for mode in ("full", "lite"):
        assert planned(table, mode=mode) == {first.name}
    assert plan(table).by_kind()["deletion vectors"][0] == 1
    assert {first.name} == planned(table, keep_versions=[3]) - live
    assert planned(table, keep_versions=[2]) == set()


HIDDEN = [
    (".part-0.parquet.crc", True),
    ("_SUCCESS", True),
    ("_delta_index/x", False),
    ("_delta_index_2/x", False),
    ("_change_data/x.parquet", False),
    ("_other/x.parquet", True),
    (".hidden/x.parquet", True),
    ("a/_b/x.parquet", True),
    ("a/.b", True),
    ("_p=1/x.parquet", False),
    ("_p=1/_q=2/x.parquet", True),
    ("a/b/c.txt", False),
    ("x y%20z:=~ü.parquet", False),
    ("metadata/v1.json", False),
    ("_delta_log/00000000000000000000.x.json", True),
    ("_delta_log/_staged_commits/x.json", True),
]


@pytest.mark.parametrize(("name", "is_hidden"), HIDDEN)
def test_c016_hidden_names_are_never_deleted(tmp_path: Path, name: str, is_hidden: bool) -> None:
    table = Table.create(tmp_path / "t", "id INT, _p STRING", partition_by=["_p"])
    file = tmp_path / "t" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x")
    inventory = pa.table({"path": [f"file:{file}"], "length": [1], "isDir": [False], "modificationTime": [0]})
    expected = set() if is_hidden else {name}
    assert planned(table, mode="full") == expected
    assert planned(table, inventory=inventory) == expected


def test_directories_of_iceberg_metadata_are_hidden_where_iceberg_is_written(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.universalFormat.enabledFormats": "hudi"})
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.json").write_bytes(b"x")
    assert planned(table) == {"metadata/v1.json"}


def test_names_are_compared_decoded(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, p STRING", partition_by=["p"])
    table.append({"id": list(range(6)), "p": ["a b", "a%20b", "x/y", "ü", "=:", "~"]})
    live = files(tmp_path)
    assert len(live) == 6
    assert planned(table, 1000) == set()
    table.delete("p = 'a b'")
    (gone,) = planned(table)
    assert gone in live
    assert gone.startswith("p=a b/")


def test_absolute_paths_into_the_table_are_known_by_every_spelling(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    (name,) = files(tmp_path / "t")
    (tmp_path / "link").symlink_to(tmp_path / "t")
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    for absolute in (f"file://{tmp_path}/t/{name}", f"{tmp_path}/link/{name}"):
        log.write_text(log.read_text().replace(f'"path":"{name}"', f'"path":"{absolute}"'))
        assert planned(Table.open(tmp_path / "t"), 100) == set()
        log.write_text(log.read_text().replace(absolute, name))
    assert planned(table, 100) == set()


def test_links_to_directories_stay(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id BIGINT, p STRING", partition_by=["p"]).append({"id": [1, 2], "p": ["a", "b"]})
    elsewhere = tmp_path / "elsewhere"
    (path / "p=a").rename(elsewhere)
    (path / "p=a").symlink_to(elsewhere)
    os.utime(path / "p=a", (0, 0), follow_symlinks=False)
    os.utime(elsewhere, (0, 0))
    assert planned(Table.open(path), 1000) == set()
    Table.open(path).vacuum(0, enforce_retention_duration=False)
    assert ids(path) == [1, 2]


def test_files_of_running_writers_stay_an_hour(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.deletedFileRetentionDuration": "interval 0 hours"})
    (tmp_path / "new.parquet").write_bytes(b"x")
    table.overwrite({"id": [1], "p": ["b"]})
    removed = planned(table, 0.01)
    assert len(removed) == 1
    assert "new.parquet" not in removed
    assert planned(table, 0.05) == removed | {"new.parquet"}


@pytest.mark.findings("F09")
def test_clones_protect_their_files(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    (name,) = files(tmp_path / "t")
    clone = Table.create(tmp_path / "clone", "id BIGINT, p STRING")
    log = tmp_path / "clone" / "_delta_log" / f"{1:020}.json"
    action = json.loads((tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text().splitlines()[-1])
    action["add"]["path"] = f"file://{tmp_path}/t/{name}"
    log.write_text(json.dumps(action) + "\n")
    assert ids(tmp_path / "clone") == list(range(10))
    table.overwrite({"id": [1], "p": ["b"]})
    assert planned(table) == {name}
    assert planned(table, protect=[str(tmp_path / "clone")]) == set()
    assert planned(clone) == set()


@pytest.mark.findings("P12")  # the table gets a protocol without the features of its versions
def test_c344_tables_that_cannot_be_written_are_not_vacuumed(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["ofTheFuture"]}
    (tmp_path / "_delta_log" / f"{3:020}.json").write_text(json.dumps({"protocol": features}) + "\n")
    with pytest.raises(UnsupportedFeatureError, match="ofTheFuture"):
        Table.open(tmp_path).vacuum(plan=True)


def test_c478_a_catalog_must_allow_the_vacuum(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    warehouse.append(1, 2)
    warehouse.open().delete("id = 1")
    with pytest.raises(MaintenanceNotAllowedError, match="vacuum"):
        warehouse.open().vacuum()
    warehouse.open().restore(1)
    assert warehouse.ids() == [1, 2]
    managed: Any = managed_table(warehouse.snapshot().catalog_table)
    managed.catalog.allow_maintenance(managed.info.name, [Maintenance.VACUUM])
    assert warehouse.open().vacuum().num_deleted_files == 0


# ------------------------------------------------------------------------------------------------------- deleting
def deleted(table: Table, **request: Any) -> VacuumPlan:
    made = plan(table, **request)
    made.execute()
    return made


def test_deletion_leaves_what_versions_need_and_says_so_in_the_log(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path, "id INT, p STRING", partition_by=["p"], properties={"delta.enableChangeDataFeed": "true"}
    )
    table.append({"id": [1, 2, 3], "p": ["a", "b", "b"]})
    table.delete("p = 'a'")
    table.update({"id": "9"}, where="id = 2")
    before = files(tmp_path)
    made = plan(table)
    assert {kind: number for kind, (number, _) in made.by_kind().items()} == {"data": 2, "change data": 1}
    assert made.size_in_bytes == sum((tmp_path / name).stat().st_size for name in made.files["path"].to_pylist())
    result = made.execute()
    assert (result.num_deleted_files, result.size_of_deleted_files) == (3, made.size_in_bytes)
    assert files(tmp_path) == before - set(made.files["path"].to_pylist())
    assert not (tmp_path / "p=a").exists()
    assert not (tmp_path / "_change_data").exists()
    assert result.num_vacuumed_directories == 3
    assert ids(tmp_path) == [3, 9]
    assert sorted(PeerTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == [3, 9]
    end, start = table.refresh().history(2)
    week = timedelta(days=7) // timedelta(milliseconds=1)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {"retentionCheckEnabled": True, "defaultRetentionMillis": week}
    assert start["operationMetrics"] == {"numFilesToDelete": "3", "sizeOfDataToDelete": str(made.size_in_bytes)}
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "3", "numVacuumedDirectories": "3"}
    assert plan(table).files.num_rows == 0


def test_lite_follows_full_and_lite(tmp_path: Path) -> None:
    table = make(tmp_path)
    bookmark = tmp_path / "_delta_log" / "_last_vacuum_info"
    for number in range(3):
        table.overwrite({"id": [number], "p": ["b"]})
        expected = planned(table, mode="full")
        assert len(expected) == 1
        mode = ("full", "lite", "lite")[number]
        assert planned(table, mode=mode) == expected
        deleted(table, mode=mode)
        assert json.loads(bookmark.read_bytes())["latestCommitVersionOutsideOfRetentionWindow"] >= number + 2
        assert planned(table, mode="lite") == set()
    assert plan(table).mode == "lite"
    assert plan(table, 40).mode == "full"  # once in a while, for files of failed writers


def test_a_bookmark_of_another_engine_is_used_and_kept(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    bookmark = tmp_path / "_delta_log" / "_last_vacuum_info"
    bookmark.write_text('{"latestCommitVersionOutsideOfRetentionWindow":2,"theirs":"x"}')
    assert planned(table, mode="lite") == set()
    table.overwrite({"id": [2], "p": ["b"]})
    deleted(table, mode="lite")
    assert json.loads(bookmark.read_bytes())["theirs"] == "x"
    for broken in ("{}", "", "[1]", "x"):
        bookmark.write_text(broken)
        assert len(planned(table, mode="lite")) == 2


def test_lite_is_refused_without_the_beginning_of_the_log(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    table.checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    table = Table.open(tmp_path)
    with pytest.raises(InvalidOperationError, match="does not reach back") as caught:
        plan(table, mode="lite")
    assert caught.value.error_class == "DELTA_CANNOT_VACUUM_LITE"
    assert plan(table).mode == "full"


def test_a_restore_during_the_vacuum_keeps_its_files(tmp_path: Path) -> None:
    table = make(tmp_path)
    (name,) = files(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    made = plan(table)
    Table.open(tmp_path).restore(1)
    result = made.execute()
    assert (result.num_deleted_files, result.kept) == (0, 1)
    assert name in files(tmp_path)
    assert ids(tmp_path) == list(range(10))


def test_a_clock_that_is_off_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    before, made, now = files(tmp_path), plan(table), time.time
    monkeypatch.setattr(time, "time", lambda: now() + 600)
    with pytest.raises(InvalidOperationError, match=r"clocks .* differ"):
        made.execute()
    assert files(tmp_path) == before
    assert table.refresh().history(1)[0]["operationParameters"] == {"status": "FAILED"}


def test_files_that_cannot_be_deleted_are_named_after_the_others(tmp_path: Path) -> None:
    table = make(tmp_path)
    for number in range(3):
        table.overwrite({"id": [number], "p": ["b"]})
    names = sorted(plan(table).files["path"].to_pylist())

    def deny(path: str) -> BaseException:
        return StorageError(f"No permission to delete '{path}'.", path=path)

    class Denying(FaultyStore):
        def _due(self, kind: str, path: str) -> bool:
            return kind == "delete" and path.endswith(names[1])

    clear_cache(str(tmp_path))
    with (
        intercepted(lambda store: Denying(store, Fault(kind="delete", raises=deny))),
        pytest.raises(StorageError, match=f"1 files .* 2 were.*{names[1]}"),
    ):
        plan(Table.open(tmp_path)).execute()
    assert files(tmp_path) & set(names) == {names[1]}
    clear_cache(str(tmp_path))
    table = Table.open(tmp_path)
    assert table.history(1)[0]["operationParameters"] == {"status": "FAILED"}
    assert plan(table).execute().num_deleted_files == 1


def test_a_restore_between_batches_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is looked at before every group of batches, and a cancelled run is FAILED in the log."""
    monkeypatch.setattr(deletion, "_BATCH", 1)
    monkeypatch.setattr(deletion, "_GROUP", 1)
    table = make(tmp_path)
    for number in range(4):
        table.append({"id": [number], "p": ["b"]})
    table.delete()
    made, seen = plan(table), []
    order = made.files["path"].to_pylist()
    size = made.files["size"][3].as_py()

    def restore(shown: Progress) -> None:
        seen.append((shown.phase, shown.done, shown.total))
        if shown.done == 2:
            commit = tmp_path / "_delta_log" / f"{Table.open(tmp_path).version + 1:020}.json"
            add = {"path": order[3], "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
            commit.write_text(json.dumps({"add": add}))
        if shown.done == 4:
            raise KeyError("stop")

    with pytest.raises(KeyError):
        made.execute(progress=restore)
    assert seen == [(deletion.DELETE_FILES, done, 5) for done in range(1, 5)]
    assert files(tmp_path) == {order[3], order[4]}
    last = table.refresh().history(1)[0]
    assert (last["operationParameters"], last["operationMetrics"]["numDeletedFiles"]) == ({"status": "FAILED"}, "3")


def test_progress_is_shown(tmp_path: Path) -> None:
    table = make(tmp_path)
    seen: list[Progress] = []
    table.vacuum(mode="full", progress=seen.append)
    assert {(shown.phase, shown.unit) for shown in seen} == {("List files", "files")}
    assert (seen[-1].done, seen[-1].total) == (1, None)


def test_a_throttled_store_is_asked_more_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    for number in range(10):
        table.overwrite({"id": [number], "p": ["b"]})
    pauses: list[float] = []
    most = 100
    monkeypatch.setattr(deletion, "_BATCH", 3)
    monkeypatch.setattr(deletion, "_pause", pauses.append)

    class Throttling(FaultyStore):
        def _due(self, kind: str, path: str) -> bool:
            return kind == "delete" and len(pauses) < most

    def throttled(path: str) -> BaseException:
        return StoreThrottledError(f"Cannot delete '{path}': SlowDown", path=path)

    before = files(tmp_path)
    with intercepted(lambda store: Throttling(store, Fault(kind="delete", raises=throttled))):
        clear_cache(str(tmp_path))
        made = plan(Table.open(tmp_path))
        with pytest.raises(StorageError, match=r"10 files .* 0 were.*SlowDown"):
            made.execute()
        assert files(tmp_path) == before
        assert pauses == [2.0**n for n in range(6)]
        pauses.clear()
        most = 2
        assert made.execute().num_deleted_files == 10
    assert pauses == [1.0, 2.0]
    assert ids(tmp_path) == [9]


def test_a_vacuum_without_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with delta-spark's setting vacuum.logging.enabled; the clock is compared all the same."""
    table = make(tmp_path)
    table.overwrite({"id": [1], "p": ["b"]})
    version, made, now = table.version, plan(table, run=RunOptions(is_logged=False)), time.time
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: now() + 600)
        with pytest.raises(InvalidOperationError, match=r"clocks .* differ"):
            made.execute()
    result = made.execute()
    assert (result.num_deleted_files, result.version, table.refresh().version) == (1, version, version)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["write_if_absent", "write", "delete"])
def test_a_vacuum_that_is_killed_loses_nothing(tmp_path: Path, kind: str, when: Literal["before", "after"]) -> None:
    nth, struck = 0, True
    while struck:
        nth += 1
        path = tmp_path / str(nth)
        table = make(path, **VECTORS)
        table.delete("id = 3")
        table.overwrite({"id": [1], "p": ["b"]})
        clear_cache(str(path))
        fault = FaultyStore(LocalStore(), Fault(kind=kind, nth=nth, when=when, raises=crash))
        with intercepted(lambda store, fault=fault: fault):
            try:
                plan(Table.open(path)).execute()
                struck = False
            except SimulatedCrash:
                pass
        clear_cache(str(path))
        assert ids(path) == [1]
        assert plan(Table.open(path)).execute().oldest_readable_version >= 3
        assert len(files(path)) == 1
    assert nth > {"write_if_absent": 2, "write": 1, "delete": 1}[kind]


# --------------------------------------------------------------------------------------------------------- costs
def test_only_loose_files_are_asked_for_their_age(tmp_path: Path) -> None:
    table = make(tmp_path)
    for number in range(20):
        table.append({"id": [number], "p": ["b"]})
    table.delete("p = 'a'")
    counts = Counts()
    clear_cache(str(tmp_path))
    with intercepted(lambda store: CountingStore(store, counts)):
        opened = Table.open(tmp_path)
        counts.reset()
        assert len(planned(opened, mode="full")) == 1
        asked = [path for kind, path in counts.log if kind == "status" and "_delta_log" not in path]
        assert len(asked) == 1
        counts.reset()
        assert len(planned(opened, mode="lite")) == 1
    assert [path for kind, path in counts.log if kind == "list" and "_delta_log" not in path] == []


# --------------------------------------------------------------------------------------------------------- model
ODD = ["a", "b", "a b", "a%20b", "ü:~", "x/y=z", "#?", None]
OPERATIONS: list[Callable[[Table, random.Random], object]] = [
    lambda table, rng: table.append({"id": [rng.randrange(100) for _ in ODD], "p": ODD}),
    lambda table, rng: table.delete(f"id % 7 = {rng.randrange(7)}"),
    lambda table, rng: table.update({"id": "id + 1"}, where=f"id % 5 = {rng.randrange(5)}"),
    lambda table, rng: table.overwrite({"id": [rng.randrange(100)], "p": ["b"]}, partitions="dynamic"),
    lambda table, rng: table.restore(rng.randrange(table.version)) if table.version else None,
]


def spread_over_days(path: Path, start: float) -> None:
    """Make each commit of a table, and the files that it names, as old as if one commit was made a day."""
    for commit in sorted((path / "_delta_log").glob("*.json")):
        at = start + int(commit.stem) * 86_400
        text = re.sub(r'"deletionTimestamp":\d+', f'"deletionTimestamp":{int(at * 1000)}', commit.read_text())
        commit.write_text(text)
        os.utime(commit, (at, at))
        for file in path.rglob("*"):
            if file.is_file() and file.name in text and '"add":{"path":"' in text:
                os.utime(file, (at, at))
    for file in path.rglob("*"):
        if file.suffix in (".crc", ".bin") or "_change_data" in file.parts:
            os.utime(file, (start, start))


def clone_of(path: Path, version: int, target: Path) -> None:
    """Write a shallow clone of a version: its files by absolute paths, in one of several spellings."""
    snapshot = Table.open(path, version=version).snapshot
    made = Table.create(target, "id BIGINT, p STRING", partition_by=["p"], properties=VECTORS)
    adds = []
    for number, file in enumerate(snapshot.files(("path", "size", "partition_values", "deletion_vector")).to_pylist()):
        absolute = f"{path}/{file['path']}"
        vector = file["deletion_vector"]
        if vector is not None:
            found = deletion_vector_path(str(path), DeletionVectorDescriptor(**vector))
            kept = {"storageType": "p" if found else "i", "pathOrInlineDv": found or vector["path_or_inline_dv"]}
            sizes = {"sizeInBytes": vector["size_in_bytes"], "cardinality": vector["cardinality"]}
            vector = kept | sizes | ({"offset": vector["offset"]} if found else {})
        adds.append(
            {
                "path": f"file://{absolute}" if number % 2 else absolute,
                "partitionValues": dict(file["partition_values"]),
                "size": file["size"],
                "modificationTime": 1,
                "dataChange": True,
                **({"deletionVector": vector} if vector else {}),
            }
        )
    log = target / "_delta_log" / f"{made.version + 1:020}.json"
    log.write_text("".join(json.dumps({"add": add}) + "\n" for add in adds))


@pytest.mark.parametrize("seed", range(8))
def test_versions_within_the_retention_stay_readable(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    properties = {"delta.enableDeletionVectors": str(seed % 2 == 0).lower(), "delta.enableChangeDataFeed": "true"}
    table = Table.create(tmp_path, "id BIGINT, p STRING", partition_by=["p"], properties=properties)
    expected = {0: ids(tmp_path)}
    while table.version < 12:
        rng.choice(OPERATIONS)(table, rng)
        expected[table.refresh().version] = ids(tmp_path)
    cloned = rng.randrange(table.version)
    clone_of(tmp_path, cloned, tmp_path.with_name(f"{tmp_path.name}-clone"))
    start = time.time() - 100 * 86_400
    spread_over_days(tmp_path, start)
    clear_cache(str(tmp_path))
    kept, oldest = rng.randrange(table.version), rng.randrange(table.version)
    now = int((start + (oldest + 7.5) * 86_400) * 1000)  # a week after half a day after that version was replaced
    clone = tmp_path.with_name(f"{tmp_path.name}-clone")
    request = VacuumRequest(mode=rng.choice(["full", "lite"]), keep_versions=[kept], protect=[str(clone)])
    made = plan_vacuum(Table.open(tmp_path).snapshot, request, now=now)
    assert made.oldest_readable_version == oldest
    made.execute()
    for version in {kept, *range(oldest, table.version + 1)}:
        assert ids(tmp_path, version) == expected[version], version
    assert ids(clone) == expected[cloned]
    table.refresh()
    later = plan_vacuum(table.snapshot, VacuumRequest(mode="full"), now=now + 1000 * DAY)
    later.execute()
    live = {"/".join(("", path)) for path in files(tmp_path)}
    assert len(live) <= 2 * table.snapshot.num_files()
    assert ids(tmp_path) == expected[table.version - 2]
