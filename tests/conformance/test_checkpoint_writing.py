"""Which checkpoints are written, under which names, and what they hold (CKN, CKC, V2C, LCP)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.actions.columns import MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE, STATS
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.errors import (
    ChecksumMismatchError,
    InvalidOperationError,
    InvalidOptionError,
    UnsupportedFeatureError,
)
from pyspark_delta.log import checkpoint_writer
from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.json_checksum import checksum_matches
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import load_segment
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import FileStatus, store_for
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

NOW = int(time.time() * 1000)
DAY = 86_400_000
SCHEMA = {
    "asset": "string",
    "quantity": "long",
    "price": "decimal(5,2)",
    "ratio": "double",
    "at": "timestamp",
    "sold": "boolean",
    "year": "integer",
    "event": "string",
}
STATS_TEXT = json.dumps(
    {
        "numRecords": 3,
        "minValues": {"asset": 'a"\\ü', "quantity": -1, "price": 1.10, "ratio": 0.1, "at": "2024-01-01T00:00:00.000Z"},
        "maxValues": {"asset": "z", "quantity": 9, "price": 999.99, "ratio": 2.5, "at": "2024-01-01T12:00:00.001Z"},
        "nullCount": {"asset": 0, "quantity": 1, "price": 0, "ratio": 0, "at": 0, "sold": 2},
    }
)
V2 = protocol(3, 7, ["v2Checkpoint"])


def properties(**values: str) -> dict[str, str]:
    """Table properties by the last parts of their names."""
    return {f"delta.{name.replace('_', '.')}": value for name, value in values.items()}


def a_table(
    path: Path, first: Any = None, partitions: Sequence[str] = ("year", "event"), **values: str
) -> TableBuilder:
    """Three versions with every kind of action that a checkpoint keeps, and some that it drops."""
    table = TableBuilder(path)
    values_of = {"year": "2024", "event": "x y"}
    table.commit(
        0,
        [
            {"commitInfo": {"operation": "CREATE TABLE"}},
            first or protocol(),
            metadata(SCHEMA, partitions, properties(**values)),
            add("a.parquet", values_of, stats=STATS_TEXT, tags={"k": "v"}, baseRowId=7, defaultRowCommitVersion=0),
            add("gone.parquet", values_of, stats=STATS_TEXT),
            {"txn": {"appId": "app", "version": 1, "lastUpdated": 5}},
            {"domainMetadata": {"domain": "kept", "configuration": "{}", "removed": False}},
            {"domainMetadata": {"domain": "dropped", "configuration": "{}", "removed": False}},
        ],
    )
    table.commit(
        1,
        [
            remove("gone.parquet", deletionTimestamp=NOW, partitionValues=values_of, size=100, stats="{}", tags={}),
            remove("long ago.parquet", deletionTimestamp=NOW - 8 * DAY),
            {"txn": {"appId": "app", "version": 2, "lastUpdated": 6}},
            {"domainMetadata": {"domain": "dropped", "configuration": "{}", "removed": True}},
            {"cdc": {"path": "_change_data/c", "partitionValues": {}, "size": 1, "dataChange": False}},
        ],
    )
    table.commit(
        2,
        [
            add("b.parquet", {"year": None, "event": None}, clusteringProvider="liquid"),
            add("v.parquet", values_of, deletionVector=deletion_vector("vBn[lx{q8@P<9BNH/isA")),
        ],
    )
    return table


def checkpoint_files(table: TableBuilder) -> list[str]:
    """The names of the checkpoint files."""
    return sorted(path.name for path in table.log.iterdir() if ".checkpoint." in path.name)


def content(path: Path, kind: str) -> list[dict[str, Any]]:
    """The actions of one kind in a Parquet file."""
    column = pq.read_table(path, columns=[kind]).column(kind)
    return [row for row in column.to_pylist(maps_as_pydicts="strict") if row is not None]


def classic(path: Path, **values: str) -> Path:
    """The file of the classic checkpoint of a table with these properties."""
    table = a_table(path, **values)
    Table.open(table.location).checkpoint()
    (name,) = checkpoint_files(table)
    assert name == f"{2:020d}.checkpoint.parquet"
    return table.log / name


# --------------------------------------------------------------------------------------------------- CKN: which, when
def test_c020_c026_commits_make_checkpoints_as_often_as_the_interval_says(tmp_path: Path) -> None:
    table = a_table(tmp_path, partitions=(), checkpointInterval="3")
    for _ in range(5):
        draft = CommitDraft(operation=Operation("WRITE"), adds=_files(f"f{time.time_ns()}"))
        commit_draft(draft, state_of(Snapshot.load(table.location)))
    assert checkpoint_files(table) == [f"{v:020d}.checkpoint.parquet" for v in (3, 6)]
    assert Snapshot.load(table.location).segment.checkpoint_version == 6


def _files(*paths: str) -> pa.Table:
    rows = [{"path": p, "partition_values": [], "size": 10, "modification_time": 1, "stats": None} for p in paths]
    return pa.Table.from_pylist(rows, pa.schema([PATH, PARTITION_VALUES, SIZE, MODIFICATION_TIME, STATS]))


def test_c021_a_version_that_is_not_published_has_no_checkpoint(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    staged = table.log / f"{2:020d}.{'0' * 8}-0000-4000-8000-{'0' * 12}.json"
    (table.log / f"{2:020d}.json").rename(staged)
    status = FileStatus(str(staged), staged.stat().st_size, 1)
    with pytest.raises(InvalidOperationError, match=r"Version 2 .* is not published"):
        Snapshot.load(table.location, tail=TailFiles(2, (status,))).checkpoint()
    assert checkpoint_files(table) == []


def test_c022_c045_c046_c183_c210_the_whole_state_and_nothing_else(tmp_path: Path) -> None:
    path = classic(tmp_path)
    (found,) = content(path, "metaData")
    assert found["partitionColumns"] == ["year", "event"]
    assert found["format"] == {"provider": "parquet", "options": {}}
    assert [row["path"] for row in content(path, "add")] == ["a.parquet", "b.parquet", "v.parquet"]
    assert [row["path"] for row in content(path, "remove")] == ["gone.parquet"]  # the other one is expired
    assert content(path, "txn") == [{"appId": "app", "version": 2, "lastUpdated": 6}]
    assert content(path, "domainMetadata") == [{"domain": "kept", "configuration": "{}", "removed": False}]
    assert {"commitInfo", "cdc"}.isdisjoint(pq.read_schema(path).names)


def test_c022_c158_tombstones_stay_as_long_as_the_table_says(tmp_path: Path) -> None:
    path = classic(tmp_path, deletedFileRetentionDuration="interval 9 days")
    assert sorted(row["path"] for row in content(path, "remove")) == ["gone.parquet", "long ago.parquet"]


def test_c024_a_checkpoint_of_an_older_version(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    Table.open(table.location, version=1).checkpoint()
    assert checkpoint_files(table) == [f"{1:020d}.checkpoint.parquet"]
    assert [row["path"] for row in content(table.log / f"{1:020d}.checkpoint.parquet", "add")] == ["a.parquet"]
    Table.open(table.location).checkpoint()
    Table.open(table.location, version=0).checkpoint()
    assert json.loads((table.log / "_last_checkpoint").read_text())["version"] == 2


def test_c027_c036_the_classic_checkpoint_of_a_version_is_replaced_by_its_equal(tmp_path: Path) -> None:
    path = classic(tmp_path)
    before = pq.read_table(path)
    Table.open(tmp_path).checkpoint()
    assert pq.read_table(path).equals(before)


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_c031_c032_never_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_ACTIONS", 1)
    table = a_table(tmp_path, V2, checkpointPolicy=policy)
    Table.open(table.location).checkpoint()
    assert len(checkpoint_files(table)) == 1
    assert not re.search(r"checkpoint\.\d{10}\.\d{10}\.parquet", checkpoint_files(table)[0])


def test_c033_c076_classic_v1_even_where_v2_is_supported(tmp_path: Path) -> None:
    table = a_table(tmp_path, V2)
    Table.open(table.location).checkpoint()
    (name,) = checkpoint_files(table)
    assert name == f"{2:020d}.checkpoint.parquet"
    assert {"checkpointMetadata", "sidecar"}.isdisjoint(pq.read_schema(table.log / name).names)


def test_c034_c064_no_v2_without_the_feature(tmp_path: Path) -> None:
    path = classic(tmp_path, checkpointPolicy="v2")
    assert {"checkpointMetadata", "sidecar"}.isdisjoint(pq.read_schema(path).names)


def test_a_table_with_an_unknown_feature_is_left_alone(tmp_path: Path) -> None:
    table = a_table(tmp_path, protocol(3, 7, [], ["someday"]))
    with pytest.raises(UnsupportedFeatureError, match="someday"):
        Table.open(table.location).checkpoint()
    assert checkpoint_files(table) == []


# -------------------------------------------------------------------------------------------------- CKC: the content
def test_c044_one_action_in_each_row(tmp_path: Path) -> None:
    table = pq.read_table(classic(tmp_path))
    for row in table.to_pylist():
        assert sum(value is not None for value in row.values()) == 1


def test_c048_c049_c051_c056_c062_typed_statistics_and_partition_values(tmp_path: Path) -> None:
    rows = {row["path"]: row for row in content(classic(tmp_path), "add")}
    assert rows["a.parquet"]["partitionValues_parsed"] == {"year": 2024, "event": "x y"}
    assert rows["b.parquet"]["partitionValues_parsed"] == {"year": None, "event": None}
    parsed = rows["a.parquet"]["stats_parsed"]
    assert list(parsed) == ["numRecords", "minValues", "maxValues", "nullCount"]
    assert list(parsed["minValues"]) == ["asset", "quantity", "price", "ratio", "at"]  # none of booleans
    assert parsed["minValues"]["asset"] == 'a"\\ü'
    assert str(parsed["maxValues"]["price"]) == "999.99"
    assert parsed["maxValues"]["at"] == datetime(2024, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)
    assert parsed["nullCount"] == {"asset": 0, "quantity": 1, "price": 0, "ratio": 0, "at": 0, "sold": 2}
    assert rows["b.parquet"]["stats_parsed"] is None


@pytest.mark.parametrize(("as_text", "as_struct"), [(True, True), (True, False), (False, True), (False, False)])
def test_c050_c051_c052_statistics_in_the_forms_that_the_table_asks_for(
    tmp_path: Path, as_text: bool, as_struct: bool
) -> None:
    asked = {"checkpoint_writeStatsAsJson": str(as_text), "checkpoint_writeStatsAsStruct": str(as_struct)}
    path = classic(tmp_path, **{name: value.lower() for name, value in asked.items()})
    names = {field.name for field in pq.read_schema(path).field("add").type}
    assert ("stats" in names) == as_text
    assert ("stats_parsed" in names) == ("partitionValues_parsed" in names) == as_struct
    if as_text:
        assert content(path, "add")[0]["stats"] == STATS_TEXT


def test_c053_texts_are_made_again_from_typed_statistics(tmp_path: Path) -> None:
    table = a_table(tmp_path, checkpoint_writeStatsAsJson="false")
    Table.open(table.location).checkpoint()
    table.commit(3, [metadata(SCHEMA, ["year", "event"], properties(checkpoint_writeStatsAsStruct="false"))])
    Table.open(table.location).checkpoint()
    rows = {row["path"]: row for row in content(table.log / f"{3:020d}.checkpoint.parquet", "add")}
    assert "stats_parsed" not in rows["a.parquet"]
    found, expected = json.loads(rows["a.parquet"]["stats"]), json.loads(STATS_TEXT)
    for bounds in (found["minValues"], found["maxValues"], expected["minValues"], expected["maxValues"]):
        bounds["at"] = datetime.fromisoformat(bounds["at"])
    assert found == expected
    assert rows["b.parquet"]["stats"] is None


@pytest.mark.parametrize("as_text", ["true", "false"])
def test_c053_statistics_have_a_text_in_whichever_form_a_checkpoint_keeps_them(tmp_path: Path, as_text: str) -> None:
    table = a_table(tmp_path, checkpoint_writeStatsAsJson=as_text, checkpoint_writeStatsAsStruct="true")
    Table.open(table.location).checkpoint()
    snapshot = Snapshot.load(table.location)
    files = snapshot.files(columns=("stats", "path")).to_pylist()
    found = {row["path"]: row["stats"] and json.loads(row["stats"]) for row in files}
    expected = json.loads(STATS_TEXT)
    for stats in (found["a.parquet"], expected):
        for bounds in (stats["minValues"], stats["maxValues"]):
            bounds["at"] = datetime.fromisoformat(bounds["at"])
    assert found == {"a.parquet": expected, "b.parquet": None, "v.parquet": None}
    removed = snapshot.tombstones(columns=("path", "size")).to_pylist()
    assert removed == [{"path": "gone.parquet", "size": 100}]
    # A plan asks for less of statistics than that.
    [text] = [row["stats"] for row in plan_scan(snapshot, statistics=True).files.to_pylist() if row["path"][0] == "a"]
    assert (text is not None) == (as_text == "true")


def test_c053_typed_statistics_are_made_from_texts_where_a_leaf_is_missing(tmp_path: Path) -> None:
    table = a_table(tmp_path, dataSkippingStatsColumns="asset")
    Table.open(table.location).checkpoint()
    table.commit(3, [metadata(SCHEMA, ["year", "event"], {})])
    Table.open(table.location).checkpoint()
    first, second = (content(table.log / f"{v:020d}.checkpoint.parquet", "add")[0] for v in (2, 3))
    assert first["stats_parsed"]["minValues"] == {"asset": 'a"\\ü'}
    assert second["stats_parsed"]["minValues"]["quantity"] == -1


def test_c054_removes_have_neither_statistics_nor_tags(tmp_path: Path) -> None:
    (row,) = content(classic(tmp_path), "remove")
    assert {"stats", "tags", "stats_parsed"}.isdisjoint(row)
    assert row["size"] == 100
    assert row["partitionValues"] == {"year": "2024", "event": "x y"}


@pytest.mark.parametrize("features", [None, ["v2Checkpoint"]])
def test_c055_feature_lists_are_there_exactly_with_feature_versions(tmp_path: Path, features: Any) -> None:
    table = a_table(tmp_path, protocol(3, 7, features) if features else protocol())
    Table.open(table.location).checkpoint()
    (found,) = content(table.log / f"{2:020d}.checkpoint.parquet", "protocol")
    assert (found["readerFeatures"], found["writerFeatures"]) == (features, features)


def test_c057_c059_null_counts_and_physical_names(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    fields = [
        _mapped("asset", "string", 1, "col-b96921f0"),
        _mapped("date", "date", 2, "col-798f4abc"),
        _mapped("quantity", "double", 3, "col-04ee4877"),
    ]
    value = metadata({}, ["date"], {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"})
    value["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})  # type: ignore[index]
    stats = '{"numRecords":1,"minValues":{"col-b96921f0":"x"},"maxValues":{},"nullCount":{"col-04ee4877":1}}'
    table.commit(0, [protocol(2, 5), value, add("f", {"col-798f4abc": "2024-02-29"}, stats=stats)])
    Table.open(table.location).checkpoint()
    (row,) = content(table.log / f"{0:020d}.checkpoint.parquet", "add")
    assert row["partitionValues_parsed"] == {"col-798f4abc": date(2024, 2, 29)}
    assert row["stats_parsed"]["minValues"] == {"col-b96921f0": "x", "col-04ee4877": None}
    assert row["stats_parsed"]["nullCount"] == {"col-b96921f0": None, "col-04ee4877": 1}


def _mapped(name: str, kind: str, number: int, physical: str) -> dict[str, Any]:
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": ids}


def test_c058_c061_nothing_of_a_file_is_lost(tmp_path: Path) -> None:
    rows = {row["path"]: row for row in content(classic(tmp_path), "add")}
    assert (rows["a.parquet"]["baseRowId"], rows["a.parquet"]["defaultRowCommitVersion"]) == (7, 0)
    assert rows["a.parquet"]["tags"] == {"k": "v"}
    assert rows["b.parquet"]["clusteringProvider"] == "liquid"
    assert rows["v.parquet"]["deletionVector"] == {**deletion_vector("vBn[lx{q8@P<9BNH/isA")}


def test_c063_a_checkpoint_changes_no_data(tmp_path: Path) -> None:
    path = classic(tmp_path)
    assert {row["dataChange"] for kind in ("add", "remove") for row in content(path, kind)} == {False}


def test_c121_no_checkpoint_where_the_checksum_counts_other_files(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    snapshot = Snapshot.load(table.location)
    counted = {"numFiles": 4, "tableSizeBytes": 300, "numMetadata": 1, "numProtocol": 1}
    value = metadata(SCHEMA, ["year", "event"])["metaData"]
    table.checksum(2, {**counted, "metadata": value, "protocol": protocol()["protocol"]})
    with pytest.raises(ChecksumMismatchError, match="3 files of 300 bytes, but the version checksum says 4 of 300"):
        Snapshot.load(table.location).checkpoint()
    assert checkpoint_files(table) == []
    assert snapshot.num_files() == 3


# ----------------------------------------------------------------------------------------------------------- V2C
@pytest.fixture
def v2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableBuilder:
    """A table with V2 checkpoints, of which sidecars hold two actions, and one of them."""
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_ACTIONS", 2)
    table = a_table(tmp_path, V2, checkpointPolicy="v2")
    Table.open(table.location).checkpoint()
    return table


def top_level(table: TableBuilder, version: int = 2) -> list[dict[str, Any]]:
    """The actions of the newest V2 checkpoint of a version."""
    found = list(table.log.glob(f"{version:020d}.checkpoint.*.json"))
    newest = max(found, key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(line) for line in newest.read_text().splitlines()]


def sidecars(table: TableBuilder, version: int = 2) -> list[dict[str, Any]]:
    return [action["sidecar"] for action in top_level(table, version) if "sidecar" in action]


def test_c029_c037_c038_c042_the_name_has_a_uuid(v2: TableBuilder) -> None:
    (name,) = checkpoint_files(v2)
    assert re.fullmatch(r"0{19}2\.checkpoint\.[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\.json", name)


def test_c065_c066_c074_one_checkpoint_metadata(v2: TableBuilder) -> None:
    (found,) = [a["checkpointMetadata"] for a in top_level(v2) if "checkpointMetadata" in a]
    assert found["version"] == 2
    size = sum(s["sizeInBytes"] for s in sidecars(v2))
    assert found["tags"] == {"sidecarNumActions": "4", "sidecarSizeInBytes": str(size), "numOfAddFiles": "3"}


def test_c067_c068_c069_files_in_sidecars_and_all_else_in_the_main_file(v2: TableBuilder) -> None:
    kinds = [next(iter(action)) for action in top_level(v2)]
    assert kinds == ["checkpointMetadata", "protocol", "metaData", "txn", "domainMetadata", *["sidecar"] * 3]


def test_c070_c071_c072_sidecars_are_named_bare_and_hold_only_files(v2: TableBuilder) -> None:
    paths = []
    for sidecar in sidecars(v2):
        file = v2.log / "_sidecars" / sidecar["path"]
        assert file.stat().st_size == sidecar["sizeInBytes"]
        assert file.stat().st_mtime_ns // 1_000_000 == sidecar["modificationTime"]
        assert pq.read_schema(file).names == ["add", "remove"]
        paths += [row["path"] for kind in ("add", "remove") for row in content(file, kind)]
    assert paths == ["a.parquet", "b.parquet", "v.parquet", "gone.parquet"]


def test_c073_c079_sidecar_actions_are_in_checkpoints_only(v2: TableBuilder) -> None:
    commit_draft(CommitDraft(operation=Operation("WRITE")), state_of(Snapshot.load(v2.location)))
    Table.open(v2.location).checkpoint()
    assert set(sidecars(v2, 3)[0]) == {"path", "sizeInBytes", "modificationTime"}
    kinds = {next(iter(json.loads(line))) for line in (v2.log / f"{3:020d}.json").read_text().splitlines()}
    assert kinds == {"commitInfo"}
    assert Snapshot.load(v2.location).num_files() == 3


def test_sidecars_whose_files_are_all_live_serve_again(v2: TableBuilder) -> None:
    first, second, tombstones = sidecars(v2)
    v2.commit(3, [remove("v.parquet", deletionVector=deletion_vector("vBn[lx{q8@P<9BNH/isA"), deletionTimestamp=NOW)])
    written = Snapshot.load(v2.location).checkpoint()
    assert written.reused_sidecars == 1
    names = [s["path"] for s in sidecars(v2, 3)]
    assert first["path"] in names
    assert {second["path"], tombstones["path"]}.isdisjoint(names)
    assert sorted(Snapshot.load(v2.location).files()["path"].to_pylist()) == ["a.parquet", "b.parquet"]
    assert len(Snapshot.load(v2.location).tombstones()) == 2
    v2.commit(
        4,
        [metadata(SCHEMA, ["year", "event"], properties(checkpointPolicy="v2", checkpoint_writeStatsAsStruct="false"))],
    )
    assert Snapshot.load(v2.location).checkpoint().reused_sidecars == 0  # the table asks for other columns now


@pytest.mark.parametrize("how", ["asked for", "by size"])
def test_c042_c047_c066_c067_c068_a_top_level_of_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    table = a_table(tmp_path, V2, checkpointPolicy="v2")
    before = Snapshot.load(table.location)
    if how == "by size":
        monkeypatch.setattr(checkpoint_writer, "LARGEST_JSON", 500)
    Table.open(table.location).checkpoint("parquet" if how == "asked for" else None)
    (name,) = checkpoint_files(table)
    assert re.fullmatch(r"0{19}2\.checkpoint\.[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\.parquet", name)
    file = table.log / name
    kinds = [kind for row in pq.read_table(file).to_pylist() for kind in row if row[kind] is not None]
    assert kinds == ["checkpointMetadata", "protocol", "metaData", "txn", "domainMetadata", *["sidecar"] * 2]
    assert [row["version"] for row in content(file, "checkpointMetadata")] == [2]
    hint = json.loads((table.log / "_last_checkpoint").read_bytes())
    assert (hint["v2Checkpoint"]["path"], hint["v2Checkpoint"]["sizeInBytes"]) == (name, file.stat().st_size)
    named = [table.log / "_sidecars" / row["path"] for row in content(file, "sidecar")]
    assert hint["sizeInBytes"] == sum(path.stat().st_size for path in (file, *named))
    for commit in table.log.glob("*.json"):
        if commit.name != f"{2:020d}.json":
            commit.unlink()
    after = Snapshot.load(table.location)
    assert after.metadata == before.metadata
    assert (after.transactions(), after.domains()) == (before.transactions(), before.domains())
    assert sorted(after.files()["path"].to_pylist()) == sorted(before.files()["path"].to_pylist())
    assert len(after.tombstones()) == 1


def test_c047_sidecars_serve_again_under_a_top_level_of_the_other_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_ACTIONS", 2)
    table = a_table(tmp_path, V2, checkpointPolicy="v2")
    for version, top_level_format in ((2, "parquet"), (3, "json"), (4, "parquet")):
        if version > 2:
            table.commit(version, [add(f"{version}.parquet", {"year": None, "event": None})])
        written = Snapshot.load(table.location).checkpoint(top_level_format)  # type: ignore[arg-type]
        assert written.reused_sidecars == {2: 0, 3: 2, 4: 3}[version]
        assert Snapshot.load(table.location).num_files() == version + 1


def test_c047_another_format_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path, V2, checkpointPolicy="v2")
    with pytest.raises(InvalidOptionError, match="'json' or 'parquet', found 'avro'"):
        Table.open(table.location).checkpoint("avro")  # type: ignore[arg-type]
    assert checkpoint_files(table) == []


# ----------------------------------------------------------------------------------------------------------- LCP
def test_c080_c084_c095_the_hint_names_the_checkpoint_with_a_checksum(tmp_path: Path) -> None:
    path = classic(tmp_path)
    text = (path.parent / "_last_checkpoint").read_bytes()
    found = json.loads(text)
    checksum = found.pop("checksum")
    assert found == {"version": 2, "size": 8, "sizeInBytes": path.stat().st_size, "numOfAddFiles": 3}
    assert checksum_matches(text)
    assert not checksum_matches(text.replace(b'"size":8', b'"size":9'))
    assert len(checksum) == 32


def test_c075_c080_the_hint_of_a_v2_checkpoint(v2: TableBuilder) -> None:
    found = json.loads((v2.log / "_last_checkpoint").read_bytes())
    (name,) = checkpoint_files(v2)
    assert found["v2Checkpoint"]["path"] == name
    assert found["v2Checkpoint"]["sizeInBytes"] == (v2.log / name).stat().st_size
    assert found["size"] == len(top_level(v2)) + 4
    assert found["sizeInBytes"] == (v2.log / name).stat().st_size + sum(s["sizeInBytes"] for s in sidecars(v2))


def test_expired_transactions_are_dropped(tmp_path: Path) -> None:
    table = a_table(tmp_path, setTransactionRetentionDuration="interval 1 day")
    table.commit(3, [{"txn": {"appId": "recent", "version": 1, "lastUpdated": NOW}}])
    table.commit(4, [{"txn": {"appId": "timeless", "version": 1}}])
    store = store_for(table.location)
    replay = LogReplay(store, load_segment(store, table.location))
    write_checkpoint(replay, Snapshot.load(table.location).configuration, now_ms=NOW)
    rows = content(table.log / f"{4:020d}.checkpoint.parquet", "txn")
    assert [row["appId"] for row in rows] == ["recent", "timeless"]
