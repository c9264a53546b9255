"""Actions and their reconciliation as a reader meets them (MET, ADD, REM, TXN, PRO, CIN, DOM, REC)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.actions.decode import decode_action
from pyspark_delta.actions.model import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from pyspark_delta.errors import CorruptLogError, UnsupportedTableError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove


def decoded(text: str) -> Any:
    return decode_action(json.loads(text), path="0.json", line=3)


def table(path: Path, *commits: list[Any]) -> Snapshot:
    """The snapshot of some commits; the first gets a protocol and metadata."""
    builder = TableBuilder(path)
    for version, actions in enumerate(commits):
        builder.commit(version, [*([protocol(), metadata()] if version == 0 else []), *actions])
    return Snapshot.load(builder.location)


def paths(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.files(("path",))["path"].to_pylist())


def tombstones(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.tombstones(("path",))["path"].to_pylist())


# ---------------------------------------------------------------------------------------------------------- MET
METADATA = """{"metaData":{"id":"af23c9d7-fff1-4a5a-a2c8-55c59bd782aa","format":{"provider":"parquet","options":{}},
"schemaString":"{}","partitionColumns":[],"configuration":{"appendOnly":"true"}}}"""


def test_c128_c221_two_metadata_in_a_commit_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorruptLogError, match=r"00000000000000000001\.json.*2 metaData"):
        table(tmp_path, [], [metadata(), metadata({"x": "string"})])


def test_c128_c212_a_later_metadata_replaces_the_earlier_one(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [], [metadata({"x": "string"})], [])
    assert snapshot.schema.names == ("x",)


def test_c130_c131_c132_c133_c134_c135_c136_c137_the_fields_of_metadata() -> None:
    found = decoded(METADATA)
    assert found == Metadata(
        id="af23c9d7-fff1-4a5a-a2c8-55c59bd782aa", schema_string="{}", configuration={"appendOnly": "true"}
    )
    more = decoded(METADATA.replace('"id"', '"name":"n","description":"d","createdTime":5,"id"'))
    assert (more.name, more.description, more.created_time) == ("n", "d", 5)


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", 1), ("schemaString", {}), ("partitionColumns", "p"), ("configuration", {"a": [1]}), ("createdTime", "x")],
)
def test_c136_mistyped_metadata_is_named(field: str, value: Any) -> None:
    action = json.loads(METADATA)
    action["metaData"][field] = value
    with pytest.raises(CorruptLogError, match=rf"0\.json.*line 3, metaData.*{field}"):
        decode_action(action, path="0.json", line=3)


# ---------------------------------------------------------------------------------------------------------- ADD
ADD = """{"add":{"path":"date=2017-12-10/part-000...c000.gz.parquet","partitionValues":{"date":"2017-12-10"},
"size":841454,"modificationTime":1512909768000,"dataChange":true,"baseRowId":4071,"defaultRowCommitVersion":41,
"stats":"{\\"numRecords\\":1}"}}"""


def test_c138_c139_c140_c141_c142_c151_the_example_of_add(tmp_path: Path) -> None:
    found = decoded(ADD)
    assert isinstance(found, AddFile)
    assert (found.size, found.modification_time, found.data_change) == (841454, 1512909768000, True)
    assert (found.base_row_id, found.default_row_commit_version) == (4071, 41)
    assert found.partition_values == {"date": "2017-12-10"}
    snapshot = table(tmp_path, [json.loads(ADD)])
    row = snapshot.files(("base_row_id", "default_row_commit_version", "stats")).to_pylist()
    assert row == [{"base_row_id": 4071, "default_row_commit_version": 41, "stats": '{"numRecords":1}'}]


def test_c142_null_and_absent_are_the_same(tmp_path: Path) -> None:
    nulls = dict.fromkeys(["stats", "tags", "deletionVector", "baseRowId", "clusteringProvider"])
    snapshot = table(tmp_path, [add("a", **nulls), add("b")])
    rows = snapshot.files(("stats", "tags", "deletion_vector", "base_row_id", "clustering_provider")).to_pylist()
    assert rows[0] == rows[1]
    assert all(value is None for value in rows[0].values())


def test_c143_a_repeated_add_replaces_the_information(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [add("a", tags={"x": "1"})], [add("a", size=7, tags={"x": "2"}, dataChange=False)])
    assert snapshot.files(("path", "size", "tags")).to_pylist() == [{"path": "a", "size": 7, "tags": [("x", "2")]}]


def test_c144_c215_c216_the_key_is_path_and_deletion_vector(tmp_path: Path) -> None:
    one, two = deletion_vector("one"), deletion_vector("two", offset=None)
    snapshot = table(
        tmp_path,
        [add("x"), add("y")],
        [remove("x"), add("x", deletionVector=one)],
        [remove("x", deletionVector=one), add("x", deletionVector=two)],
        [remove("x", deletionVector=one)],
    )
    found = {r["path"]: r["deletion_vector"] for r in snapshot.files(("path", "deletion_vector")).to_pylist()}
    assert found["y"] is None
    assert found["x"] == {
        "storage_type": "u",
        "path_or_inline_dv": "two",
        "offset": None,
        "size_in_bytes": 40,
        "cardinality": 2,
    }
    assert tombstones(snapshot) == ["x", "x"]


def test_c150_actions_without_data_change_are_files_like_others(tmp_path: Path) -> None:
    assert paths(table(tmp_path, [add("a", dataChange=False)])) == ["a"]


def test_c152_the_clustering_provider(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [add("date=2017-12-10/a", clusteringProvider="liquid")])
    row = snapshot.files(("clustering_provider", "partition_values")).to_pylist()[0]
    assert row == {"clustering_provider": "liquid", "partition_values": []}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"size": "big"}, "size"),
        ({"size": None}, "size"),
        ({"size": 2**63}, "size"),
        ({"modificationTime": 1.5}, "modificationTime"),
        ({"partitionValues": [1]}, "partitionValues"),
        ({"partitionValues": {"p": [5]}}, "partitionValues"),
        ({"path": None}, "path"),
        ({"path": 5}, "path"),
        ({"stats": {}}, "stats"),
        ({"deletionVector": {"storageType": "u"}}, "pathOrInlineDv"),
        ({"deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1}}, "cardinality"),
        ({"deletionVector": 5}, "deletionVector"),
    ],
)
def test_c140_malformed_adds_name_file_line_and_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    builder = TableBuilder(tmp_path)
    partitioned = metadata({"id": "long", "p": "string"}, ["p"])
    bad = {"add": {**add("bad", {"p": "x"})["add"], **change}}
    builder.commit(0, [protocol(), partitioned, add("good", {"p": "x"}), bad])
    with pytest.raises(CorruptLogError, match=field) as raised:
        Snapshot.load(builder.location).files(
            ("path", "size", "modification_time", "partition_values", "stats", "deletion_vector")
        )
    assert "00000000000000000000.json" in raised.value.message
    assert "line 4" in raised.value.message


# ---------------------------------------------------------------------------------------------------------- REM
def test_c153_c154_c155_c156_c157_c160_the_example_of_remove(tmp_path: Path) -> None:
    text = """{"remove":{"path":"part-00001-9.....snappy.parquet","deletionTimestamp":1515488792485,
    "baseRowId":4071,"defaultRowCommitVersion":41,"dataChange":true}}"""
    found = decoded(text)
    assert isinstance(found, RemoveFile)
    assert (found.deletion_timestamp, found.base_row_id, found.default_row_commit_version) == (1515488792485, 4071, 41)
    assert found.extended_file_metadata is None
    snapshot = table(tmp_path, [json.loads(text), {"remove": {"path": "old", "dataChange": True}}])
    rows = snapshot.tombstones(("path", "deletion_timestamp", "size", "partition_values")).to_pylist()
    assert {r["path"]: r["deletion_timestamp"] for r in rows} == {
        "part-00001-9.....snappy.parquet": 1515488792485,
        "old": None,
    }
    assert all(r["partition_values"] is None or r["partition_values"] == [] for r in rows)


# ---------------------------------------------------------------------------------------------------------- TXN
def test_c177_c182_the_example_of_txn() -> None:
    text = '{"txn":{"appId":"3ba13872-2d47-4e17-86a0-21afd2a22395","version":364475}}'
    assert decoded(text) == SetTransaction(app_id="3ba13872-2d47-4e17-86a0-21afd2a22395", version=364475)


def test_c178_c179_c213_the_latest_version_counts_even_if_lower(tmp_path: Path) -> None:
    snapshot = table(
        tmp_path,
        [{"txn": {"appId": "a", "version": 5}}, {"txn": {"appId": "b", "version": 1, "lastUpdated": 9}}],
        [{"txn": {"appId": "a", "version": 3}}],
    )
    assert {a: t.version for a, t in snapshot.transactions().items()} == {"a": 3, "b": 1}
    assert snapshot.transactions()["b"].last_updated == 9


def test_c221_two_versions_of_an_application_in_a_commit_are_an_error(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [{"txn": {"appId": "a", "version": 5}}, {"txn": {"appId": "a", "version": 6}}])
    with pytest.raises(CorruptLogError, match="two versions for the application 'a'"):
        snapshot.transactions()


# ---------------------------------------------------------------------------------------------------------- PRO
def test_c002_c184_c187_the_example_of_protocol() -> None:
    assert decoded('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}') == Protocol(
        min_reader_version=1, min_writer_version=2
    )
    found = decoded(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["a"],"writerFeatures":[]}}'
    )
    assert (found.reader_features, found.writer_features) == (frozenset(["a"]), frozenset())


def test_c188_the_keys_of_the_sample_do_not_count() -> None:
    with pytest.raises(CorruptLogError, match="minReaderVersion"):
        decoded('{"protocol":{"readerVersion":2,"writerVersion":7,"writerFeatures":["columnMapping"]}}')


def test_c185_a_version_beyond_support_is_refused(tmp_path: Path) -> None:
    TableBuilder(tmp_path).commit(0, [protocol(4, 7), metadata()])
    with pytest.raises(UnsupportedTableError, match="reader version 4"):
        Snapshot.load(str(tmp_path))


def test_c189_c221_two_protocols_in_a_commit_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorruptLogError, match="2 protocol actions"):
        table(tmp_path, [], [protocol(), protocol(1, 3)])


def test_c190_legacy_versions(tmp_path: Path) -> None:
    assert table(tmp_path, []).protocol.reader_features is None


def test_c186_unknown_actions_and_fields_are_ignored(tmp_path: Path) -> None:
    unknown = {"futureAction": {"x": [1, {"y": None}]}}
    snapshot = table(tmp_path, [unknown, add("a", futureField={"add": {"path": "b"}})])
    assert paths(snapshot) == ["a"]
    assert decode_action(unknown, path="", line=1) is None


# ---------------------------------------------------------------------------------------------------------- CIN
def test_c195_c197_commit_infos_hold_anything_and_change_nothing(tmp_path: Path) -> None:
    values = {"timestamp": 1515491537026, "operation": "INSERT", "notebook": {"notebookId": "44"}, "add": {"path": "x"}}
    snapshot = table(tmp_path, [{"commitInfo": values}, add("a")])
    assert snapshot.commit_info() == CommitInfo(values=values)
    assert paths(snapshot) == ["a"]


# ---------------------------------------------------------------------------------------------------------- DOM
def domain(name: str, configuration: str, removed: bool = False) -> dict[str, Any]:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def test_c198_c199_c209_the_example_of_a_domain() -> None:
    text = r"""{"domainMetadata":{"domain":"delta.deltaTableFeatureX","configuration":"{\"key1\":\"value1\"}",
    "removed":false}}"""
    assert decoded(text) == DomainMetadata(domain="delta.deltaTableFeatureX", configuration='{"key1":"value1"}')


def test_c186_c206_c207_c208_c214_domains_are_reconciled_and_removed_ones_hidden(tmp_path: Path) -> None:
    snapshot = table(
        tmp_path,
        [domain("kept", "1"), domain("changed", "1"), domain("gone", "1"), domain("delta.unknownFeature", "x")],
        [domain("changed", "2"), domain("gone", "1", removed=True)],
    )
    assert {n: d.configuration for n, d in snapshot.domains().items()} == {
        "kept": "1",
        "changed": "2",
        "delta.unknownFeature": "x",
    }


# ---------------------------------------------------------------------------------------------------------- REC
def test_c211_c212_c217_the_parts_of_a_snapshot(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [add("a"), add("b")], [remove("a"), protocol(1, 3)], [add("c")])
    assert paths(snapshot) == ["b", "c"]
    assert tombstones(snapshot) == ["a"]
    assert snapshot.protocol.min_writer_version == 3


def test_c211_added_again_is_live_and_no_tombstone(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [add("a")], [remove("a")], [add("a")])
    assert paths(snapshot) == ["a"]
    assert tombstones(snapshot) == []


@pytest.mark.parametrize("turned", [False, True])
def test_c146_c219_the_order_within_a_commit_means_nothing(tmp_path: Path, turned: bool) -> None:
    vector = deletion_vector("v")
    actions = [remove("a"), add("a", deletionVector=vector), remove("b"), add("b")]
    snapshot = table(tmp_path, [add("a"), add("b")], actions[::-1] if turned else actions)
    assert paths(snapshot) == ["a", "b"]
    assert tombstones(snapshot) == ["a"]


TWINS = [
    ("a%20b", "a b"),
    ("a%2Bb", "a+b"),
    ("caf%C3%A9/x", "café/x"),
    ("p=1/x", "{root}/p=1/x"),
    ("p=1/x", "file:{root}/p=1/x"),
    ("p=1/x", "file://{root}/p=1/x"),
    ("./x", "x"),
    ("p//x", "p/x"),
    ("file:/some/x", "/some/x"),
    ("a%25b", "a%b"),
    ('q"x', "q%22x"),
]


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize(("one", "other"), TWINS)
@pytest.mark.parametrize("turned", [False, True])
def test_c220_paths_are_compared_decoded_and_resolved(
    tmp_path: Path, kind: str, one: str, other: str, turned: bool
) -> None:
    one, other = (text.replace("{root}", str(tmp_path)) for text in ((other, one) if turned else (one, other)))
    builder = TableBuilder(tmp_path)
    if kind == "json":
        builder.commit(0, [protocol(), metadata(), add(one), add("plain")])
    else:
        builder.classic_checkpoint(0, [protocol(), metadata(), add(one), add("plain")])
    builder.commit(1, [remove(other)])
    snapshot = Snapshot.load(builder.location)
    assert paths(snapshot) == ["plain"]
    assert tombstones(snapshot) == [other]


def test_c220_different_paths_stay_different(tmp_path: Path) -> None:
    snapshot = table(tmp_path, [add("a%2520b"), add("a%20b"), add("A b")], [remove("a b")])
    assert paths(snapshot) == ["A b", "a%2520b"]
