"""Row tracking enabled on tables that have files: they are numbered first (Row Tracking, Writer Requirements)."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commits import NO_WAIT, actions, commit, create, draft, file, has_version, info, memory_location

from pyspark_delta.actions.model import Protocol
from pyspark_delta.ddl.change import TableChange, commit_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.ddl.row_ids import enable_row_ids, promises_row_ids
from pyspark_delta.errors import DataFileError, InvalidOperationError, MetadataChangedError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.table import Table
from pyspark_delta.transaction.attempts import AttemptPolicy
from pyspark_delta.transaction.base import state_of

ENABLED = "delta.enableRowTracking"


def enabling(snapshot: Snapshot, **others: str) -> TableChange:
    return set_properties(snapshot.configuration, {ENABLED: "true", **others})


def enable(location: str, files_per_commit: int = 100, policy: AttemptPolicy = NO_WAIT) -> int:
    """Enable row tracking; the version of the last commit."""
    snapshot = Snapshot.load(location)
    assert promises_row_ids(enabling(snapshot), snapshot)
    return enable_row_ids(enabling, snapshot, policy=policy, files_per_commit=files_per_commit).version


def live(location: str) -> dict[str, dict[str, object]]:
    names = ("path", "partition_values", "size", "modification_time", "stats", "deletion_vector", "base_row_id")
    more = ("default_row_commit_version", "tags", "clustering_provider")
    return {row["path"]: row for row in Snapshot.load(location).files((*names, *more)).to_pylist()}


def test_c325_c336_files_are_numbered_in_batches_before_ids_are_promised() -> None:
    location = memory_location()
    create(location, adds=[file(f"f{i}", records=i + 1) for i in range(5)])
    assert enable(location, files_per_commit=2) == 5
    operations = [info(location, version)["operation"] for version in range(6)]
    assert operations == ["CREATE TABLE", "UPGRADE PROTOCOL", *["ROW TRACKING BACKFILL"] * 3, "SET TBLPROPERTIES"]
    assert [info(location, version)["operationParameters"] for version in (2, 4)] == [
        {"batchId": "0"},
        {"batchId": "2"},
    ]
    assert [len(actions(location, version, "add")) for version in range(6)] == [5, 0, 2, 2, 1, 0]
    assert not any(action["dataChange"] for version in (2, 3, 4) for action in actions(location, version, "add"))
    assert set(actions(location, 1, "protocol")[0]["writerFeatures"]) >= {"rowTracking", "domainMetadata"}
    [metadata] = actions(location, 5, "metaData")
    assert metadata["configuration"][ENABLED] == "true"
    named = {name: name.startswith("delta.rowTracking.materializedRow") for name in metadata["configuration"]}
    assert sum(named.values()) == 2
    found = live(location)
    ids = sorted(i for row in found.values() for i in range(row["base_row_id"], row["base_row_id"] + _records(row)))
    assert ids == list(range(15))
    assert {row["default_row_commit_version"] for row in found.values()} == {2, 3, 4}
    for version in range(6):
        checksum = json.loads(store_for(location).read(f"{location}/_delta_log/{version:020d}.crc"))
        assert (checksum["numFiles"], checksum["tableSizeBytes"]) == (5, 5)
    assert Snapshot.load(location).checksum_differences() == ()
    domain = Snapshot.load(location).domains()["delta.rowTracking"]
    assert json.loads(domain.configuration) == {"rowIdHighWaterMark": 14}


def _records(row: dict[str, object]) -> int:
    return int(json.loads(str(row["stats"]))["numRecords"])


def test_c053_bounds_that_a_checkpoint_has_as_columns_are_added_again() -> None:
    location = memory_location()
    form = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    added = file("f", ids=(1, 9), records=3)
    stats = json.loads(added["stats"])
    create(location, adds=[added], properties=form)
    Table.open(location).checkpoint()
    enable(location)
    [again] = actions(location, 2, "add")
    assert json.loads(again["stats"]) == stats


def test_c149_c331_files_keep_all_that_the_log_says_of_them() -> None:
    location = memory_location()
    vector = {"storage_type": "u", "path_or_inline_dv": "x", "offset": 1, "size_in_bytes": 9, "cardinality": 1}
    plain = file("a b%20c", 'é"x', ids=(1, 9), records=3, tags=[("k", "v")], clustering_provider="liquid")
    create(location, "deletionVectors", partitioned=True, adds=[plain, file("dv", records=4, deletion_vector=vector)])
    before = live(location)
    enable(location)
    after = live(location)
    for path, row in before.items():
        numbers = {name: after[path][name] for name in ("base_row_id", "default_row_commit_version")}
        assert {**row, **numbers} == after[path]
    assert after["dv"]["deletion_vector"] == vector
    assert sorted((row["base_row_id"], _records(row)) for row in after.values()) in ([(0, 3), (3, 4)], [(0, 4), (4, 3)])


def test_c330_c331_files_that_have_ids_are_left_alone() -> None:
    location = memory_location()
    base = create(location, adds=[file("old", records=3)])
    assert commit_change(_support(location), Snapshot.load(location), policy=NO_WAIT).version == 1
    commit(draft(adds=[file("new", records=2)]), base)
    assert actions(location, 2, "add")[0]["baseRowId"] == 0
    assert enable(location) == 4  # without another change of the protocol
    assert [a["path"] for a in actions(location, 3, "add")] == ["old"]
    assert {path: row["base_row_id"] for path, row in live(location).items()} == {"new": 0, "old": 2}


def test_c331_c335_what_a_file_has_of_its_ids_already_stays() -> None:
    location = memory_location()
    create(location, adds=[file("id", base_row_id=70), file("version", default_row_commit_version=0)])
    enable(location)
    found = {path: (row["base_row_id"], row["default_row_commit_version"]) for path, row in live(location).items()}
    assert found == {"id": (70, 2), "version": (80, 0)}


def test_c325_c336_a_promise_that_means_nothing_is_not_kept_and_one_that_is_kept_not_made_again() -> None:
    location = memory_location()
    create(location, properties={ENABLED: "true"}, adds=["a"])  # without the feature
    with pytest.raises(InvalidOperationError, match="lack row ids"):
        enable(location)
    assert not has_version(location, 1)
    location = memory_location()
    create(location, adds=["a"])
    enable(location)
    snapshot = Snapshot.load(location)
    assert not promises_row_ids(enabling(snapshot), snapshot)


def _support(location: str) -> TableChange:
    snapshot = Snapshot.load(location)
    return set_properties(snapshot.configuration, {"delta.feature.rowTracking": "supported"})


def _during_batches(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Let another writer act each time that a batch is about to be committed: once its files are chosen."""
    from pyspark_delta.ddl import row_ids

    plain, calls = row_ids.commit_draft, iter(range(100))

    def commit_after(*args: object, **more: object) -> object:
        act(next(calls))
        return plain(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(row_ids, "commit_draft", commit_after)


def test_c325_c342_other_writers_go_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    location = memory_location()
    create(location, "deletionVectors", adds=[file(f"f{i}", records=10) for i in range(4)])
    vector = {"storage_type": "u", "path_or_inline_dv": "x", "offset": 1, "size_in_bytes": 9, "cardinality": 1}

    def act(call: int) -> None:
        base = state_of(Snapshot.load(location))
        if call == 0:
            commit(draft(adds=[file("appended", records=7)]), base)
        elif call == 1:
            commit_change(
                set_properties(Snapshot.load(location).configuration, {"owner": "me"}), Snapshot.load(location)
            )
        elif call == 2:
            commit(draft("DELETE", removes=["f2"]), base)
        elif call == 3:
            commit(draft("DELETE", [file("f3", records=10, deletion_vector=vector)], ["f3"]), base)

    _during_batches(monkeypatch, act)
    enable(location, files_per_commit=2)
    found = live(location)
    assert sorted(found) == ["appended", "f0", "f1", "f3"]  # what was removed stays removed
    assert found["f3"]["deletion_vector"] == vector
    starts = sorted((row["base_row_id"], _records(row)) for row in found.values())
    assert all(start + rows <= after for (start, rows), (after, _) in pairwise(starts))
    properties = Snapshot.load(location).properties
    assert (properties["owner"], properties[ENABLED]) == ("me", "true")


def test_c325_a_batch_that_loses_to_a_removal_does_not_bring_the_file_back(monkeypatch: pytest.MonkeyPatch) -> None:
    location = memory_location()
    create(location, adds=[file("kept"), file("gone")])

    def act(call: int) -> None:
        if call == 0:
            commit(draft("DELETE", removes=["gone"]), state_of(Snapshot.load(location)))

    _during_batches(monkeypatch, act)
    enable(location)
    assert sorted(live(location)) == ["kept"]
    assert [len(actions(location, version, "add")) for version in range(2, 5)] == [0, 1, 0]


def test_c325_batches_become_smaller_with_each_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark_delta.ddl import row_ids

    location = memory_location()
    create(location, adds=[file(f"f{i}") for i in range(6)])

    def act(call: int) -> None:
        if call in (0, 2):
            snapshot = Snapshot.load(location)
            commit_change(set_properties(snapshot.configuration, {"owner": str(call)}), snapshot, policy=NO_WAIT)

    _during_batches(monkeypatch, act)
    monkeypatch.setattr(row_ids, "_FEWEST_FILES", 1)
    monkeypatch.setattr(row_ids, "_MOST_CONFLICTS", 1)  # one after another
    enable(location, files_per_commit=6)
    batches = [len(actions(location, version, "add")) for version in range(2, Snapshot.load(location).version)]
    assert batches == [0, 3, 0, 1, 1, 1]


def test_c325_it_ends_where_every_batch_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark_delta.ddl import row_ids

    location = memory_location()
    create(location, adds=["a"])

    def act(call: int) -> None:
        snapshot = Snapshot.load(location)
        commit_change(set_properties(snapshot.configuration, {"owner": str(call)}), snapshot, policy=NO_WAIT)

    _during_batches(monkeypatch, act)
    monkeypatch.setattr(row_ids, "_MOST_CONFLICTS", 2)
    with pytest.raises(MetadataChangedError):
        enable(location)
    assert ENABLED not in Snapshot.load(location).properties


def test_c325_a_batch_ends_within_what_the_log_gives_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    location = memory_location()
    base = create(location, adds=[file(f"old{i}") for i in range(3)])
    Snapshot.load(location).checkpoint()
    commit(draft(adds=[file(f"new{i}") for i in range(3)]), base)
    enable(location, files_per_commit=4)
    assert [len(actions(location, version, "add")) for version in (3, 4)] == [4, 2]


def test_c336_an_interrupted_run_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    location = memory_location()
    create(location, adds=[file(f"f{i}") for i in range(4)])

    def act(call: int) -> None:
        if call == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        _during_batches(patched, act)
        with pytest.raises(KeyboardInterrupt):
            enable(location, files_per_commit=2)
    assert ENABLED not in Snapshot.load(location).properties
    assert enable(location, files_per_commit=2) == 4
    assert len({row["base_row_id"] for row in live(location).values()}) == 4


def test_c330_c408_files_without_statistics_are_counted_by_their_footers(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    Path(location).mkdir()
    for name, rows in (("a.parquet", 3), ("b.parquet", 5), ("c.parquet", 1)):
        pq.write_table(pa.table({"p": ["x"] * rows, "id": list(range(rows))}), f"{location}/{name}")
    texts = {"b.parquet": '{"maxValues":{"id":4},"numRecords":null}', "c.parquet": "[2]"}
    base = create(location, adds=[{**file(name), "stats": text} for name, text in texts.items()])
    commit(draft(adds=[{**file("a.parquet"), "stats": None}]), base)
    enable(location)
    stats = {path: json.loads(str(row["stats"])) for path, row in live(location).items()}
    assert stats.pop("b.parquet") == {"numRecords": 5, "maxValues": {"id": 4}}
    assert stats == {"a.parquet": {"numRecords": 3}, "c.parquet": {"numRecords": 1}}


def test_c330_a_file_that_cannot_be_counted_ends_it_before_ids_are_promised(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    create(location, adds=[file("a.parquet", records=None)])
    with pytest.raises(DataFileError, match=r"a\.parquet"):
        enable(location)
    assert ENABLED not in Snapshot.load(location).properties


def test_c336_a_writer_that_drops_the_feature_meanwhile_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    location = memory_location()
    create(location, adds=["a", "b"])

    def act(call: int) -> None:
        assert call == 0
        plain = Protocol(min_reader_version=1, min_writer_version=2)
        commit(draft("DROP FEATURE", protocol=plain), state_of(Snapshot.load(location)))

    _during_batches(monkeypatch, act)
    with pytest.raises(InvalidOperationError, match=r"rowTracking was dropped"):
        enable(location)


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"delta.rowTrackingSuspended": "true"}, "enabled and suspended"),
        ({"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}, "iceberg"),
    ],
)
def test_c336_nothing_is_written_where_the_outcome_is_not_allowed(others: dict[str, str], why: str) -> None:
    location = memory_location()
    create(location, adds=["a"])
    with pytest.raises(InvalidOperationError, match=f"(?i){why}"):
        enable_row_ids(lambda snapshot: enabling(snapshot, **others), Snapshot.load(location), policy=NO_WAIT)
    assert not has_version(location, 1)


def test_c336_a_writer_that_suspends_row_tracking_meanwhile_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    location = memory_location()
    create(location, adds=["a", "b"])

    def act(call: int) -> None:
        suspended = set_properties(Snapshot.load(location).configuration, {"delta.rowTrackingSuspended": "true"})
        commit_change(suspended, Snapshot.load(location), policy=NO_WAIT)

    _during_batches(monkeypatch, act)
    with pytest.raises(InvalidOperationError, match=r"rowTrackingSuspended was set"):
        enable(location)


def test_c325_a_table_without_files_needs_no_numbers() -> None:
    location = memory_location()
    create(location)
    snapshot = Snapshot.load(location)
    assert not promises_row_ids(enabling(snapshot), snapshot)
    assert commit_change(enabling(snapshot), snapshot, policy=NO_WAIT).version == 1
