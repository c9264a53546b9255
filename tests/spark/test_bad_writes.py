"""Writes that cannot be: nothing of them is in the log, and the error says what was found and where."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import DeltaTable, Table
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.errors import (
    DeltaError,
    InvalidOperationError,
    InvalidOptionError,
    PermissionDeniedError,
    SchemaMismatchError,
    StorageError,
    translate,
)
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import AttemptPolicy

NO_WAIT = AttemptPolicy(sleep=lambda _: None)
STORED = "delta.rowTracking.materializedRowIdColumnName"


def files_below(path: Path) -> dict[str, bytes]:
    """Every file, hidden ones too, with its content."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


# ----------------------------------------------------------------------------------------------------------- stores
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted; run the test as root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """A file that leaves no room for others."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as sink:
        try:
            while True:
                sink.write(bytes(4096))
        except OSError:
            return filler


@pytest.mark.since("4.0")  # for the Python Data Source
def test_a_full_disk_leaves_the_table_as_it_was(
    delta_spark: SparkSession, plain_spark: SparkSession, small_disk: Path
) -> None:
    path = small_disk / "table"
    delta_spark.sql("select 1L id, 'a' s").write.format("delta").save(str(path))
    before = files_below(path)
    for spark, kept in ((delta_spark, before), (plain_spark, before)):
        much = spark.range(0, 60_000, 1, 1).selectExpr("id", "concat(uuid(), uuid()) s")
        with pytest.raises(StorageError, match="disk or quota is full") as raised, translate():
            much.write.format("delta").mode("append").save(str(path))
        assert str(path) in str(raised.value)
        assert files_below(path) == kept
    filler = fill(small_disk)
    snapshot = Snapshot.load(str(path))
    with pytest.raises(StorageError, match="disk or quota is full") as raised:
        commit_change(set_properties(snapshot.configuration, {"owner": "me"}), snapshot, policy=NO_WAIT)
    assert f"{path}/_delta_log/" in str(raised.value)
    assert files_below(path) == before
    filler.unlink()
    delta_spark.sql("select 2L id, 'b' s").write.format("delta").mode("append").save(str(path))
    assert Table.open(path).count() == 2


def test_a_read_only_disk_is_named(delta_spark: SparkSession, small_disk: Path) -> None:
    path = small_disk / "table"
    rows = delta_spark.sql("select 1L id")
    rows.write.format("delta").save(str(path))
    before = files_below(path)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(PermissionDeniedError, match="the file system is read-only") as raised:
        rows.write.format("delta").mode("append").save(str(path))
    assert str(path) in str(raised.value)
    with pytest.raises(PermissionDeniedError, match=f"{path}/_delta_log/.* is read-only"):
        DeltaTable.forPath(delta_spark, str(path)).alter().setProperties({"owner": "me"})
    assert files_below(path) == before


@pytest.mark.since("4.0")  # for the Python Data Source
def test_a_path_below_a_file_is_named(delta_spark: SparkSession, plain_spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    path = tmp_path / "file" / "table"
    for spark in (delta_spark, plain_spark):
        with pytest.raises(StorageError, match=f"{path}/.*a part of its path is a file"), translate():
            spark.range(1).write.format("delta").mode("append").save(str(path))
    assert files_below(tmp_path) == {"file": b"mine"}


# -------------------------------------------------------------------------------------------- schemas and properties
@pytest.fixture(scope="module")
def tracked(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that keeps its changes and tracks its rows."""
    path = tmp_path_factory.mktemp("bad-writes") / "table"
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    rows = delta_spark.sql("select id, 'x' s, named_struct('a', 1) st, id _row_id from range(0, 2, 1, 1)")
    rows.write.format("delta").options(**properties).save(str(path))
    return path


def merge(select: str) -> Callable[[SparkSession, Path], object]:
    """An append of rows with other columns."""

    def write(spark: SparkSession, path: Path) -> None:
        name = Table.open(path).metadata.configuration[STORED]
        rows = spark.sql(select.replace("STORED", f"`{name}`"))
        rows.write.format("delta").mode("append").option("mergeSchema", True).save(str(path))

    return write


def properties(**values: object) -> Callable[[SparkSession, Path], object]:
    """Properties by the last parts of their names."""
    named = {f"delta.{name.replace('_', '.')}": value for name, value in values.items()}
    return lambda spark, path: DeltaTable.forPath(spark, str(path)).alter().setProperties(named)


def add_column(name: str) -> Callable[[SparkSession, Path], object]:
    return lambda spark, path: DeltaTable.forPath(spark, str(path)).alter().addColumn(name, "bigint")


def read_ids(spark: SparkSession, path: Path) -> None:
    spark.read.format("delta").option("includeRowTracking", True).load(str(path)).collect()


@pytest.mark.parametrize(
    ("act", "error", "why"),
    [
        (merge("select 1L id, 'x' _change_type"), InvalidOperationError, "'_change_type' has a name that is reserved"),
        (add_column("_Commit_Version"), InvalidOperationError, "'_Commit_Version' has a name that is reserved"),
        (merge("select 1L id, 2L STORED"), InvalidOperationError, "used by row tracking"),
        (add_column("`a b`"), SchemaMismatchError, "'a b' holds ' '"),
        (merge("select 1L id, 2L ID"), SchemaMismatchError, "with the same name, ignoring case.*'id' and 'ID'"),
        (
            merge("select 1L id, named_struct('a', 1, 'A', 2) st"),
            SchemaMismatchError,
            "in st with the same name, ignoring case",
        ),
        (add_column("ID"), InvalidOperationError, "a column 'id' already exists"),
        (add_column("st.A"), InvalidOperationError, "'st.A' cannot be added: a column 'a' already exists"),
        (properties(checkpointInterval="often"), InvalidOptionError, "delta.checkpointInterval.*'often'"),
        (properties(checkpointInterval=0), InvalidOptionError, "delta.checkpointInterval.*0 is less than 1"),
        (properties(checkpontInterval=3), InvalidOptionError, "did you mean 'delta.checkpointInterval'"),
        (properties(appendOnly="maybe"), InvalidOptionError, "delta.appendOnly.*'maybe'"),
        (properties(feature_everything="supported"), DeltaError, "everything"),
        (properties(rowTracking_materializedRowIdColumnName="x"), InvalidOptionError, "maintained by writers"),
        (properties(columnMapping_mode="clever"), InvalidOptionError, "delta.columnMapping.mode.*'clever'"),
        (read_ids, InvalidOperationError, "has a column '_row_id'"),
    ],
)
def test_what_is_not_allowed_is_not_in_the_log(
    delta_spark: SparkSession,
    tracked: Path,
    act: Callable[[SparkSession, Path], object],
    error: type[DeltaError],
    why: str,
) -> None:
    before = files_below(tracked / "_delta_log")
    with pytest.raises(error, match=f"(?i){why}"):
        act(delta_spark, tracked)
    assert files_below(tracked / "_delta_log") == before


def test_a_new_table_that_is_not_allowed_is_not_there(delta_spark: SparkSession, tmp_path: Path) -> None:
    for select, options, why in (
        ("select 1 _change_type", {"delta.enableChangeDataFeed": "true"}, "_change_type"),
        ("select 1 id, 2 Id", {}, "with the same name, ignoring case"),
        ("select 1 id", {"delta.checkpointInterval": "often"}, "often"),
        ("select 1 id", {"delta.nothing": "known"}, "delta.nothing"),
    ):
        with pytest.raises(DeltaError, match=why):
            delta_spark.sql(select).write.format("delta").options(**options).save(str(tmp_path / "table"))
    assert files_below(tmp_path) == {}
    builder = DeltaTable.create(delta_spark).location(str(tmp_path / "table")).addColumn("id", "int")
    with pytest.raises(SchemaMismatchError, match="with the same name, ignoring case"):
        builder.addColumn("ID", "int").execute()
    assert files_below(tmp_path) == {}


def test_a_column_that_the_change_feed_needs_stands_in_its_way(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    delta_spark.sql("select 1 id, 2 _commit_timestamp").write.format("delta").save(str(path))
    with pytest.raises(InvalidOperationError, match="_commit_timestamp"):
        DeltaTable.forPath(delta_spark, str(path)).alter().setProperties({"delta.enableChangeDataFeed": True})
    assert Table.open(path).version == 0
