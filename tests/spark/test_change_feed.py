"""The change data feed through Spark: every door gives the rows of Table.changes, in a few scans of Parquet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.hand_made import HandMade, Json, features, field, metadata, remove
from tests.inline_vectors import vector
from tests.interop.content import content
from tests.managed import Warehouse

from pyspark_delta.errors import DataFileError, DeltaError, VersionNotFoundError, translate
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.frames import reading
from pyspark_delta.table import Table

OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
PROTOCOL = features("changeDataFeed", "deletionVectors", "columnMapping", reader=["deletionVectors", "columnMapping"])
VERSIONS = 24  # so many that not each could have a scan of its own


def mapped(name: str, physical: str, number: int, data_type: str = "long") -> Json:
    return field(name, data_type, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical})


def declared(*fields: Json, mode: str = "name", **extra: Any) -> Json:
    configuration = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": mode}
    return metadata(*fields, configuration=configuration, **extra)


def write(made: HandMade, name: str, partition: str | None, *, ids: bool = False, **columns: Any) -> Json:
    """A data file of physical columns, with field ids if asked for; its add action."""
    table = pa.table(columns)
    if ids:
        numbered = [f.with_metadata({"PARQUET:field_id": f.name[-1]}) if f.name[0] == "c" else f for f in table.schema]
        table = table.cast(pa.schema(numbered))
    return made.data(name, table, {"c2": partition})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inserts, whole deletes, deletion vectors and change files in turn; partitioned, mapped, with new columns."""
    made = HandMade(tmp_path_factory.mktemp("mixed") / "table")
    columns = [mapped("id", "c1", 1), mapped("p", "c2", 2, "date")]
    made.commit(0, PROTOCOL, declared(*columns, partition=["p"]))
    files: list[Json] = []
    for version in range(1, VERSIONS):
        day = None if version % 3 else f"2024-01-{version:02}"
        match version % 4:
            case 1:
                file = write(made, f"{version} x.parquet", day, c1=[version, -version, 0])["add"]
                files.append({**file, "path": f"{version}%20x.parquet"})
                made.commit(version, {"add": files[-1]})
            case 2:
                made.commit(version, remove(**files[-1]), {"add": {**files[-1], **vector(0)}})
            case 3:
                kinds = ["update_preimage", "update_postimage"]
                change = write(made, f"_change_data/c2={day}/{version}.parquet", day, c1=[5, 6], _change_type=kinds)
                made.commit(version, {"cdc": {**change["add"], "dataChange": False}})
            case _ if version == 12:
                columns = [mapped("key", "c1", 1), mapped("p", "c2", 2, "date"), mapped("mo.re", "c3", 3, "string")]
                made.commit(version, declared(*columns, partition=["p"]))
            case _:
                gone = files.pop()
                made.commit(version, remove(**{**gone, **vector(0)}))
    return made.path


def read(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("delta").options(readChangeFeed="true", **options).load(str(path))


def ours(path: Path, *args: Any, **kwargs: Any) -> list[str]:
    found = content(Table.open(path).changes(*args, **kwargs).to_arrow())
    assert found
    return found


def test_an_enabled_session_reads_any_range_in_four_scans(delta_spark: SparkSession, mixed: Path) -> None:
    frame = read(delta_spark, mixed, startingVersion=0)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan parquet") == 4
    assert "Python" not in plan
    assert content(frame.toArrow()) == ours(mixed, 0)
    short = read(delta_spark, mixed, startingVersion=9, endingVersion=11)
    assert content(short.toArrow()) == ours(mixed, 9, ending_version=11)  # before the columns changed


def test_ranges_of_one_table_are_not_taken_for_one_another(delta_spark: SparkSession, mixed: Path) -> None:
    """Spark takes rows that it has cached for any plan that is equal to theirs."""
    cached = [read(delta_spark, mixed, startingVersion=v, endingVersion=v).cache() for v in (1, 2)]
    try:
        assert [frame.count() for frame in cached] == [3, 1]
        for version in (5, 6):  # which added a file as 1 did, and marked a row of it as 2 did
            frame = read(delta_spark, mixed, startingVersion=version, endingVersion=version)
            assert content(frame.toArrow()) == ours(mixed, version, ending_version=version)
    finally:
        for frame in cached:
            frame.unpersist()


@pytest.mark.since("4.0")  # for the counts of files in plans
@pytest.mark.parametrize(("commits", "readings"), [(1, 1), (3, 1), (15, 1), (16, 2)])
def test_rows_that_many_commits_marked_are_read_at_once(
    delta_spark: SparkSession, tmp_path: Path, commits: int, readings: int
) -> None:
    """Rows of all commits, in words of their own and in words of others; some come back and go again."""
    made, rows = HandMade(tmp_path / "table"), 1000
    made.commit(0, PROTOCOL, declared(mapped("id", "c1", 1), mapped("p", "c2", 2, "date"), partition=["p"]))
    adds = [write(made, f"{name}.parquet", None, c1=list(range(rows)))["add"] for name in "ab"]
    made.commit(1, *({"add": add} for add in adds))
    marked: list[int] = []
    for number in range(commits):
        marked += [number * 3, 960 + number, 100 + (number * 419) % 800]
        after = {**adds[0], **vector(*marked)}
        made.commit(2 + number, remove(**adds[0]), {"add": after})
        adds[0] = after
    frame = read(delta_spark, made.path, startingVersion=2)
    assert content(frame.toArrow()) == ours(made.path, 2)
    assert scanned(frame) == [readings]
    restored = {name: value for name, value in adds[0].items() if name != "deletionVector"}
    made.commit(2 + commits, remove(**adds[0]), {"add": restored})
    made.commit(3 + commits, remove(**restored), {"add": {**restored, **vector(*marked[:4], rows - 1)}})
    made.commit(4 + commits, remove(**adds[1]), {"add": {**adds[1], **vector(*range(rows))}})
    for condition in ("true", "_change_type = 'delete' and _commit_version > 3", "id > 500 or p is not null"):
        again = read(delta_spark, made.path, startingVersion=0).where(condition)
        assert content(again.toArrow()) == ours(made.path, 0, where=condition)
    assert {f.nullable for f in frame.schema} == {True}


def scanned(frame: DataFrame) -> list[int]:
    """How many files each scan of a plan reads, one as often as it is read."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    return [leaves.apply(index).selectedPartitions().totalNumberOfFiles() for index in range(leaves.size())]


def test_a_session_that_takes_no_file_index_joins_the_constants(
    delta_spark: SparkSession, mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "unavailable", lambda _: "another Spark")
    frame = read(delta_spark, mixed, startingVersion=0)
    assert "Join" in frame._jdf.queryExecution().executedPlan().toString()
    assert content(frame.toArrow()) == ours(mixed, 0)


@pytest.mark.since("4.0")  # for the Python Data Source
def test_columns_and_conditions_may_name_the_columns_of_the_feed(
    delta_spark: SparkSession, plain_spark: SparkSession, mixed: Path
) -> None:
    where, names = "_change_type = 'delete' and key > 2 and `mo.re` is null", ["_commit_version", "key", "mo.re"]
    options = {"startingVersion": 0, "columns": "_commit_version,key,`mo.re`", "where": where}
    expected = ours(mixed, 0, columns=names, where=where)
    for spark in (delta_spark, plain_spark):
        frame = read(spark, mixed, **options)
        assert frame.columns == names
        assert content(frame.toArrow()) == expected
        for condition in ("_commit_version > 8 and p is not null", "_change_type = 'delete'"):
            pushed = read(spark, mixed, startingVersion=0).where(condition)
            assert content(pushed.toArrow()) == ours(mixed, 0, where=condition)


def test_the_table_object_has_its_changes(delta_spark: SparkSession, mixed: Path) -> None:
    table = DeltaTable.forPath(delta_spark, str(mixed))
    assert content(table.changes(3, where="key > 0").toArrow()) == ours(mixed, 3, where="key > 0")
    frame = table.changes(starting_version=3, ending_version=7, columns=["p", "_commit_timestamp"])
    assert frame.columns == ["p", "_commit_timestamp"]
    assert frame.count() == Table.open(mixed).changes(3, ending_version=7).to_arrow().num_rows


def test_spark_connect_reads_the_feed(delta_connect: SparkSession, mixed: Path) -> None:
    assert content(read(delta_connect, mixed, startingVersion=0).toArrow()) == ours(mixed, 0)
    changes = DeltaTable.forPath(delta_connect, str(mixed)).changes(9, ending_version=13, where="key is not null")
    assert content(changes.toArrow()) == ours(mixed, 9, ending_version=13, where="key is not null")


@pytest.fixture
def by_id(tmp_path: Path) -> Path:
    """A table that is mapped by id, which Spark's public API reads only when the session says so; a hidden file too."""
    made = HandMade(tmp_path / "table")
    made.commit(
        0, PROTOCOL, declared(mapped("id", "c1", 1), mapped("p", "c2", 2, "string"), mode="id", partition=["p"])
    )
    made.commit(1, write(made, "_hidden.parquet", "x", ids=True, c1=[1]))
    change = write(made, "_change_data/2.parquet", "y", ids=True, c1=[1], _change_type=["delete"])
    made.commit(2, {"cdc": change["add"]})
    return made.path


def test_an_enabled_session_reads_by_field_ids_and_hidden_files(delta_spark: SparkSession, by_id: Path) -> None:
    frame = read(delta_spark, by_id, startingVersion=0)
    assert content(frame.toArrow()) == ours(by_id, 0)
    assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()


def test_what_spark_cannot_read_itself_is_read_by_workers(delta_connect: SparkSession, by_id: Path) -> None:
    assert content(read(delta_connect, by_id, startingVersion=0).toArrow()) == ours(by_id, 0)
    for name in ("enabled", "ignoreMissing"):
        delta_connect.conf.set(f"spark.sql.parquet.fieldId.read.{name}", "true")
    try:
        natively = DeltaTable.forPath(delta_connect, str(by_id)).changes(2)
        assert content(natively.toArrow()) == ours(by_id, 2)
    finally:
        for name in ("enabled", "ignoreMissing"):
            delta_connect.conf.unset(f"spark.sql.parquet.fieldId.read.{name}")


def test_c421_workers_know_the_time_zone_of_the_session(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = HandMade(tmp_path / "table")
    made.commit(0, PROTOCOL, declared(mapped("id", "c1", 1), mapped("p", "c2", 2, "timestamp"), partition=["p"]))
    made.commit(1, write(made, "a.parquet", "2024-01-01 12:00:00", c1=[1]))
    here = delta_spark.newSession()
    here.conf.set("spark.sql.session.timeZone", "+05:00")
    by_path = DeltaTable.forPath(here, str(made.path))
    warehouse = Warehouse(tmp_path)
    warehouse.catalog.register("s.t", made.path)
    named = DeltaTable.forName(here, warehouse.full("t"))
    for native, table in ((True, by_path), (False, by_path), (False, named)):
        if not native:
            monkeypatch.setattr(reading, "_jvm_reads", lambda *_: False)  # as for a store that Hadoop does not know
        for frame in (
            table.changes(1, where="p = '2024-01-01 12:00:00'"),
            table.toDF(where="p < '2024-01-01 12:30:00'"),
        ):
            assert frame.selectExpr("unix_seconds(p) p").collect() == [(1_704_092_400,)]  # 07:00 UTC
            plan = frame._jdf.queryExecution().executedPlan().toString()
            assert ("FileScan parquet" in plan) == native


@pytest.fixture
def small(tmp_path: Path) -> HandMade:
    """Version 1 inserts a row, version 2 removes its file; committed at noon, one o'clock and two o'clock UTC."""
    made = HandMade(tmp_path / "table")
    made.commit(0, PROTOCOL, metadata(field("id"), configuration={"delta.enableChangeDataFeed": "true"}))
    made.commit(1, made.data("a.parquet", {"id": [1]}))
    made.commit(2, remove("a.parquet"))
    for version in range(3):
        at = 1_704_110_400 + 3600 * version  # 2024-01-01 12:00
        os.utime(made.commit_file(version), (at, at))
    return made


def kinds(frame: DataFrame) -> list[tuple[int, str]]:
    return sorted((row._commit_version, row._change_type) for row in frame.collect())


@pytest.mark.since("4.0")  # for the Python Data Source
def test_times_are_those_of_the_session(delta_spark: SparkSession, plain_spark: SparkSession, small: HandMade) -> None:
    here = delta_spark.newSession()
    here.conf.set("spark.sql.session.timeZone", "+01:00")
    changes = DeltaTable.forPath(here, str(small.path)).changes
    assert kinds(changes(starting_timestamp="2024-01-01 14:00", ending_timestamp="2024-01-01 14:59")) == [(1, "insert")]
    options = {
        "startingTimestamp": "2024-01-01 14:00:00",
        "endingTimestamp": "2024-01-01 14:59:59",
        "timeZone": "+01:00",
    }
    for spark in (delta_spark, plain_spark):
        assert kinds(read(spark, small.path, **options)) == [(1, "insert")]


@pytest.mark.since("4.0")  # for the Python Data Source
def test_a_range_past_the_end_is_empty_only_when_that_is_asked_for(
    delta_spark: SparkSession, plain_spark: SparkSession, small: HandMade
) -> None:
    for spark in (delta_spark, plain_spark):
        with pytest.raises(VersionNotFoundError, match="0 to 2"), translate():
            read(spark, small.path, startingVersion=3)
        option = {"changeDataFeed.timestampOutOfRange.enabled": "true"}
        empty = read(spark, small.path, startingVersion=3, **option)
        assert (empty.columns[-3:], empty.collect()) == (["_change_type", "_commit_version", "_commit_timestamp"], [])
    session = delta_spark.newSession()
    session.conf.set(OUT_OF_RANGE, "true")
    assert DeltaTable.forPath(session, str(small.path)).changes(3).collect() == []


@pytest.mark.since("4.0")  # for the Python Data Source
def test_a_vacuumed_file_is_named_with_its_version(
    delta_spark: SparkSession, plain_spark: SparkSession, small: HandMade
) -> None:
    (small.path / "a.parquet").unlink()
    for spark in (delta_spark, plain_spark):
        with pytest.raises(DataFileError, match=r"version 2 .*a\.parquet' does not exist"), translate():
            read(spark, small.path, startingVersion=2).collect()


def test_a_vacuumed_file_is_named_on_spark_connect(delta_connect: SparkSession, small: HandMade) -> None:
    (small.path / "a.parquet").unlink()
    with pytest.raises(DataFileError, match=r"versions 1, 2 .*a\.parquet' does not exist"):
        read(delta_connect, small.path, startingVersion=0)


def test_a_schema_that_was_given_must_be_that_of_the_feed(delta_spark: SparkSession, small: HandMade) -> None:
    reader = delta_spark.read.format("delta").options(readChangeFeed="true", startingVersion=0)
    columns = "id long, _change_type string, _commit_version long, _commit_timestamp timestamp"
    assert reader.schema(columns).load(str(small.path)).count() == 2
    with pytest.raises(DeltaError, match="is not the schema"):
        reader.schema("id long").load(str(small.path))
