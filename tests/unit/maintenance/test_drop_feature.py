"""DROP FEATURE without Spark: traces, protocol and rows afterwards, both ways, refusals, races and interruptions."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as PeerTable
from tests.faults.crash_points import Operation, content, copy_of, crash_points, prepared
from tests.lengths import FULL
from tests.managed import Warehouse

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import DeltaError, InvalidOperationError, MaintenanceNotAllowedError
from pyspark_delta.features import supported_features
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore, intercepted, store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import FaultyStore, SimulatedCrash
from pyspark_delta.transaction.transaction import Transaction

BASE = {"appendOnly", "invariants"}
PROTECTED = {*BASE, "checkpointProtection"}
PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"
V2 = {"delta.checkpointPolicy": "v2"}
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
WIDENING = {"delta.enableTypeWidening": "true"}
ROWS = [{"id": number, "p": "ab"[number % 2]} for number in range(10)]


def make(path: Path | str, **properties: str) -> Table:
    """A table of ten rows in four files."""
    table = Table.create(path, "id BIGINT, p STRING", partition_by=["p"], properties=properties)
    table.append(ROWS[:6])
    table.append(ROWS[6:])
    return table


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(Table.open(table.location).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def features(table: Table) -> set[str]:
    return set(supported_features(Table.open(table.location).snapshot.configuration))


def set_domain(table: Table) -> None:
    with Transaction.on(table.snapshot) as transaction:
        transaction.set_domain("com.example.mark", "1")
    table.refresh()


@pytest.mark.parametrize(
    ("feature", "properties", "left"),
    [
        ("v2Checkpoint", V2, PROTECTED),
        ("deletionVectors", VECTORS, PROTECTED),
        ("columnMapping", MAPPED, PROTECTED),
        ("columnMapping", {"delta.columnMapping.mode": "id"}, PROTECTED),
        ("typeWidening", WIDENING, PROTECTED),
        ("vacuumProtocolCheck", {"delta.feature.vacuumProtocolCheck": "supported"}, PROTECTED),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}, BASE),
        ("rowTracking", {"delta.enableRowTracking": "true"}, {*BASE, "domainMetadata"}),
        ("domainMetadata", {"delta.feature.domainMetadata": "supported"}, BASE),
        ("materializePartitionColumns", {"delta.enableMaterializePartitionColumnsFeature": "true"}, BASE),
        ("checkConstraints", {"delta.feature.checkConstraints": "supported"}, BASE),
    ],
)
def test_a_dropped_feature_leaves_rows_and_the_lowest_protocol(
    tmp_path: Path, feature: str, properties: dict[str, str], left: set[str]
) -> None:
    table = make(tmp_path, **properties)
    if feature == "domainMetadata":
        set_domain(table)
    plan = table.drop_feature(feature, plan=True)
    assert table.refresh().version == plan.snapshot.version
    result = plan.execute()
    table.refresh()
    assert (features(table), table.version) == (left, result.version)
    assert result.protocol == table.protocol == plan.protocol
    versions = (table.protocol.min_reader_version, table.protocol.min_writer_version)
    assert versions == ((1, 2) if left == BASE else (1, 7))
    assert rows(table) == ROWS
    peer = PeerTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert sorted(peer, key=lambda row: row["id"]) == ROWS
    assert table.snapshot.checksum_differences() == ()
    assert table.history(1)[0]["operationParameters"] == {"featureName": feature, "truncateHistory": False}
    with pytest.raises(InvalidOperationError, match="nothing to drop") as raised:
        table.drop_feature(feature)
    assert raised.value.error_class == "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"


# ------------------------------------------------------------------------------------------ features in data files
def row_ids(table: Table) -> list[dict[str, Any]]:
    plan = plan_scan(Snapshot.load(table.location), row_ids=True)
    return sorted(read_plan(plan).read_all().to_pylist(), key=lambda row: row["_row_id"])


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping", "typeWidening"])
def test_rewritten_files_have_the_same_rows_with_the_same_ids(tmp_path: Path, feature: str) -> None:
    table = Table.create(
        tmp_path / "t",
        "id BIGINT, s STRUCT<x: SMALLINT, l: ARRAY<SMALLINT>>, p TIMESTAMP, gone INT",
        partition_by=["p"],
        properties={**VECTORS, **MAPPED, **WIDENING, "delta.enableRowTracking": "true"},
    )
    day = datetime(2026, 1, 1, tzinfo=UTC)
    table.append([{"id": n, "s": {"x": n, "l": [n]}, "p": day + timedelta(days=n % 2), "gone": n} for n in range(10)])
    table.alter().drop_columns("gone").rename_column("s.x", "y").rename_column("p", "id_").rename_column("id", "p")
    table.alter().change_type("s.y", "INT").change_type("s.l.element", "BIGINT")
    table.append([{"p": 100, "s": {"y": 2**20, "l": [2**40]}, "id_": None}])
    table.delete("p in (1, 2)")
    table.update({"p": "p + 1000"}, "p = 4")
    before = row_ids(table)
    assert len(before) == 9
    table.drop_feature(feature)
    assert row_ids(table) == before
    assert table.snapshot.checksum_differences() == ()
    footers = table.inspect("row_groups").to_arrow().to_pylist()
    if feature == "deletionVectors":
        assert table.inspect("files").to_arrow()["deletion_vector"].null_count == table.snapshot.num_files()
        assert sum(row["num_rows"] for row in footers) == 9
    elif feature == "typeWidening":
        assert {c["type"] for row in footers for c in row["columns"] if "list" in c["path"]} == {"INT64"}
        assert "typeChanges" not in table.metadata.schema_string
    else:
        names = {c["path"].partition(".")[0] for row in footers for c in row["columns"] if c["path"][0] != "_"}
        assert names == {"p", "s"}
        assert "columnMapping" not in f"{table.metadata.schema_string}{table.metadata.configuration}"
        table.alter().add_column("gone", "INT")
        assert table.scan(where="gone is not null").to_arrow().num_rows == 0
    table.append([{"p": 7, "s": {"y": 1, "l": []}, "id_": day}])
    assert table.count() == 10


def test_clustering_columns_follow_their_names(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, s STRUCT<x: INT>", cluster_by=["s.x", "id"], properties=MAPPED)
    table.append([{"id": n, "s": {"x": n}} for n in range(3)])
    table.alter().rename_column("id", "k")
    table.drop_feature("columnMapping")
    assert table.snapshot.clustering_columns() == ["s.x", "k"]
    assert '[["s","x"],["k"]]' in table.snapshot.domains()["delta.clustering"].configuration
    assert table.scan(where="k = 1").files().num_rows == 1
    assert table.stats()["minValues"].to_pylist() == [{"k": 0, "s": {"x": 0}}] or table.count() == 3


def test_names_that_need_column_mapping_are_refused(tmp_path: Path) -> None:
    table = Table.create(tmp_path, {"a b": "INT", "c": "INT"}, properties=MAPPED)
    with pytest.raises(InvalidOperationError, match="'a b' need column mapping") as raised:
        table.drop_feature("columnMapping")
    assert raised.value.error_class == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"


def test_vectors_of_earlier_versions_survive_the_vacuum_of_a_client_without_vectors(tmp_path: Path) -> None:
    table = make(tmp_path, **VECTORS)
    table.delete("id = 1")
    table.delete("id = 7")
    before = table.version
    vectors = {file.name for file in tmp_path.glob("deletion_vector_*.bin")}
    assert len(vectors) == 2
    table.drop_feature("deletionVectors")
    tombstones = table.snapshot.tombstones(("path", "deletion_vector", "size"))
    named = {row["path"]: row for row in tombstones.to_pylist()}
    assert vectors <= named.keys()
    assert all(named[path]["size"] is None for path in vectors)
    assert table.snapshot.checksum_differences() == ()
    old = time.time() - 3600
    for path in vectors:
        os.utime(tmp_path / path, (old, old))
    peer = PeerTable(str(tmp_path))
    doomed = peer.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True, full=True)
    assert vectors <= set(doomed)  # without the tombstones' protection they would go, as they do here after their time
    assert vectors.isdisjoint(peer.vacuum(dry_run=True, full=True))
    assert Table.open(tmp_path, version=before).count() == 8


def test_what_dropped_features_leave_in_the_log(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"})
    set_domain(table)
    table.alter().set_properties({"delta.enableInCommitTimestamps": "false"}).set_properties(
        {"delta.enableInCommitTimestamps": "true"}
    )
    assert "delta.inCommitTimestampEnablementVersion" in table.metadata.configuration
    table.drop_feature("inCommitTimestamp")
    assert (
        table.metadata.configuration.keys()
        & {
            "delta.inCommitTimestampEnablementVersion",
            "delta.inCommitTimestampEnablementTimestamp",
        }
        == set()
    )
    files = table.snapshot.files(("path", "base_row_id", "default_row_commit_version", "stats"))
    assert files["base_row_id"].null_count == 0
    table.drop_feature("rowTracking")
    after = table.snapshot.files(("path", "base_row_id", "default_row_commit_version", "stats"))
    assert (after["base_row_id"].null_count, after["default_row_commit_version"].null_count) == (4, 4)
    assert sorted(after.select(["path", "stats"]).to_pylist(), key=str) == sorted(
        files.select(["path", "stats"]).to_pylist(), key=str
    )
    assert not any("owTracking" in name for name in table.metadata.configuration)
    assert set(table.snapshot.domains()) == {"com.example.mark"}
    with_rows = table.version
    table.drop_feature("domainMetadata")
    assert table.snapshot.domains() == {}
    assert Table.open(tmp_path, version=with_rows).count() == 10
    table.append([{"id": 10, "p": "a"}])
    assert table.count() == 11


def test_history_is_protected_by_checkpoints_without_traces(tmp_path: Path) -> None:
    table = make(tmp_path, **V2)
    table.checkpoint()
    before = table.version
    result = table.drop_feature("v2Checkpoint")
    log = tmp_path / "_delta_log"
    barriers = [f"{version:020d}.checkpoint.parquet" for version in range(before + 2, before + 6)]
    assert sorted(file.name for file in log.glob("*.checkpoint.parquet")) == barriers
    operations = [row["operation"] for row in reversed(table.history())][before + 1 :]
    assert operations == ["SET TBLPROPERTIES", *["Empty Commit"] * 3, "DROP FEATURE"]
    assert table.metadata.configuration[PROTECTION] == str(result.version)
    assert Table.open(tmp_path, version=before).count() == 10


def test_c229_only_a_drop_lowers_a_protocol_and_protected_history_goes_at_once(tmp_path: Path) -> None:
    """No other change drops a feature, and clients that misread the versions before the drop find no part of them."""
    table = make(tmp_path, **V2)
    version = table.drop_feature("v2Checkpoint").version
    with pytest.raises(DeltaError):
        table.alter().set_properties({"delta.feature.checkpointProtection": "unsupported"})
    table.restore(1)
    assert {"v2Checkpoint", "checkpointProtection"} <= features(table)
    assert table.metadata.configuration[PROTECTION] == str(version)
    age(tmp_path, timedelta(days=60))
    (tmp_path / "_delta_log" / f"{version:020d}.checkpoint.parquet").unlink()
    assert table.clean_log() == 0  # up to a barrier, only a part of the versions with traces would go
    table.append([{"id": 10, "p": "a"}])
    table.checkpoint()
    age(tmp_path, timedelta(days=60))
    assert table.clean_log() > 0
    assert min(int(file.name[:20]) for file in (tmp_path / "_delta_log").glob("*.json")) >= version


def age(path: Path, by: timedelta) -> None:
    """Make the log older; its versions stay in order."""
    now = time.time() - by.total_seconds()
    for file in (path / "_delta_log").iterdir():
        if file.name[:20].isdecimal():
            os.utime(file, (now + int(file.name[:20]), now + int(file.name[:20])))


@pytest.mark.parametrize(("feature", "properties"), [("v2Checkpoint", V2), ("deletionVectors", VECTORS)])
def test_truncated_history_takes_two_runs(tmp_path: Path, feature: str, properties: dict[str, str]) -> None:
    table = make(tmp_path, **properties)
    table.delete("id = 9")
    table.checkpoint()
    if feature == "deletionVectors":  # without its property, only files show the feature
        table.alter().unset_properties("delta.enableDeletionVectors")
    for error_class in ("DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD", "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"):
        with pytest.raises(InvalidOperationError, match="They may be deleted from") as raised:
            table.drop_feature(feature, truncate_history=True)
        assert raised.value.error_class == error_class
        wait = raised.value.facts["finish_after"] - datetime.now(UTC)
        assert timedelta(hours=23, minutes=59) < wait <= timedelta(hours=24, minutes=1)
        assert rows(table) == ROWS[:-1]
    clean = table.version
    assert table.history(1)[0]["operation"] == "Empty Commit"
    plan = table.drop_feature(feature, truncate_history=True, plan=True)
    assert plan.finish_after == raised.value.facts["finish_after"]
    assert "wait until" in str(plan)
    age(tmp_path, timedelta(hours=25))
    assert table.drop_feature(feature, truncate_history=True, plan=True).finish_after is None
    table.drop_feature(feature, truncate_history=True)
    assert (features(table), PROTECTION in table.metadata.configuration) == (BASE, False)
    assert min(int(file.name[:20]) for file in (tmp_path / "_delta_log").glob("*.json")) == clean
    assert rows(table) == ROWS[:-1]


def test_protection_is_dropped_with_the_protected_history(tmp_path: Path) -> None:
    table = make(tmp_path, **V2)
    version = table.drop_feature("v2Checkpoint").version
    with pytest.raises(InvalidOperationError, match="only") as raised:
        table.drop_feature("checkpointProtection")
    assert raised.value.error_class.startswith("DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION")
    with pytest.raises(InvalidOperationError, match="still in the history") as raised:
        table.drop_feature("checkpointProtection", truncate_history=True)
    assert raised.value.error_class == "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    table.append([{"id": 10, "p": "a"}])
    age(tmp_path, timedelta(hours=25))
    table.drop_feature("checkpointProtection", truncate_history=True)
    assert (features(table), PROTECTION in table.metadata.configuration) == (BASE, False)
    assert min(int(file.name[:20]) for file in (tmp_path / "_delta_log").glob("*.json")) == version
    assert table.count() == 11


@pytest.mark.parametrize(
    ("feature", "truncate", "error_class"),
    [
        ("appendOnly", False, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("clustering", False, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("timestampNtz", False, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("icebergCompatV2", False, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("catalogManaged", False, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("redirectReaderWriter-preview", False, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("coordinatedCommits-preview", False, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("unheardOf", False, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("delta.appendOnly", False, "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"),
        ("typeWidening", False, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("domainMetadata", False, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
        ("rowTracking", True, "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"),
        ("checkConstraints", False, "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"),
    ],
)
def test_what_cannot_be_dropped_is_refused_before_anything_is_written(
    tmp_path: Path, feature: str, truncate: bool, error_class: str
) -> None:
    table = make(tmp_path, **{"delta.enableRowTracking": "true"})
    table.alter().add_constraint("positive", "id >= 0")
    before = table.version
    with pytest.raises(InvalidOperationError) as raised:
        table.drop_feature(feature, truncate_history=truncate)
    assert raised.value.error_class == error_class
    assert table.refresh().version == before


class Racing(CountingStore):
    """Another writer commits first, `times` times, whenever a feature is about to be dropped."""

    before = b'"operation":"DROP FEATURE"'

    def __init__(self, inner: ObjectStore, location: str, change: Callable[[Table], object], times: int) -> None:
        super().__init__(inner)
        self._location, self._change, self.times = location, change, times

    def write_if_absent(self, path: str, data: bytes) -> None:
        if self.before in data and self.times:
            self.times -= 1
            self._change(Table.open(self._location))
        super().write_if_absent(path, data)


def race(table: Table, change: Callable[[Table], object], times: int) -> Racing:
    store = Racing(store_for(table.location), table.location, change, times)
    with intercepted(lambda _: store):
        table.drop_feature("v2Checkpoint")
    return store


def test_a_concurrent_write_is_no_conflict(tmp_path: Path) -> None:
    table = make(tmp_path, **V2)
    store = race(table, lambda other: other.append([{"id": 10, "p": "a"}]), 2)
    assert (store.times, table.count(), features(table)) == (0, 12, PROTECTED)
    assert table.metadata.configuration[PROTECTION] == str(table.version)


def test_traces_that_come_back_are_removed_again_or_end_the_run(tmp_path: Path) -> None:
    def enable(other: Table) -> None:
        other.alter().set_properties(V2)

    table = make(tmp_path / "1", **V2)
    assert (race(table, enable, 2).times, features(table)) == (0, PROTECTED)
    table = make(tmp_path / "2", **V2)
    with pytest.raises(InvalidOperationError, match="concurrent writers") as raised:
        race(table, enable, 3)
    assert raised.value.error_class == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    assert "v2Checkpoint" in features(table)


def test_a_write_while_files_are_rewritten_is_not_lost(tmp_path: Path) -> None:
    table = make(tmp_path, **MAPPED)
    store = Racing(store_for(table.location), table.location, lambda other: other.append([{"id": 10, "p": "a"}]), 1)
    store.before = b"REMOVE COLUMN MAPPING"
    with intercepted(lambda _: store):
        table.drop_feature("columnMapping")
    assert (store.times, table.count(), features(table)) == (0, 11, PROTECTED)
    assert len(list(tmp_path.rglob("*.parquet"))) - 4 == 5 + 2  # checkpoints; the files of the first attempt are gone


INTERRUPTED = {
    "deletionVectors": VECTORS,
    "columnMapping": MAPPED,
    "v2Checkpoint": V2,
    "rowTracking": {"delta.enableRowTracking": "true"},
}


def drop(location: str, feature: str) -> None:
    table = Table.open(location)
    if feature in features(table):
        table.drop_feature(feature)


@pytest.mark.filterwarnings("ignore::pyspark_delta.errors.DeltaWarning")  # what follows a commit may fail
@pytest.mark.parametrize("feature", INTERRUPTED)
def test_a_run_that_fails_at_any_storage_call_is_continued(feature: str) -> None:
    tried = Operation(
        feature,
        lambda location: make(location, **INTERRUPTED[feature]).delete("id = 9"),
        lambda location: drop(location, feature),
        lambda runs: ROWS[:-1],
    )
    ready, seen = prepared(tried), set()
    points = list(crash_points(tried, ("write", "write_if_absent", "open_output")))
    if not FULL:
        points = [point for point in points if point.crashes == (point.when == "before")]
    for point in points[::3]:
        location = copy_of(ready)
        store = FaultyStore(store_for(location), point.fault)
        with intercepted(lambda _: store), contextlib.suppress(DeltaError, SimulatedCrash):  # noqa: B023
            drop(location, feature)
        assert store.struck
        seen.add(Table.open(location).version)
        assert content(location) == ROWS[:-1]
        drop(location, feature)
        assert content(location) == ROWS[:-1]
        assert feature not in features(Table.open(location))
        assert Snapshot.load(location).checksum_differences() == ()
    assert len(seen) > 2


def test_c478_a_catalog_has_to_allow_the_rewriting(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(properties=VECTORS)
    table = warehouse.open()
    table.append({"id": list(range(10))})
    table.delete("id = 3")
    before = table.version
    with pytest.raises(MaintenanceNotAllowedError):
        table.drop_feature("deletionVectors")
    assert warehouse.open().version == before
    managed: Any = managed_table(table.snapshot.catalog_table)
    managed.catalog.allow_maintenance(managed.info.name, [Maintenance.OPTIMIZE])
    result = warehouse.open().drop_feature("deletionVectors")
    after = warehouse.open()
    assert after.version == result.version
    assert "deletionVectors" not in supported_features(after.snapshot.configuration)
    assert sorted(after.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert after.check().errors == ()
