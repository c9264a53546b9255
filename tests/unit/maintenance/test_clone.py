"""Shallow and deep clones without Spark: equal rows, what is declared, vacuum, interruption and refresh."""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from tests.managed import Warehouse
from tests.table_kinds import KINDS, changed

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.data.reader import read_plan
from pyspark_delta.data.row_group_rules import LargeRowGroups
from pyspark_delta.errors import (
    AppendOnlyTableError,
    CommitConflictError,
    InvalidOperationError,
    InvalidOptionError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    VersionNotFoundError,
)
from pyspark_delta.maintenance.clone.merging import plan_merging
from pyspark_delta.protocol.configuration import CLONE_OF
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, crash

pytestmark = pytest.mark.findings("F09")  # files of shallow clones are outside of the table

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
COLUMNS = tuple(field.name for field in FILE_FIELDS)


def content(table: Table) -> list[str]:
    return sorted(map(repr, Table.open(table.location).scan().to_arrow().to_pylist()))


def make(path: Path | str, **properties: str) -> Table:
    table = Table.create(path, "id BIGINT, p STRING", partition_by=["p"], properties=properties)
    table.append({"id": list(range(20)), "p": ["a b%"] * 10 + [None] * 10})
    return table


def stat(table: Table) -> dict[str, tuple[str | None, int | None, int | None]]:
    """Statistics, row id and commit version of each live file, by its name."""
    rows = table.refresh().snapshot.files(COLUMNS).to_pylist()
    return {
        row["path"].rpartition("/")[2]: (row["stats"], row["base_row_id"], row["default_row_commit_version"])
        for row in rows
    }


def taken_checkpoint(target: Path) -> list[str]:
    """The rows of the files of a checkpoint, which are deleted."""
    log = target / "_delta_log"
    rows = [repr(row) for path in log.rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    for path in [*log.rglob("*.checkpoint*"), *log.rglob("_sidecars/*"), *log.glob("_last_checkpoint")]:
        path.unlink()
    return sorted(rows)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Table]:
    """A table of each kind after all its changes, made once; tests only read it."""
    folder = tmp_path_factory.mktemp("sources")

    @cache
    def source(name: str) -> Table:
        *_, (_, table) = changed(name, folder / name)
        return table

    return source


@pytest.mark.parametrize("kind", ["shallow", "deep", "deep of shallow", "merged"])
@pytest.mark.parametrize("name", KINDS)
def test_a_clone_has_equal_rows_schema_and_protocol(
    tmp_path: Path, sources: Callable[[str], Table], name: str, kind: str
) -> None:
    source = sources(name)
    target = tmp_path / "clone"
    if kind == "deep of shallow":
        source.clone(tmp_path / "between")
        Table.open(tmp_path / "between").clone(target, shallow=False)
    else:
        source.clone(target, shallow=kind == "shallow", merge_files=kind == "merged")
    clone = Table.open(target)
    assert clone.version == 0
    written = taken_checkpoint(target)
    assert written
    clone.checkpoint()  # from the text of the commit
    assert written == taken_checkpoint(target)
    clear_cache(str(target))
    assert content(clone) == content(source)
    assert clone.protocol == source.protocol
    assert clone.schema == source.schema
    assert (clone.partition_columns, clone.snapshot.clustering_columns()) == (
        source.partition_columns,
        source.snapshot.clustering_columns(),
    )
    assert clone.metadata.id != source.metadata.id
    clone.append(source.scan().to_arrow().slice(0, 1).drop_columns(
        [field.name for field in source.schema if any("generat" in key or "identity" in key for key in field.metadata)]
    ))  # fmt: skip
    clone.delete("id % 2 = 1")
    assert len(content(clone)) < len(content(source)) + 1


def test_statistics_are_kept_and_row_ids_are_those_of_the_kind(tmp_path: Path) -> None:
    source = make(tmp_path / "t", **ROW_IDS)
    source.append({"id": [100], "p": ["z"]})
    source.checkpoint()
    before = stat(source)
    shallow, deep = tmp_path / "shallow", tmp_path / "deep"
    source.clone(shallow)
    source.clone(deep, shallow=False)
    found = stat(Table.open(shallow))
    assert {name: file[0] for name, file in found.items()} == {name: file[0] for name, file in before.items()}
    assert len({file[1] for file in found.values()} - {None}) == 3
    assert {file[2] for file in found.values()} == {0}
    kept = stat(Table.open(deep))
    assert {name: file[:2] for name, file in kept.items()} == {name: file[:2] for name, file in before.items()}
    assert {file[2] for file in kept.values()} == {0}  # C335: the version of the commit that holds the add
    stored = "delta.rowTracking.materializedRowIdColumnName"
    properties = [Table.open(path).metadata.configuration for path in (tmp_path / "t", shallow, deep)]
    assert properties[0][stored] == properties[2][stored] != properties[1][stored]
    Table.open(deep).append({"id": [101], "p": ["z"]})
    assert max(file[1] or 0 for file in stat(Table.open(deep)).values()) == 21


def test_row_ids_are_counted_from_footers_where_statistics_lack_them(tmp_path: Path) -> None:
    source = make(tmp_path / "t", **{"delta.dataSkippingNumIndexedCols": "0"}, **ROW_IDS)
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    log.with_suffix(".crc").unlink()
    source = Table.open(tmp_path / "t", version=1)
    source.clone(tmp_path / "clone")
    assert sorted(file[1] or 0 for file in stat(Table.open(tmp_path / "clone")).values()) == [0, 10]


def test_the_log_names_the_source_as_delta_spark_does(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    result = source.clone(tmp_path / "clone", properties={"user.x": "y", "delta.appendOnly": True}, commit_info="why")
    size, files = source.snapshot.size_in_bytes(), source.snapshot.num_files()
    assert result.as_row() == {
        "source_table_size": size,
        "source_num_of_files": files,
        "num_removed_files": 0,
        "num_copied_files": 0,
        "removed_files_size": 0,
        "copied_files_size": 0,
    }
    clone = Table.open(tmp_path / "clone")
    (commit,) = clone.history()
    assert commit["operation"] == "CLONE"
    assert commit["operationParameters"] == {"source": f"delta.`file:{tmp_path}/t`", "sourceVersion": 1}
    assert commit["userMetadata"] == "why"
    assert clone.metadata.configuration["user.x"] == "y"
    assert json.loads(clone.metadata.configuration[CLONE_OF]) == {
        "path": f"{tmp_path}/t",
        "id": source.metadata.id,
        "version": 1,
    }
    assert (tmp_path / "clone" / "_delta_log" / f"{0:020}.checkpoint.parquet").exists()
    with pytest.raises(AppendOnlyTableError):
        clone.delete()
    deep = source.clone(tmp_path / "deep", shallow=False)
    assert (deep.as_row()["num_copied_files"], deep.as_row()["copied_files_size"]) == (files, size)
    peer = PeerTable(str(tmp_path / "deep")).to_pyarrow_table()
    assert sorted(peer["id"].to_pylist()) == list(range(20))


def test_versions_and_times_are_cloned(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    source.delete("id > 2")
    at = source.snapshot.timestamp
    assert Table.open(source.clone(tmp_path / "a", version=1).location).count() == 20
    assert Table.open(source.clone(tmp_path / "b", timestamp=at).location).count() == 3
    assert Table.open(Table.open(tmp_path / "t", version=1).clone(tmp_path / "c").location).count() == 20
    with pytest.raises(InvalidOptionError, match="either a version or a timestamp"):
        source.clone(tmp_path / "d", version=1, timestamp=at)
    with pytest.raises(VersionNotFoundError):
        source.clone(tmp_path / "d", version=9)


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    for shallow in (True, False):
        plan = source.clone(tmp_path / "clone", shallow=shallow, plan=True)
        assert plan.facts()["files_added"] == 2
        assert plan.facts()["files_to_copy"] == (0 if shallow else 2)
        assert f"'{tmp_path}/clone'" in str(plan)
        assert "ClonePlan" in repr(plan)
        assert "ClonePlan" in plan._repr_html_()
    assert not (tmp_path / "clone").exists()


@pytest.mark.findings("D01", "F01")  # in the end, the clone is not protected
def test_a_vacuum_of_the_source_keeps_what_protected_clones_use(tmp_path: Path) -> None:
    source = make(tmp_path / "t", **VECTORS)
    source.delete("id % 5 = 1")
    source.clone(tmp_path / "clone")
    clone = Table.open(tmp_path / "clone")
    before = content(clone)
    source.overwrite({"id": [1], "p": ["b"]})
    short = {"retention_hours": 0.0, "enforce_retention_duration": False}
    everything = source.vacuum(mode="full", plan=True, **short).files["path"].to_pylist()  # type: ignore[call-overload]
    assert any(path.endswith(".bin") for path in everything)
    assert len(everything) == 3
    source.vacuum(mode="full", protect=[str(tmp_path / "clone")], **short)  # type: ignore[call-overload]
    assert content(clone) == before
    clone.vacuum(mode="full", **short)  # type: ignore[call-overload]
    assert content(clone) == before
    source.refresh().vacuum(mode="full", **short)  # type: ignore[call-overload]
    with pytest.raises(Exception, match="does not exist"):
        content(clone)


def other_rows(path: Path) -> None:
    Table.write(path, {"id": [1]})


def other_files(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("mine")


@pytest.mark.parametrize(
    ("prepare", "target", "replace", "error"),
    [
        (other_rows, "x", False, "replace=True"),
        (other_rows, "x", True, "is not a clone of"),
        (other_files, "x", False, "is not empty: it holds 'notes.txt'"),
        (lambda path: None, "t/inside", False, "lie within each other"),
        (lambda path: None, "t", True, "lie within each other"),
    ],
)
def test_other_tables_and_files_are_not_replaced(
    tmp_path: Path, prepare: Callable[[Path], object], target: str, replace: bool, error: str
) -> None:
    source = make(tmp_path / "t")
    prepare(tmp_path / "x")
    with pytest.raises((InvalidOperationError, TableAlreadyExistsError), match=error):
        source.clone(tmp_path / target, replace=replace)
    assert source.refresh().version == 1


def test_an_empty_table_is_replaced_and_keeps_its_id_and_name(tmp_path: Path) -> None:
    source = make(tmp_path / "t", **{"delta.columnMapping.mode": "name"})
    empty = Table.create(
        tmp_path / "x", "other INT", description="mine", properties={"delta.columnMapping.mode": "name"}
    )
    source.clone(tmp_path / "x", replace=True)
    clone = Table.open(tmp_path / "x")
    assert content(clone) == content(source)
    assert (clone.version, clone.metadata.id, clone.metadata.description) == (1, empty.metadata.id, "mine")


def test_the_column_mapping_mode_stays(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    with pytest.raises(InvalidOperationError, match="column mapping mode"):
        source.clone(tmp_path / "x", properties={"delta.columnMapping.mode": "name"})
    assert not (tmp_path / "x").exists()


def test_properties_must_suit_the_files(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    for name, value, error in (
        ("delta.constraints.small", "id < 5", "CHECK constraint"),
        ("delta.ofTheFuture", "1", "delta.ofTheFuture"),
        ("delta.enableIcebergCompatV2", "true", "ceberg"),
    ):
        with pytest.raises(InvalidOperationError, match=error):
            source.clone(tmp_path / "x", properties={name: value})
    source.clone(tmp_path / "x", properties=ROW_IDS)
    assert sorted(file[1] or 0 for file in stat(Table.open(tmp_path / "x")).values()) == [0, 10]


def test_unknown_properties_of_the_source_are_kept(tmp_path: Path) -> None:
    make(tmp_path / "t", **{"user.x": "y"})
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"user.x":"y"', '"user.x":"y","delta.ofTheFuture":"1"'))
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()
    source = Table.open(tmp_path / "t", version=1)
    source.clone(tmp_path / "x")
    assert Table.open(tmp_path / "x").metadata.configuration["delta.ofTheFuture"] == "1"


# --------------------------------------------------------------------------------------------------- deep clones
def test_a_second_run_commits_the_difference(tmp_path: Path) -> None:
    source = make(tmp_path / "t", **VECTORS)
    source.clone(tmp_path / "deep", shallow=False)
    deep = Table.open(tmp_path / "deep")
    source.delete("id = 3")
    source.append({"id": [100], "p": ["new"]})
    source.delete("p IS NULL")
    deep.append({"id": [7777], "p": ["stray"]})
    with pytest.raises(TableAlreadyExistsError):
        source.clone(tmp_path / "deep", shallow=False)
    plan = source.clone(tmp_path / "deep", shallow=False, replace=True, plan=True)
    # The file with the deletion vector is added again, with a vector that is copied; its rows are not.
    assert (plan.adds.num_rows, plan.removes.num_rows, plan.copies.num_rows) == (2, 3, 2)
    result = plan.execute()
    assert result.metrics["numRemovedFiles"] == 3
    assert content(deep) == content(source)
    again = source.clone(tmp_path / "deep", shallow=False, replace=True, plan=True)
    assert (again.adds.num_rows, again.removes.num_rows, again.copies.num_rows) == (0, 0, 0)


# ------------------------------------------------------------------------------------------------- merged files
def with_ids(table: Table) -> list[str]:
    plan = plan_scan(Table.open(table.location).snapshot, row_ids=True)
    return sorted(map(repr, read_plan(plan).read_all().drop_columns(["_row_commit_version"]).to_pylist()))


def small_files(path: Path, **properties: str) -> Table:
    """Six small files in two partitions, one of them empty, and a large one."""
    source = make(path, **VECTORS, **ROW_IDS, **{"delta.targetFileSize": "4kb"}, **properties)
    for start in (100, 200):
        source.append({"id": [start, start + 1, start + 2], "p": ["a b%", "a b%", None]})
    many = [1500, *(n * 2654435761 % (1 << 40) for n in range(1000, 3000))]
    source.append({"id": many, "p": ["a b%"] * len(many)})
    source.append({"id": [300], "p": ["a b%"]})
    source.delete("id IN (3, 101, 300, 1500) OR id = 12")
    return source.refresh()


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_small_files_are_merged_and_large_ones_copied(tmp_path: Path, mapping: str) -> None:
    source = small_files(tmp_path / "t", **{"delta.columnMapping.mode": mapping})
    before = with_ids(source)
    sizes = {row["path"]: row["size"] for row in source.files().to_pylist()}
    large = max(sizes, key=lambda path: sizes[path])
    plan = source.clone(tmp_path / "deep", shallow=False, merge_files=True, plan=True)
    facts = plan.facts()
    assert (facts["files_to_merge"], facts["bytes_to_merge"]) == (6, sum(sizes.values()) - sizes[large])
    assert facts["files_to_copy"] == 2  # with its vector
    assert (facts["files_added"], "6 files are merged to 2" in str(plan)) == (3, True)
    result = plan.execute()
    clone = Table.open(tmp_path / "deep")
    files = clone.files().to_pylist()
    assert [file["path"] for file in files if file["path"] in sizes] == [large]
    assert [file["deletion_vector"] is None for file in files if file["path"] != large] == [True, True]
    found = [path for path in (tmp_path / "deep").rglob("*.parquet") if "_delta_log" not in path.parts]
    assert len(found) == len(files) == 3
    assert (result.metrics["numCopiedFiles"], result.metrics["copiedFilesSize"]) == (
        3,
        sum(file["size"] for file in files),
    )
    assert with_ids(clone) == before
    assert {file[2] for file in stat(clone).values()} == {0}
    stored = [name[:7] for path in found for name in pq.read_schema(path).names if name.startswith("_")]
    assert stored == ["_row-id"] * 2  # and no commit versions, which are those of the source
    clone.append({"id": [7], "p": ["new"]})
    assert len({row.rpartition("_row_id")[2] for row in with_ids(clone)}) == len(before) + 1


def test_row_groups_are_copied_where_files_are_merged(tmp_path: Path) -> None:
    """With row ids that are not in the files yet, and vectors that move."""
    source = small_files(tmp_path / "t")
    before = with_ids(source)
    plan = source.clone(tmp_path / "deep", shallow=False, merge_files=True, plan=True)
    merging = plan_merging(source.snapshot, plan.target, plan.declaration.configuration, LargeRowGroups(1 << 60, 1))
    replace(plan, merging=merging).execute()
    files = [path for path in (tmp_path / "deep").rglob("*.c*.parquet") if path.parent.name.startswith("p=")]
    assert {pq.read_metadata(path).created_by.split()[0] for path in files} == {"pyspark-delta", "parquet-cpp-arrow"}
    assert with_ids(Table.open(tmp_path / "deep")) == before


def test_a_merged_clone_is_brought_up_to_date_by_copies(tmp_path: Path) -> None:
    source = small_files(tmp_path / "t")
    source.clone(tmp_path / "deep", shallow=False, merge_files=True)
    source.append({"id": [9000], "p": ["a b%"]})
    with pytest.raises(InvalidOperationError, match="is a clone already"):
        source.clone(tmp_path / "deep", shallow=False, merge_files=True, replace=True)
    source.clone(tmp_path / "deep", shallow=False, replace=True)
    assert with_ids(Table.open(tmp_path / "deep")) == with_ids(source)
    with pytest.raises(InvalidOptionError, match="Make a deep clone"):
        source.clone(tmp_path / "shallow", merge_files=True)


def test_merged_files_are_written_as_the_clone_asks(tmp_path: Path) -> None:
    source = small_files(tmp_path / "t")
    asked = {"delta.parquet.compression.codec": "snappy", "delta.enableRowTracking": "false"}
    source.clone(tmp_path / "deep", shallow=False, merge_files=True, properties=asked)
    (one, *_) = (tmp_path / "deep").rglob("*.c000.snappy.parquet")
    assert pq.read_schema(one).names == ["id"]
    assert content(Table.open(tmp_path / "deep")) == content(source)


@pytest.mark.parametrize("nth", [1, 2])
def test_no_merged_file_is_left_after_an_error(tmp_path: Path, nth: int) -> None:
    source = small_files(tmp_path / "t")
    stores: list[FaultyStore] = []
    fault = Fault(kind="open_output", nth=nth, path_part=".parquet")

    def faulty(inner: object) -> FaultyStore:
        stores.append(FaultyStore(inner, fault) if not stores else stores[0])  # type: ignore[arg-type]
        return stores[0]

    with intercepted(faulty), pytest.raises(StorageError):
        source.clone(tmp_path / "deep", shallow=False, merge_files=True)
    assert len(list((tmp_path / "deep").rglob("*.parquet"))) == 1  # the copy, for the next run
    assert not (tmp_path / "deep" / "_delta_log").exists()
    plan = source.clone(tmp_path / "deep", shallow=False, merge_files=True, plan=True)
    Table.create(tmp_path / "deep", "other INT")
    with pytest.raises(CommitConflictError):
        plan.execute()
    assert len(list((tmp_path / "deep").rglob("*.parquet"))) == 1


def test_a_shallow_clone_is_brought_up_to_date_or_made_deep(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    source.clone(tmp_path / "c")
    source.append({"id": [100], "p": ["new"]})
    assert source.clone(tmp_path / "c", replace=True).metrics["numRemovedFiles"] == 0
    assert content(Table.open(tmp_path / "c")) == content(source)
    source.clone(tmp_path / "c", shallow=False, replace=True)
    shutil.rmtree(tmp_path / "t")
    assert len(content(Table.open(tmp_path / "c"))) == 21


@pytest.mark.parametrize("merge", [False, True])
def test_a_deep_clone_that_is_killed_at_any_copy_is_continued(merge: bool) -> None:
    """At each storage call that makes the clone, and after each: no table, or a complete one."""
    source = make(f"memory://{uuid.uuid4().hex}/t", **VECTORS)
    source.delete("id = 3 OR id = 13")
    expected = content(source)
    for kind in ("open_output" if merge else "copy", "write_if_absent", "write"):
        for when in ("before", "after"):
            for nth in range(1, 50):
                target = f"memory://{source.location.split('/')[2]}/{uuid.uuid4().hex}"
                stores: list[FaultyStore] = []
                fault = Fault(kind=kind, nth=nth, when=when, path_part=target, raises=crash)  # type: ignore[arg-type]

                def faulty(inner: object, fault: Fault = fault, stores: list[FaultyStore] = stores) -> FaultyStore:
                    if not stores:
                        stores.append(FaultyStore(inner, fault))  # type: ignore[arg-type]
                    return stores[0]

                with intercepted(faulty), contextlib.suppress(SimulatedCrash):
                    source.clone(target, shallow=False, merge_files=merge)
                if not stores[0].struck:
                    break
                try:
                    assert content(Table.open(target)) == expected
                except TableNotFoundError:
                    source.clone(target, shallow=False, merge_files=merge)
                assert content(Table.open(target)) == expected
            assert nth > 1, (kind, when)


def test_only_missing_files_are_copied(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    plan = source.clone(tmp_path / "deep", shallow=False, plan=True)
    first = plan.copies.to_pylist()[0]
    store_for("/").copy(first["source"], first["target"])
    counts = Counts()
    with intercepted(lambda inner: CountingStore(inner, counts)):
        source.clone(tmp_path / "deep", shallow=False)
    assert counts.calls["copy"] == 1
    assert counts.calls["open_output"] <= 1  # the checkpoint
    assert content(Table.open(tmp_path / "deep")) == content(source)


@pytest.mark.findings("F01")  # a file of the source is deleted
def test_files_that_are_no_copies_are_refused_and_sizes_are_checked(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    first = source.clone(tmp_path / "deep", shallow=False, plan=True).copies.to_pylist()[0]
    Path(first["target"]).parent.mkdir(parents=True)
    Path(first["target"]).write_bytes(b"other")
    with pytest.raises(InvalidOperationError, match="is not a copy of it"):
        source.clone(tmp_path / "deep", shallow=False)
    Path(first["source"]).write_bytes(b"cut")
    with pytest.raises(StorageError, match="has 3 bytes, but the file should have"):
        source.clone(tmp_path / "other", shallow=False)
    assert not (tmp_path / "other" / "_delta_log").exists()
    Path(first["source"]).unlink()
    with pytest.raises(StorageError, match="does not exist"):
        source.clone(tmp_path / "other", shallow=False)


def test_copies_between_stores_are_streamed(tmp_path: Path) -> None:
    source = make(tmp_path / "t", **VECTORS)
    source.delete("id = 3")
    target = f"memory://{uuid.uuid4().hex}/deep"
    counts = Counts()
    with intercepted(lambda inner: CountingStore(inner, counts)):
        source.clone(target, shallow=False)
    assert counts.calls["copy"] == 0
    shutil.rmtree(tmp_path / "t")
    assert len(content(Table.open(target))) == 19


def test_names_of_any_kind_are_cloned(tmp_path: Path) -> None:
    for name in ("a b", "50%", "p=a%20b", "ü-中", "a+b&c", "x:y"):
        source = Table.write(tmp_path / name / "t", {"id": [1, 2], "p": ["x y%/", "ü:"]}, partition_by=["p"])
        for shallow in (True, False):
            source.clone(tmp_path / name / f"clone {shallow}", shallow=shallow)
            clone = Table.open(tmp_path / name / f"clone {shallow}")
            assert content(clone) == content(source)
            assert content(Table.open(clone.clone(tmp_path / name / f"deep {shallow}", shallow=False).location)) == (
                content(source)
            )


def test_a_concurrent_commit_is_a_conflict(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    plan = source.clone(tmp_path / "c", plan=True)
    source.clone(tmp_path / "c")
    with pytest.raises(CommitConflictError):
        plan.execute()
    refresh = source.clone(tmp_path / "c", replace=True, plan=True)
    Table.open(tmp_path / "c").append({"id": [5], "p": ["q"]})
    with pytest.raises(CommitConflictError):
        refresh.execute()


def test_tables_of_catalogs_are_cloned_and_clones_created_in_them(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    warehouse.append(1, 2)
    source = warehouse.open()
    source.clone(tmp_path / "by path")
    clone = Table.open(tmp_path / "by path")
    assert "catalogManaged" not in clone.protocol.listed_features
    assert [row["id"] for row in clone.scan(columns=["id"]).to_arrow().sort_by("id").to_pylist()] == [1, 2]
    result = clone.clone(warehouse.full("copy"), shallow=False)
    assert result.version == 0
    copy = warehouse.open("copy")
    assert "catalogManaged" in copy.protocol.listed_features
    assert copy.count() == 2
    copy.append({"id": [3]})
    clone.append({"id": [4]})
    clone.clone(warehouse.full("copy"), shallow=False, replace=True)
    assert sorted(warehouse.open("copy").scan().to_arrow()["id"].to_pylist()) == [1, 2, 4]


def test_a_clone_of_many_files_makes_no_object_for_each(tmp_path: Path) -> None:
    """The paths of a column are encoded together; only unusual ones are looked at one by one."""
    from pyspark_delta.storage.percent import absolute_path_column

    paths = pa.array([f"/data/t/p={number % 7}/part-{number}.parquet" for number in range(20_000)])
    expected = [f"file:{path}" for path in paths.to_pylist()]
    assert absolute_path_column(paths).to_pylist() == expected
