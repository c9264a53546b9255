"""Log files and checkpoints as a reader meets them (LOG, CKN, V2C, CMP)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.errors import CorruptLogError, DeltaWarning, TableNotFoundError, VersionNotFoundError
from pyspark_delta.log.listing import list_log
from pyspark_delta.log.names import (
    ClassicCheckpointName,
    CommitName,
    CompactionName,
    MultiPartCheckpointName,
    UuidCheckpointName,
    VersionChecksumName,
    parse_name,
)
from pyspark_delta.log.segment import load_segment
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import FileStatus, store_for
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
V2 = protocol(3, 7, ["v2Checkpoint"])


def live(builder: TableBuilder, version: int | None = None) -> list[str]:
    """The paths of the live files."""
    files = Snapshot.load(builder.location, version=version).files(("path",))
    return sorted(files["path"].to_pylist())


def dead(builder: TableBuilder) -> list[str]:
    """The paths of the tombstones."""
    return sorted(Snapshot.load(builder.location).tombstones(("path",))["path"].to_pylist())


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """A table of versions 0 to 4: file `n` is added at version n, and version 4 removes file 1."""
    table = TableBuilder(tmp_path / "table")
    table.commit(0, [protocol(), metadata(), add("0")])
    for version in (1, 2, 3):
        table.commit(version, [add(str(version))])
    table.commit(4, [add("4"), remove("1")])
    return table


STATE_3 = [protocol(), metadata(), add("0"), add("1"), add("2"), add("3")]


# ---------------------------------------------------------------------------------------------------------- LOG
def test_c001_c012_c015_versions_are_consecutive_and_each_commit_moves_the_state_on(builder: TableBuilder) -> None:
    expected = ["0", "1", "2", "3"]
    for version in range(4):
        assert live(builder, version) == expected[: version + 1]
    assert live(builder) == ["0", "2", "3", "4"]
    assert Snapshot.load(builder.location).version == 4


def test_c003_c004_kinds_of_log_files() -> None:
    assert parse_name("00000000000000000003.json") == CommitName(3)
    assert parse_name("00000000000000000003.checkpoint.parquet") == ClassicCheckpointName(3)
    assert parse_name("00000000000000000003.crc") == VersionChecksumName(3)
    assert parse_name("00000000000000000004.00000000000000000006.compacted.json") == CompactionName(4, 6)
    for other in ("_last_checkpoint", "_sidecars", "cdc-00000.c000.snappy.parquet", "part-00000.c000.snappy.parquet"):
        assert parse_name(other) is None


def test_c005_c007_c008_c009_files_lie_where_the_log_says_and_directories_mean_nothing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    schema = metadata({"id": "long", "day": "string"}, ["day"])
    table.commit(0, [protocol(), schema, add("day=monday/x.parquet", {"day": "tuesday"}), add("_odd/y.parquet")])
    found = Snapshot.load(table.location).files(("path", "partition_values"))
    values = dict(zip(found["path"].to_pylist(), found["partition_values"].to_pylist(), strict=True))
    assert values["day=monday/x.parquet"] == [("day", "tuesday")]
    assert "_odd/y.parquet" in values


def test_c010_names_of_commits_have_twenty_digits(builder: TableBuilder) -> None:
    (builder.log / "5.json").write_text('{"add":{}}\n')
    (builder.log / "000000000000000000005.json").write_text('{"add":{}}\n')
    assert Snapshot.load(builder.location).version == 4
    assert str(CommitName(5)) == "00000000000000000005.json"


def test_c011_a_half_written_commit_is_named(builder: TableBuilder) -> None:
    path = builder.commit(5, [add("5"), add("6")])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptLogError, match=r"00000000000000000005\.json.*line 2") as raised:
        Snapshot.load(builder.location)
    assert raised.value.path == str(path)


def test_c011_objects_that_spread_over_lines_are_read_all_the_same(builder: TableBuilder) -> None:
    (builder.log / str(CommitName(5))).write_text(json.dumps(add("5"), indent=2) + "\n" + json.dumps(remove("0")))
    assert live(builder) == ["2", "3", "4", "5"]


def test_c017_a_hole_after_the_checkpoint_is_an_error(builder: TableBuilder) -> None:
    builder.classic_checkpoint(1, STATE_3[:4])
    (builder.log / str(CommitName(3))).unlink()
    with pytest.raises(CorruptLogError, match="not contiguous: version 3 is missing") as raised:
        Snapshot.load(builder.location)
    assert raised.value.error_class == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_c017_a_hole_before_the_checkpoint_does_not_matter(builder: TableBuilder) -> None:
    builder.classic_checkpoint(3, STATE_3)
    (builder.log / str(CommitName(1))).unlink()
    assert live(builder) == ["0", "2", "3", "4"]
    with pytest.raises(CorruptLogError, match="version 1 is missing"):
        live(builder, 2)


def test_c017_a_log_without_its_start_needs_a_checkpoint(builder: TableBuilder) -> None:
    (builder.log / str(CommitName(0))).unlink()
    with pytest.raises(CorruptLogError, match="begins at version 1") as raised:
        Snapshot.load(builder.location)
    assert raised.value.error_class == "DELTA_TRUNCATED_TRANSACTION_LOG"
    builder.classic_checkpoint(3, STATE_3)
    assert live(builder) == ["0", "2", "3", "4"]
    with pytest.raises(VersionNotFoundError, match="available versions are 3 to 4"):
        live(builder, 2)


def test_c018_unknown_names_are_passed_over(builder: TableBuilder) -> None:
    for name in ("_commits", "_staged_commits", "_sidecars"):
        (builder.log / name).mkdir()
    for name in (
        ".00000000000000000005.json.tmp",
        "00000000000000000005.json.tmp",
        "00000000000000000005.checkpoint.x.json",
        "00000000000000000007.crc",
        "00000000000000000005.checkpoint.0000000003.0000000002.parquet",
        f"00000000000000000005.{UUID}.json",
        "notes.txt",
    ):
        (builder.log / name).write_text("nonsense")
    assert live(builder) == ["0", "2", "3", "4"]


def test_c019_the_provider_is_part_of_the_metadata(builder: TableBuilder) -> None:
    assert Snapshot.load(builder.location).metadata.format_provider == "parquet"


def test_there_is_no_table_without_a_commit(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="no Delta table"):
        Snapshot.load(str(tmp_path))
    with pytest.raises(TableNotFoundError):
        Snapshot.load(str(tmp_path / "absent"))


def test_a_version_that_does_not_exist_is_told_with_the_range(builder: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError, match=r"Version 9 .* available versions are 0 to 4"):
        live(builder, 9)


def test_a_catalog_gives_unpublished_commits_and_the_newest_version(builder: TableBuilder, tmp_path: Path) -> None:
    staged = TableBuilder(tmp_path / "elsewhere").commit(5, [add("5")])
    name = builder.log / "_staged_commits" / f"{5:020d}.{UUID}.json"
    name.parent.mkdir()
    shutil.copy(staged, name)
    tail = TailFiles(5, (FileStatus(str(name), name.stat().st_size, 1),))
    assert Snapshot.load(builder.location).version == 4
    snapshot = Snapshot.load(builder.location, tail=tail)
    assert snapshot.version == 5
    assert "5" in snapshot.files(("path",))["path"].to_pylist()
    assert Snapshot.load(builder.location, tail=TailFiles(3)).version == 3
    with pytest.raises(VersionNotFoundError):
        Snapshot.load(builder.location, version=4, tail=TailFiles(3))
    assert Snapshot.load(builder.location).update(tail=tail).version == 5


# ---------------------------------------------------------------------------------------------------------- CKN
def test_c020_c023_c025_the_newest_checkpoint_is_used(builder: TableBuilder) -> None:
    builder.classic_checkpoint(1, STATE_3[:4])
    builder.classic_checkpoint(3, STATE_3)
    segment = load_segment(store_for(builder.location), builder.location)
    assert segment.checkpoint_version == 3
    assert [c.version for c in segment.commits] == [4]
    assert live(builder) == ["0", "2", "3", "4"]


def test_c022_a_checkpoint_holds_tombstones_too(builder: TableBuilder) -> None:
    builder.classic_checkpoint(4, [protocol(), metadata(), add("0"), add("2"), add("3"), add("4"), remove("1")])
    for version in range(5):
        (builder.log / str(CommitName(version))).unlink()
    assert live(builder) == ["0", "2", "3", "4"]
    assert dead(builder) == ["1"]


def test_c024_time_travel_uses_a_checkpoint_not_after_the_version(builder: TableBuilder) -> None:
    builder.classic_checkpoint(1, STATE_3[:4])
    builder.classic_checkpoint(3, STATE_3)
    builder.hint({"version": 3, "size": 6})
    segment = load_segment(store_for(builder.location), builder.location, 2)
    assert segment.checkpoint_version == 1
    assert live(builder, 2) == ["0", "1", "2"]


def test_c027_c028_c029_c042_names_of_checkpoints() -> None:
    assert parse_name("00000000000000000010.checkpoint.parquet") == ClassicCheckpointName(10)
    for part in (1, 2, 3):
        name = f"00000000000000000010.checkpoint.000000000{part}.0000000003.parquet"
        assert parse_name(name) == MultiPartCheckpointName(10, part, 3)
        assert str(MultiPartCheckpointName(10, part, 3)) == name
    for form in ("json", "parquet"):
        name = f"00000000000000000010.checkpoint.{UUID}.{form}"
        assert parse_name(name) == UuidCheckpointName(10, UUID, form)  # type: ignore[arg-type]
        assert str(parse_name(name)) == name


def test_c030_c043_a_checkpoint_with_a_part_missing_is_ignored(builder: TableBuilder) -> None:
    parts = builder.multi_part_checkpoint(3, STATE_3, 3)
    store = store_for(builder.location)
    assert load_segment(store, builder.location).checkpoint_version == 3
    assert live(builder) == ["0", "2", "3", "4"]
    parts[1].unlink()
    assert load_segment(store, builder.location).checkpoint_version is None
    assert live(builder) == ["0", "2", "3", "4"]
    for version in range(4):
        (builder.log / str(CommitName(version))).unlink()
    with pytest.raises(CorruptLogError):
        live(builder)


def test_c035_c036_several_checkpoints_of_a_version(builder: TableBuilder) -> None:
    builder.classic_checkpoint(3, STATE_3)
    builder.v2_checkpoint(3, STATE_3, sidecars=2)
    builder.multi_part_checkpoint(3, STATE_3, 2)
    assert len(list_log(store_for(builder.location), builder.location).checkpoints()) == 3
    assert live(builder) == ["0", "2", "3", "4"]


def _valid(builder: TableBuilder, kind: str) -> None:
    if kind == "classic":
        builder.classic_checkpoint(3, STATE_3)
    elif kind == "multi-part":
        builder.multi_part_checkpoint(3, STATE_3, 2)
    else:
        form, sidecars = kind.split()
        builder.v2_checkpoint(3, [V2, *STATE_3[1:]], form=form, sidecars=int(sidecars))


@pytest.mark.parametrize(
    "kind", ["classic", "multi-part", "json 0", "json 2", "parquet 0", "parquet 2", "classic 0", "classic 2"]
)
def test_c037_c038_c065_c069_every_kind_of_checkpoint(builder: TableBuilder, kind: str) -> None:
    _valid(builder, kind)
    for version in range(4):
        (builder.log / str(CommitName(version))).unlink()
    assert live(builder) == ["0", "2", "3", "4"]
    assert dead(builder) == ["1"]
    assert live(builder, 3) == ["0", "1", "2", "3"]


def test_c039_c076_a_classic_name_may_hide_sidecars(builder: TableBuilder) -> None:
    builder.v2_checkpoint(3, [V2, *STATE_3[1:]], form="classic", sidecars=1)
    assert live(builder) == ["0", "2", "3", "4"]
    assert Snapshot.load(builder.location).protocol.reader_features == {"v2Checkpoint"}


def test_an_unreadable_checkpoint_is_worked_around(builder: TableBuilder) -> None:
    path = builder.classic_checkpoint(3, STATE_3)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.warns(DeltaWarning, match="checkpoint.parquet"):
        assert live(builder) == ["0", "2", "3", "4"]
    (builder.log / str(CommitName(0))).unlink()
    with pytest.raises(CorruptLogError, match=r"00000000000000000003\.checkpoint\.parquet"):
        live(builder)


def test_an_unreadable_checkpoint_gives_way_to_an_older_one(builder: TableBuilder) -> None:
    builder.classic_checkpoint(1, STATE_3[:4])
    builder.classic_checkpoint(3, STATE_3).write_bytes(b"PAR1 nonsense PAR1")
    (builder.log / str(CommitName(0))).unlink()
    with pytest.warns(DeltaWarning):
        assert live(builder) == ["0", "2", "3", "4"]


# ---------------------------------------------------------------------------------------------------------- V2C
def test_c064_v2_checkpoints_are_a_feature_of_readers_and_writers(builder: TableBuilder) -> None:
    builder.commit(5, [V2])
    builder.v2_checkpoint(5, [V2, metadata(), add("0")], sidecars=1)
    assert Snapshot.load(builder.location).protocol.writer_features == {"v2Checkpoint"}


def test_c070_c071_c072_sidecars_are_found_by_name_or_uri(builder: TableBuilder) -> None:
    name = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
    rows = [add("0"), add("1"), add("2"), add("3")]
    builder.sidecar(name.replace("-95", " 95"), rows)
    path = f"file://{builder.log}/_sidecars/{name.replace('-95', '%2095')}"
    sidecar = {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 2, "tags": None}}
    top = [{"checkpointMetadata": {"version": 3}}, V2, metadata(), sidecar]
    text = "".join(json.dumps(line) + "\n" for line in top)
    (builder.log / str(UuidCheckpointName(3, UUID, "json"))).write_text(text)
    assert live(builder) == ["0", "2", "3", "4"]


def test_c072_a_missing_sidecar_is_named(builder: TableBuilder) -> None:
    builder.v2_checkpoint(3, [V2, *STATE_3[1:]], sidecars=2)
    sidecar = next((builder.log / "_sidecars").iterdir())
    sidecar.unlink()
    with pytest.raises(CorruptLogError, match=sidecar.name) as raised:
        live(builder)
    assert raised.value.error_class == "DELTA_MISSING_PART_FILES"


def test_c073_c218_v2_actions_in_commits_are_ignored(builder: TableBuilder) -> None:
    sidecar = {"sidecar": {"path": "x.parquet", "sizeInBytes": 1, "modificationTime": 2}}
    builder.commit(5, [sidecar, {"checkpointMetadata": {"version": 5}}, add("5")])
    assert live(builder) == ["0", "2", "3", "4", "5"]


def test_c074_c077_c079_the_example_with_sidecars(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    transactions = [
        {"txn": {"appId": "3ba13872-2d47-4e17-86a0-21afd2a22395", "version": 364475}},
        {"txn": {"appId": "3ae45b72-24e1-865a-a211-34987ae02f2a", "version": 4389}},
    ]
    table.v2_checkpoint(364475, [V2, metadata(), *transactions, add("a"), add("b")], sidecars=2)
    snapshot = Snapshot.load(table.location)
    assert snapshot.version == 364475
    assert {t.app_id[:8]: t.version for t in snapshot.transactions().values()} == {"3ba13872": 364475, "3ae45b72": 4389}
    assert sorted(snapshot.files(("path",))["path"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_c078_the_example_without_sidecars(tmp_path: Path, form: str) -> None:
    table = TableBuilder(tmp_path)
    days = metadata({"id": "long", "date": "date"}, ["date"])
    adds = [add(f"date=2017-12-{d}/x.parquet", {"date": f"2017-12-{d}"}) for d in ("10", "09")]
    table.v2_checkpoint(364475, [V2, days, *adds, remove("date=2017-12-08/x.parquet")], form=form)
    snapshot = Snapshot.load(table.location)
    assert snapshot.num_files() == 2
    assert snapshot.tombstones(("path",))["path"].to_pylist() == ["date=2017-12-08/x.parquet"]


# ---------------------------------------------------------------------------------------------------------- CMP
COMPACTED = [
    [add("f2"), remove("f1")],
    [add("f3"), add("f4"), {"txn": {"appId": "3ae45b72", "version": 4389}}],
    [remove("f3"), {"txn": {"appId": "3ae45b72", "version": 4390}}],
]


def compacted(tmp_path: Path) -> TableBuilder:
    """The example: commits 4 to 6 with their compaction."""
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata(), add("f1")])
    for version in (1, 2, 3):
        table.commit(version, [])
    for version, actions in enumerate(COMPACTED, 4):
        table.commit(version, actions)
    table.compaction(4, 6, [add("f2"), add("f4"), remove("f1"), remove("f3"), COMPACTED[2][1]])
    return table


def test_c096_c098_c100_a_compaction_stands_in_for_its_commits(tmp_path: Path) -> None:
    table = compacted(tmp_path)
    for version in (4, 5, 6):  # so that reading them would be noticed
        table.commit(version, [add("wrong")])
    table.commit(7, [add("f5")])
    segment = load_segment(store_for(table.location), table.location)
    assert [f.file.path.rsplit("/")[-1][:41] for f in segment.replay_files()][-2:] == [
        "00000000000000000004.00000000000000000006",
        "00000000000000000007.json",
    ]
    assert live(table) == ["f2", "f4", "f5"]
    assert dead(table) == ["f1", "f3"]
    assert Snapshot.load(table.location).transactions()["3ae45b72"].version == 4390


def test_c098_a_compaction_beyond_the_version_is_not_used(tmp_path: Path) -> None:
    assert live(compacted(tmp_path), 5) == ["f2", "f3", "f4"]


@pytest.mark.parametrize("spelled", ["f3", "f%33", "./f3"])
def test_c099_a_compaction_that_is_no_reconciliation_is_not_used(tmp_path: Path, spelled: str) -> None:
    table = compacted(tmp_path)
    table.compaction(4, 6, [*COMPACTED[0], *COMPACTED[1][:2], remove(spelled)])
    assert live(table) == ["f2", "f4"]


def test_c103_history_reads_commits_and_never_compactions(tmp_path: Path) -> None:
    from pyspark_delta.log.history import commit_history

    table = compacted(tmp_path)
    assert [row["version"] for row in commit_history(Snapshot.load(table.location))] == [6, 5, 4, 3, 2, 1, 0]


def test_deletion_vectors_are_part_of_the_key_in_every_kind_of_file(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    features = protocol(3, 7, ["deletionVectors", "v2Checkpoint"])
    old, new = deletion_vector("old"), deletion_vector("new")
    table.v2_checkpoint(1, [features, metadata(), add("x", deletionVector=old), add("y")], sidecars=1)
    table.commit(2, [remove("x", deletionVector=old), add("x", deletionVector=new)])
    found = Snapshot.load(table.location).files(("path", "deletion_vector"))
    vectors = {r["path"]: r["deletion_vector"] for r in found.to_pylist()}
    assert vectors["y"] is None
    assert vectors["x"]["path_or_inline_dv"] == "new"
    assert found.schema.field("deletion_vector").type.field("offset").type == pa.int32()
