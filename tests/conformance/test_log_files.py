"""Rows of area LOG: a table is a directory with one gapless history, and what its files are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hand_made import PLAIN, HandMade, Json, add, features, field, metadata, remove

from pyspark_delta.errors import CorruptLogError, DeltaError, UnsupportedTableError, VersionNotFoundError
from pyspark_delta.log.names import (
    ClassicCheckpointName,
    CommitName,
    CompactionName,
    MultiPartCheckpointName,
    UuidCheckpointName,
    VersionChecksumName,
    parse_name,
)
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.fixture
def table(tmp_path: Path) -> HandMade:
    """An empty folder for a table."""
    return HandMade(tmp_path / "table")


def ids(table: HandMade, version: int | None = None) -> list[int]:
    """The ids in a version of the table."""
    return sorted(Table.open(table.path, version=version).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def paths(table: HandMade, version: int | None = None) -> list[str]:
    """The live files of a version."""
    return sorted(Snapshot.load(str(table.path), version=version).files(("path",))["path"].to_pylist())


def test_c003_every_kind_of_file_is_known_by_its_name() -> None:
    assert parse_name(f"{7:020}.json") == CommitName(7)
    assert parse_name(f"{7:020}.crc") == VersionChecksumName(7)
    assert parse_name(f"{7:020}.checkpoint.parquet") == ClassicCheckpointName(7)
    assert parse_name(f"{7:020}.checkpoint.{2:010}.{3:010}.parquet") == MultiPartCheckpointName(7, 2, 3)
    assert parse_name(f"{7:020}.checkpoint.{UUID}.json") == UuidCheckpointName(7, UUID, "json")
    assert parse_name(f"{7:020}.{9:020}.compacted.json") == CompactionName(7, 9)


def test_c004_sample_directory_lacks_version_2_and_is_read_from_its_checkpoint(table: HandMade) -> None:
    kept = table.data("part-00000-3935a07c-416b-4344-ad97-2a38342ee2fc.c000.snappy.parquet", {"id": [1]})
    table.commit(0, PLAIN, metadata(field("id")))
    table.commit(1, kept)
    table.checkpoint(3, PLAIN, metadata(field("id")), kept)
    table.commit(3, {"commitInfo": {}})
    (table.log / "_last_checkpoint").write_text('{"version":3,"size":3}')
    (table.path / "_change_data").mkdir()
    (table.path / "_change_data" / "cdc-00000-924d9ac7-21a9-4121-b067-a0a6517aa8ed.c000.snappy.parquet").write_bytes(
        b""
    )
    (table.path / "deletion_vector-0c6cbaaf-5e04-4c9d-8959-1088814f58ef.bin").write_bytes(b"")
    assert ids(table) == [1]
    with pytest.raises(VersionNotFoundError):
        Table.open(table.path, version=2)


def test_c005_c007_files_lie_anywhere_and_partition_values_come_from_the_log(table: HandMade) -> None:
    deep = table.data("p=wrong/x/y.parquet", {"id": [1]}, {"p": "right"})
    flat = table.data("z.parquet", {"id": [2]}, {"p": None})
    table.commit(0, PLAIN, metadata(field("id"), field("p", "string"), partition=["p"]), deep, flat)
    rows = Table.open(table.path).scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "p": "right"}, {"id": 2, "p": None}]


def test_c008_vectors_of_several_partitions_share_a_file_at_the_root(table: HandMade) -> None:
    from pyroaring import BitMap64

    from pyspark_delta.deletion_vectors.bitmap import serialize
    from pyspark_delta.deletion_vectors.z85 import encode

    identifier, spans = table.vectors(serialize(BitMap64([0])), serialize(BitMap64([1])))
    adds = [
        table.data("p=a/1.parquet", {"id": [1, 2]}, {"p": "a"}),
        table.data("p=b/2.parquet", {"id": [3, 4]}, {"p": "b"}),
    ]
    for action, (offset, size) in zip(adds, spans, strict=True):
        action["add"]["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": encode(bytes.fromhex(identifier.replace("-", ""))),
            "offset": offset,
            "sizeInBytes": size,
            "cardinality": 1,
        }
    table.commit(0, features("deletionVectors"), metadata(field("id"), field("p", "string"), partition=["p"]), *adds)
    assert ids(table) == [2, 3]


def test_c009_change_files_are_no_data(table: HandMade) -> None:
    data = table.data("1.parquet", {"id": [1]})
    change = table.data("_change_data/p=1/cdc-1.parquet", {"id": [9], "_change_type": ["delete"]})["add"]
    change.pop("modificationTime")
    table.commit(0, PLAIN, metadata(field("id")), data, {"cdc": {**change, "dataChange": False}})
    assert ids(table) == [1]


def test_c010_commit_names_have_20_digits(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"))
    (table.log / "1.json").write_text("garbage")
    (table.log / f"{1:019}.json").write_text("garbage")
    (table.log / f"{1:021}.json").write_text("garbage")
    assert Snapshot.load(str(table.path)).version == 0
    assert str(CommitName(1)) == "00000000000000000001.json"


def test_c011_one_action_stands_on_a_line(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"), add("b"))
    text = table.commit_file(0).read_text()
    table.commit_file(0).write_text(text.rstrip("\n"))  # the last line end may be missing
    assert paths(table) == ["a", "b"]
    table.commit_file(0).write_text(text.replace("\n", "\r\n\r\n"))
    assert paths(table) == ["a", "b"]
    table.commit_file(0).write_text(text[:-20])
    with pytest.raises(CorruptLogError, match=r"0{20}\.json"):
        paths(table)


@pytest.mark.parametrize("spaced", [False, True])
def test_c011_null_members_stand_for_no_action(table: HandMade, spaced: bool) -> None:
    """Writers that have a column for each kind of action write all of them, null but for one."""
    kinds = ("txn", "add", "remove", "metaData", "protocol", "commitInfo", "domainMetadata", "cdc")
    separators = (", ", ": ") if spaced else (",", ":")

    def commit(version: int, *actions: Json) -> None:
        lines = [json.dumps({**dict.fromkeys(kinds), **action}, separators=separators) for action in actions]
        table.commit_file(version).write_text("\n".join([*lines, json.dumps({"commitInfo": None}), ""]))

    commit(0, {"commitInfo": {"operation": "CREATE"}}, PLAIN, metadata(field("id")), add("a"), add("b"))
    commit(1, remove("a"), {"txn": {"appId": "one", "version": 7}})
    snapshot = Snapshot.load(str(table.path))
    assert paths(table) == ["b"]
    assert snapshot.transactions()["one"].version == 7
    assert [row["operation"] for row in Table.open(table.path).history()] == [None, "CREATE"]


def test_c001_c012_c015_each_version_is_the_one_before_with_one_commit_applied(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"))
    table.commit(1, remove("a"), add("b"))
    table.commit(2, add("c"))
    assert [paths(table, version) for version in range(3)] == [["a"], ["b"], ["b", "c"]]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_c017_a_hole_is_an_error(table: HandMade, missing: int) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"))
    for version in range(1, 4):
        table.commit(version, add(f"{version}"))
    table.commit_file(missing).unlink()
    with pytest.raises(CorruptLogError) as caught:
        Snapshot.load(str(table.path))
    assert f"{missing:020}.json" in caught.value.path


def test_c017_a_log_begins_later_where_a_checkpoint_covers_its_start(table: HandMade) -> None:
    table.checkpoint(4, PLAIN, metadata(field("id")), add("a"))
    table.commit(5, add("b"))
    assert paths(table) == ["a", "b"]
    assert paths(table, 4) == ["a"]
    with pytest.raises(VersionNotFoundError):
        paths(table, 3)
    table.commit(7, add("c"))
    with pytest.raises(CorruptLogError):
        paths(table)


def test_c018_names_that_are_not_known_are_passed_over(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"))
    for name in (
        f".{1:020}.json.tmp",
        f"{1:020}.json.tmp",
        f"{1:020}.json.crc.tmp",
        f"_{1:020}.json",
        f"{1:020}.checkpoint.parquet.tmp",
        f"{1:020}.{UUID}.tmp",
        "_commits",
        "notes.txt",
    ):
        (table.log / name).write_text("garbage")
    for folder in ("_staged_commits", "_sidecars", f"{2:020}.json"):
        (table.log / folder).mkdir()
        (table.log / folder / f"{1:020}.json").write_text("garbage")
    assert Snapshot.load(str(table.path)).version == 0
    assert paths(table) == ["a"]


@pytest.mark.parametrize("provider", ["csv", "orc", "json", "text"])
def test_c019_data_of_other_formats_are_refused_not_misread(table: HandMade, provider: str) -> None:
    action = metadata(field("id"), format={"provider": provider, "options": {}})
    table.commit(0, PLAIN, action, add("file"))
    with pytest.raises(UnsupportedTableError, match=provider) as caught:
        Table.open(table.path).scan().to_arrow()
    assert isinstance(caught.value, DeltaError)
