"""Rows of area CAT: tables that a catalog manages, through a catalog in a database."""

from __future__ import annotations

import json
import sqlite3
import uuid
import warnings
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.hand_made import PLAIN, HandMade, add, field, metadata
from tests.managed import Warehouse

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import (
    CommitKind,
    LogTail,
    Maintenance,
    Proposal,
    RatifiedCommit,
    StagedFile,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.log_tail import published_path, staged_path, tail_files
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameNotFoundError,
    CorruptLogError,
    DeltaError,
    DeltaWarning,
    InvalidOperationError,
    InvalidOptionError,
    MaintenanceNotAllowedError,
    PathAccessError,
    PublishedMismatchError,
    RatificationConflictError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.table import Table
from pyspark_delta.transaction.transaction import Transaction

# The names of the example in the specification.
RATIFIED_AND_PUBLISHED = "016ae953-37a9-438e-8683-9a9a4a79a395"
RATIFIED = "7d17ac10-5cc3-401b-bd1a-9c82dd2ea032"
REJECTED = "b91807ba-fe18-488c-a15e-c4807dbd2174"
NOT_YET_RATIFIED = "0f707846-cd18-4e01-b40e-84ee0ae987b0"
PARTIAL = "7a980438-cb67-4b89-82d2-86f73239b6d6"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A catalog without tables."""
    return Warehouse(tmp_path)


def managed(warehouse: Warehouse) -> ManagedTable:
    """The table `t` as its clients see it."""
    found = managed_table(warehouse.snapshot().catalog_table)
    assert found is not None
    return found


class Example:
    """The table of the specification's example, put together with the real catalog; 0 to 6 are published."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        warehouse.create(properties={"delta.checkpointInterval": "1000"})
        self.table = managed(warehouse)
        self.location, self.catalog = self.table.location, self.table.catalog
        self.store = store_for(self.location)
        self.log = Path(self.location) / "_delta_log"
        for version in range(1, 7):
            self.ratify(version, str(uuid.uuid4()))
            self.table.publish(self.store)
        warehouse.open(version=2).checkpoint()
        warehouse.open(version=6).compact_log(3, 5)
        self.ratify(7, RATIFIED_AND_PUBLISHED)
        # The published file of version 7 says something else, so that it shows which of the two is read.
        self.store.write(published_path(self.location, 7), self.content(7, "published"))
        self.ratify(8, RATIFIED)
        with pytest.raises(RatificationConflictError):
            self.ratify(8, REJECTED)
        self.ratify(9, None)
        self.stage(10, NOT_YET_RATIFIED)
        self.store.write(staged_path(self.location, f"{10:020}.{PARTIAL}.json"), b'{"commitInfo":{"inCommitTimes')

    def time(self, version: int) -> int:
        """The in-commit timestamp of a version, in ms."""
        return self.warehouse.open(version=0).snapshot.timestamp + 1000 * version

    def content(self, version: int, path: str) -> bytes:
        """A commit that adds a file of this name."""
        info = {"inCommitTimestamp": self.time(version), "timestamp": 1, "operation": "WRITE", "txnId": path}
        add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
        return b"".join(json.dumps(a).encode() + b"\n" for a in ({"commitInfo": info}, {"add": add}))

    def stage(self, version: int, identifier: str) -> StagedFile:
        """Write a staged commit that adds a file named after itself."""
        name = f"{version:020}.{identifier}.json"
        self.store.write_if_absent(staged_path(self.location, name), self.content(version, f"{version} {identifier}"))
        status = self.store.status(staged_path(self.location, name))
        return StagedFile(name, status.size, status.modification_time)

    def ratify(self, version: int, identifier: str | None) -> None:
        """Have a commit ratified, inline where it has no identifier."""
        txn_id = f"{version} {identifier or 'inline'}"
        file = None if identifier is None else self.stage(version, identifier)
        content = self.content(version, txn_id) if identifier is None else None
        proposal = Proposal(
            version=version, timestamp=self.time(version), transaction_id=txn_id, file=file, content=content
        )
        self.catalog.ratify(self.table.info, proposal)


@pytest.fixture
def example(warehouse: Warehouse) -> Example:
    """The example of the specification."""
    return Example(warehouse)


def added(snapshot: Any) -> set[str]:
    """The files of a snapshot."""
    return set(snapshot.files(("path",)).column("path").to_pylist())


def test_c445_c453_c457_c466_the_example(example: Example) -> None:
    snapshot = example.warehouse.snapshot()
    assert snapshot.version == 9
    paths = added(snapshot)
    assert {f"7 {RATIFIED_AND_PUBLISHED}", f"8 {RATIFIED}", "9 inline"} <= paths
    assert len(paths) == 9
    assert not any(path == "published" or REJECTED in path or path.startswith("10") for path in paths)
    read = [Path(file.file.path).name for file in snapshot.segment.replay_files()]
    assert snapshot.segment.checkpoint_version == 2
    assert read[:3] == [f"{3:020}.{5:020}.compacted.json", f"{6:020}.json", f"{7:020}.{RATIFIED_AND_PUBLISHED}.json"]
    assert read[3] == f"{8:020}.{RATIFIED}.json"
    assert read[4].startswith(f"{9:020}.")
    assert len(read) == 5


def test_c446_c447_staged_commits_are_never_listed(example: Example) -> None:
    store = CountingStore(store_for(example.location))
    with intercepted(lambda _: store):
        example.warehouse.snapshot()
    listed = [path for kind, path in store.counts.log if kind == "list"]
    assert listed
    assert not any("/_delta_log/_staged_commits" in path for path in listed)


def test_c464_an_updated_snapshot_reads_what_the_catalog_gives(example: Example) -> None:
    snapshot = example.warehouse.snapshot()
    before = snapshot.files(("path",)).num_rows
    with pytest.warns(DeltaWarning, match="could not be published"):  # 7 is not what was ratified
        example.warehouse.append(1)
    newer = snapshot.update()
    assert newer.version == 10
    assert newer.files(("path",)).num_rows == before + 1
    assert "published" not in added(newer)


def test_c463_no_listing_where_the_answer_says_it_all(warehouse: Warehouse) -> None:
    warehouse.create()
    snapshot = warehouse.snapshot()
    warehouse.append(1)
    store = CountingStore(store_for(snapshot.location))
    with intercepted(lambda _: store):
        updated = warehouse.snapshot().update()
        store.counts.reset()
        assert updated.update() is updated
    assert store.counts.calls["list"] == 0


def test_c465_what_the_catalog_does_not_know_is_no_version(warehouse: Warehouse) -> None:
    warehouse.create()
    version = warehouse.append(1)
    location = warehouse.location()
    log = Path(location) / "_delta_log"
    later = (log / f"{version:020}.json").read_text()
    (log / f"{version + 1:020}.json").write_text(later)
    (log / f"{version + 1:020}.crc").write_text("{}")
    (log / f"{version + 1:020}.checkpoint.parquet").write_bytes(b"PAR1")
    (log / "_last_checkpoint").write_text(json.dumps({"version": version + 1, "size": 1}))
    assert warehouse.snapshot().version == version
    assert warehouse.ids() == [1]
    with pytest.raises(VersionNotFoundError):
        warehouse.open(version=version + 1)


def test_c451_c480_c484_the_path_is_refused(warehouse: Warehouse) -> None:
    warehouse.create()
    warehouse.append(1)
    with pytest.raises(PathAccessError, match="connect_catalog"):
        Table.open(warehouse.location())
    published = Table.open(warehouse.location(), published_only=True)
    assert published.scan().to_arrow().column("id").to_pylist() == [1]
    before = sorted(Path(warehouse.location()).rglob("*"))
    with pytest.raises(PathAccessError, match="Cannot write"):
        commit_change(set_properties(published.snapshot.configuration, {"a": "b"}), published.snapshot)
    for change in (published.checkpoint, lambda: published.compact_log(0, 1)):
        with pytest.raises(PathAccessError, match="Cannot write"):
            change()
    assert sorted(Path(warehouse.location()).rglob("*")) == before


def test_c465_a_catalog_that_knows_less_than_it_did(warehouse: Warehouse) -> None:
    warehouse.create()
    copy = Path(warehouse.url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(copy)) as database, closing(sqlite3.connect(copy.with_suffix(".copy"))) as kept:
        database.backup(kept)
    warehouse.append(1)
    snapshot = warehouse.snapshot()
    restored = SqlCatalog.connect(f"sqlite:///{copy.with_suffix('.copy')}", warehouse.root)
    warehouse.through(restored)
    assert (snapshot.version, snapshot.update().version) == (1, 0)
    with pytest.warns(DeltaWarning, match="could not be published"):  # version 1 is there already, and another's
        assert warehouse.append(2) == 1
    assert warehouse.ids() == [2]


def test_c449_c450_the_table_says_that_it_is_managed(warehouse: Warehouse) -> None:
    warehouse.create()
    protocol = warehouse.open().protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert "catalogManaged" in (protocol.reader_features or ())
    assert {"catalogManaged", "inCommitTimestamp"} <= (protocol.writer_features or frozenset())
    snapshot = warehouse.snapshot()
    for properties in ({"delta.enableInCommitTimestamps": "false"}, {"delta.feature.catalogManaged": "x"}):
        with pytest.raises(InvalidOperationError):
            commit_change(set_properties(snapshot.configuration, properties), snapshot)
    assert warehouse.snapshot().version == 0


class Demanding(SqlCatalog):
    """A catalog that requires a property of its tables, and stores short ones only, as Unity Catalog's server does."""

    def load_table(self, name: TableName) -> TableInfo:
        return replace(super().load_table(name), required_properties={"delta.enableDeletionVectors": "true"})

    def create_staging_table(self, name: TableName) -> StagingTable:
        return replace(super().create_staging_table(name), longest_property=255)


@pytest.fixture
def demanding(warehouse: Warehouse) -> Warehouse:
    catalog = warehouse.catalog.catalog
    assert isinstance(catalog, SqlCatalog)
    warehouse.through(Demanding(catalog._database, catalog._settings))
    return warehouse


@pytest.mark.parametrize("value", ["false", "FALSE"])
def test_what_the_catalog_requires_of_a_table_cannot_be_changed(demanding: Warehouse, value: str) -> None:
    demanding.create(properties={"delta.enableDeletionVectors": "true"})
    snapshot = demanding.snapshot()
    change = set_properties(snapshot.configuration, {"delta.enableDeletionVectors": value})
    with pytest.raises(InvalidOperationError, match=r"requires the property delta\.enableDeletionVectors") as caught:
        commit_change(change, snapshot)
    assert caught.value.error_class == "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"
    assert demanding.snapshot().version == 0
    commit_change(set_properties(snapshot.configuration, {"owner": "ada"}), snapshot)
    assert demanding.append(1) == 2


def test_a_property_that_the_catalog_cannot_store_is_refused_before_anything_is_written(demanding: Warehouse) -> None:
    with pytest.raises(InvalidOptionError, match=r"'note' has 256 characters.*at most 255"):
        demanding.create(properties={"note": "x" * 256})
    assert list(Path(demanding.root).rglob("*")) == []
    demanding.create(properties={"note": "x" * 255})


def test_c448_c450_every_commit_carries_its_time_and_its_transaction(warehouse: Warehouse) -> None:
    warehouse.create()
    for number in range(4):
        warehouse.append(number)
    seen, last = set(), 0
    for version in range(5):
        path = Path(warehouse.location()) / "_delta_log" / f"{version:020}.json"
        info = json.loads(path.read_text().splitlines()[0])["commitInfo"]
        assert info["inCommitTimestamp"] > last
        last = info["inCommitTimestamp"]
        seen.add(info["txnId"])
    assert len(seen) == 5


def test_c444_c452_c454_c468_small_commits_are_given_to_the_catalog_and_large_ones_staged(
    warehouse: Warehouse,
) -> None:
    warehouse.create()
    small = warehouse.append(1)
    tail = managed(warehouse).log_tail()
    assert [(c.version, c.kind) for c in tail.commits] == [(small, CommitKind.INLINE)]
    large = commit_change(
        set_properties(warehouse.snapshot().configuration, {"note": "x" * 20_000}), warehouse.snapshot()
    )
    commit = managed(warehouse).log_tail().commits[-1]
    assert (commit.version, commit.kind) == (large.version, CommitKind.STAGED)
    assert warehouse.open().metadata.configuration["note"] == "x" * 20_000
    assert commit.file_name is not None
    staged = Path(staged_path(warehouse.location(), commit.file_name))
    assert staged.read_bytes() == (Path(warehouse.location()) / f"_delta_log/{large.version:020}.json").read_bytes()


def test_c473_c474_commits_are_published_at_once_and_in_order(example: Example) -> None:
    example.store.delete([published_path(example.location, 7)])
    assert example.table.publish(example.store) == 9
    assert example.warehouse.snapshot().version == 9
    assert (example.log / f"{8:020}.json").read_bytes() == example.content(8, f"8 {RATIFIED}")
    assert (example.log / f"{9:020}.json").read_bytes() == example.content(9, "9 inline")
    assert example.table.publish(example.store) == 9


def test_c473_another_published_commit_stops_publishing(example: Example) -> None:
    with pytest.raises(PublishedMismatchError, match="version 7"):
        example.table.publish(example.store)
    assert not (example.log / f"{8:020}.json").exists()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert example.warehouse.append(1) == 10
    assert any(issubclass(w.category, DeltaWarning) and "published" in str(w.message) for w in caught)


def test_c455_c470_a_staged_file_that_went_is_read_where_it_was_published(warehouse: Warehouse) -> None:
    warehouse.create()
    commit_change(set_properties(warehouse.snapshot().configuration, {"note": "x" * 20_000}), warehouse.snapshot())
    kept = warehouse.snapshot()
    for file in (Path(warehouse.location()) / "_delta_log/_staged_commits").iterdir():
        file.unlink()
    assert kept.commit_info() is not None
    assert warehouse.snapshot().properties["note"] == "x" * 20_000


def test_c461_c472_c483_an_answer_that_cannot_be_true_is_refused() -> None:
    def commit(version: int, name: str) -> RatifiedCommit:
        return RatifiedCommit(version=version, kind=CommitKind.STAGED, timestamp=1, file_name=name)

    good = f"{3:020}.{RATIFIED}.json"
    assert tail_files("/t", LogTail(3, (commit(3, good),))).files[0].path.endswith(good)
    for latest, commits in (
        (4, (commit(3, good),)),
        (3, (commit(1, f"{1:020}.{RATIFIED}.json"), commit(3, good))),
        (3, (commit(3, f"{4:020}.{RATIFIED}.json"),)),
        (3, (commit(3, f"../{good}"),)),
        (3, (commit(3, f"{3:020}.json"),)),
    ):
        with pytest.raises(CatalogError):
            tail_files("/t", LogTail(latest, commits))


def test_c457_a_version_that_is_nowhere_is_named(example: Example) -> None:
    class Forgetful:
        def __getattr__(self, name: str) -> Any:
            return getattr(example.catalog, name)

        def log_tail(self, *arguments: Any) -> LogTail:
            tail = example.catalog.log_tail(*arguments)
            return LogTail(tail.latest_version, ())

    example.warehouse.through(Forgetful())  # type: ignore[arg-type]
    with pytest.raises(CorruptLogError, match=f"{8:020}"):
        example.warehouse.snapshot()


def test_c475_times_are_those_in_the_commits(example: Example) -> None:
    name = example.warehouse.full("t")
    for version in (7, 8, 9):
        at = Table.for_name(name, timestamp=example.time(version) + 1 if version < 9 else example.time(9))
        assert at.version == version
    with pytest.raises(TimestampOutOfRangeError):
        Table.for_name(name, timestamp=example.time(9) + 1)


def test_c476_only_published_versions_get_checkpoints(example: Example) -> None:
    with pytest.raises(PublishedMismatchError):
        example.warehouse.open().checkpoint()
    assert not list(example.log.glob(f"{9:020}.checkpoint*"))
    example.store.delete([published_path(example.location, 7)])
    example.warehouse.open().checkpoint()
    assert list(example.log.glob(f"{9:020}.checkpoint*"))
    assert (example.log / f"{9:020}.json").exists()


def test_c477_the_checksum_of_a_version_may_come_before_it_is_published(warehouse: Warehouse) -> None:
    warehouse.create()
    location = warehouse.location()
    (Path(location) / "_delta_log" / f"{1:020}.json").write_text("taken by somebody else")
    with pytest.warns(DeltaWarning, match="could not be published"):
        assert warehouse.append(1) == 1
    assert (Path(location) / "_delta_log" / f"{1:020}.crc").exists()
    assert warehouse.snapshot().checksum() is not None
    assert warehouse.ids() == [1]


def test_c478_maintenance_is_the_catalogs(warehouse: Warehouse) -> None:
    warehouse.create(properties={"delta.checkpointInterval": "2"})
    for number in range(4):
        warehouse.append(number)
    with pytest.raises(MaintenanceNotAllowedError, match="log to be cleaned up"):
        warehouse.open().clean_log()
    table = managed(warehouse)
    with pytest.raises(MaintenanceNotAllowedError):
        table.require(Maintenance.VACUUM)
    allowed = replace(table.info, allowed_maintenance=frozenset((Maintenance.VACUUM,)))
    replace(table, info=allowed).require(Maintenance.VACUUM)


def test_c481_creating_renaming_dropping_and_purging(warehouse: Warehouse) -> None:
    catalog = warehouse.catalog
    warehouse.create()
    location = Path(warehouse.location())
    assert catalog.tables("s") == [f"{warehouse.name}.s.t"]
    catalog.rename("s.t", "s.u")
    assert warehouse.append(1, table="u") == 1
    catalog.drop("s.u")
    with pytest.raises(CatalogNameNotFoundError):
        catalog.table("s.u")
    assert location.exists()
    assert (location / "_delta_log" / f"{1:020}.json").exists()
    assert len(list((location / "_delta_log").glob("*.json"))) == 2
    assert catalog.purge() == []
    assert catalog.purge(timedelta(seconds=-1)) == [f"{warehouse.name}.s.u"]
    assert not location.exists()
    assert catalog.purge(timedelta(seconds=-1)) == []


def test_c456_c458_c459_c482_a_catalog_may_name_tables_that_it_does_not_manage(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    table = HandMade(tmp_path / "plain")
    table.commit(0, PLAIN, metadata(field("id")), add("a"))
    warehouse.catalog.register("s.plain", table.path)
    assert warehouse.open("plain").version == 0
    assert warehouse.append(1, table="plain") == 1
    assert Table.open(table.path).version == 1
    warehouse.create()
    with pytest.raises(PathAccessError):
        warehouse.catalog.register("s.other", warehouse.location())


def test_c469_c471_c460_a_writer_that_loses_commits_after_the_winners(warehouse: Warehouse) -> None:
    warehouse.create()
    late = Transaction.on(warehouse.snapshot())
    late.write([pa.RecordBatch.from_pydict({"id": pa.array([100], pa.int64())})])
    for number in range(3):
        warehouse.append(number)
    assert late.commit().version == 4
    assert warehouse.ids() == [0, 1, 2, 100]
    conflicting = [warehouse.snapshot(), warehouse.snapshot()]
    commit_change(set_properties(conflicting[0].configuration, {"a": "1"}), conflicting[0])
    with pytest.raises(DeltaError, match="Version 5"):
        commit_change(set_properties(conflicting[1].configuration, {"a": "2"}), conflicting[1])


def test_c479_clean_up_takes_staged_commits_along(warehouse: Warehouse) -> None:
    warehouse.create(properties={"delta.checkpointInterval": "1000"})
    for number in range(3):
        snapshot = warehouse.snapshot()
        commit_change(set_properties(snapshot.configuration, {"note": f"{number}" * 20_000}), snapshot)
    warehouse.open(version=2).checkpoint()
    log = Path(warehouse.location()) / "_delta_log"
    assert len(list((log / "_staged_commits").iterdir())) == 3
    snapshot = warehouse.snapshot()
    assert clean_log(snapshot.store, snapshot.location, snapshot.configuration, now_ms=10**14).log_files == 0
    clean_log(snapshot.store, snapshot.location, snapshot.configuration, now_ms=10**14, allowed_by_catalog=True)
    versions = sorted(int(path.name[:20]) for path in (log / "_staged_commits").iterdir())
    assert (versions and versions[0] > 2) or versions == []
    assert (log / f"{3:020}.json").exists()
    assert warehouse.snapshot().properties["note"] == "2" * 20_000
