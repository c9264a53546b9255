"""Tables of a catalog by name, in Spark: what reading, writing and row changes offer works on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.managed import Warehouse
from tests.vending import vending

from pyspark_delta import DeltaTable
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.catalogs import connect_catalog
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    DataFileError,
    InvalidOperationError,
    InvalidOptionError,
    PathAccessError,
    TableAlreadyExistsError,
    translate,
)
from pyspark_delta.spark.frames import change_feed
from pyspark_delta.spark.frames import reading as read
from pyspark_delta.testing.catalog_faults import FaultyCatalog
from pyspark_delta.testing.faults import Fault

KEPT = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A catalog without tables."""
    made = Warehouse(tmp_path)
    yield made
    disconnect_catalog(made.name)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows, in order."""
    return sorted(tuple(row) for row in frame.collect())


def people(spark: SparkSession, *ids: int) -> DataFrame:
    """Rows with an id and a name."""
    return spark.createDataFrame([(i, f"n{i}") for i in ids], "id bigint, name string")


def test_a_path_beside_a_name_is_not_ignored(delta_spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    """The catalog chooses where a new table lies; a table that is there cannot be somewhere else."""
    name, path = warehouse.full("t"), str(tmp_path / "mine")
    for write in (
        lambda: people(delta_spark, 1).write.format("delta").option("path", path).saveAsTable(name),
        lambda: people(delta_spark, 1).write.saveAsTable(name, format="delta", PATH=path),
        lambda: people(delta_spark, 1).writeTo(name).option("path", path).create(),
        lambda: people(delta_spark, 1).writeTo(name).option("path", path).createOrReplace(),
    ):
        with pytest.raises(InvalidOptionError, match=r"chooses the location of new tables.*register") as caught:
            write()
        assert caught.value.error_class == "DELTA_TABLE_LOCATION_MISMATCH"
    assert warehouse.catalog.tables("s") == []
    assert not Path(path).exists()
    people(delta_spark, 1).write.format("delta").saveAsTable(name)
    for write in (
        lambda: people(delta_spark, 2).write.mode("append").option("path", path).saveAsTable(name),
        lambda: people(delta_spark, 2).write.option("path", path).insertInto(name),
        lambda: people(delta_spark, 2).writeTo(name).option("path", path).append(),
    ):
        with pytest.raises(InvalidOptionError, match=r"not at.*mine"):
            write()
    people(delta_spark, 2).write.mode("append").option("path", f"file://{warehouse.location()}/").saveAsTable(name)
    assert warehouse.ids() == [1, 2]


def check_writes_and_reads(spark: SparkSession, warehouse: Warehouse) -> None:
    """Every way to write by name, and to read."""
    name = warehouse.full("t")
    people(spark, 1, 2).write.format("delta").saveAsTable(name)
    people(spark, 3).write.mode("append").saveAsTable(name)
    with pytest.raises(TableAlreadyExistsError):
        people(spark, 4).write.format("delta").saveAsTable(name)
    people(spark, 4).write.insertInto(name)
    people(spark, 5).writeTo(name).append()
    people(spark, 1).writeTo(name).overwrite(sf.col("id") == 1)
    assert rows(spark.table(name).select("id")) == [(i,) for i in range(1, 6)]
    assert rows(spark.read.option("versionAsOf", 1).table(name).where("id > 1").select("id")) == [(2,), (3,)]
    table = DeltaTable.forName(spark, name)
    assert [row.version for row in table.history().collect()] == [4, 3, 2, 1, 0]
    assert table.detail().first()["location"] == warehouse.location()
    people(spark, 7).writeTo(name).createOrReplace()
    assert rows(spark.table(name)) == [(7, "n7")]
    assert "catalogManaged" in DeltaTable.forName(spark, name).detail().first()["tableFeatures"]
    assert warehouse.ids() == [7]


def check_row_changes(spark: SparkSession, warehouse: Warehouse) -> None:
    """Rows are changed, and their changes read."""
    name = warehouse.full("changing")
    builder = DeltaTable.create(spark).tableName(name).addColumn("id", "bigint").addColumn("name", "string")
    for key, value in KEPT.items():
        builder = builder.property(key, value)
    table = builder.execute()
    people(spark, *range(6)).write.mode("append").saveAsTable(name)
    table.delete("id = 0")
    table.update("id = 1", {"name": "'one'"})
    merge = table.alias("t").merge(people(spark, 2, 9).alias("s"), "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert rows(spark.table(name)) == [(1, "one"), (3, "n3"), (4, "n4"), (5, "n5"), (9, "n9")]
    changes = spark.read.option("readChangeFeed", "true").option("startingVersion", 2).table(name)
    assert rows(changes.select("id", "_change_type", "_commit_version")) == [
        (0, "delete", 2),
        (1, "update_postimage", 3),
        (1, "update_preimage", 3),
        (2, "delete", 4),
        (9, "insert", 4),
    ]
    with table.transaction() as transaction:
        transaction.setProperties({"note": "x" * 20_000})  # too large a commit to be given to the catalog
        transaction.append(people(spark, 10))
    table.alter().setProperties({"note": "short"})
    assert rows(table.toDF(version=5).where("id > 8").select("id")) == [(9,), (10,)]
    assert table.toDF().count() == 6


def check_names(spark: SparkSession, warehouse: Warehouse) -> None:
    """Names that are not there, and paths of tables that are."""
    missing = warehouse.full("missing")
    for attempt in (
        lambda: spark.table(missing),
        lambda: DeltaTable.forName(spark, missing),
        lambda: people(spark, 1).writeTo(missing).append(),
        lambda: people(spark, 1).write.insertInto(missing),
    ):
        with pytest.raises(CatalogNameNotFoundError, match="missing"):
            attempt()
    assert not DeltaTable.isDeltaTable(spark, missing)
    with pytest.raises(CatalogNameNotFoundError):
        people(spark, 1).write.saveAsTable(f"{warehouse.name}.no_schema.t")
    people(spark, 1).write.saveAsTable(warehouse.full("t"))
    assert DeltaTable.isDeltaTable(spark, warehouse.full("t"))
    path = warehouse.location()
    with pytest.raises(PathAccessError):
        spark.read.format("delta").load(path)
    with pytest.raises(PathAccessError):
        people(spark, 2).write.format("delta").mode("append").save(path)
    published = spark.read.format("delta").option("publishedOnly", "true").load(path)
    assert rows(published) == [(1, "n1")]
    with pytest.raises(InvalidOperationError, match="leave the location"):
        DeltaTable.create(spark).tableName(warehouse.full("u")).location(path).addColumn("id", "bigint").execute()
    warehouse.catalog.rename("s.t", "s.renamed")
    people(spark, 2).write.mode("append").saveAsTable(warehouse.full("renamed"))
    assert rows(spark.table(warehouse.full("renamed")).select("id")) == [(1,), (2,)]


def test_c480_writes_and_reads_by_name(delta_spark: SparkSession, warehouse: Warehouse) -> None:
    check_writes_and_reads(delta_spark, warehouse)


def test_row_changes_by_name(delta_spark: SparkSession, warehouse: Warehouse) -> None:
    check_row_changes(delta_spark, warehouse)


def test_c451_names_and_paths(delta_spark: SparkSession, warehouse: Warehouse) -> None:
    check_names(delta_spark, warehouse)


def test_c462_a_session_may_say_where_its_catalogs_are(delta_spark: SparkSession, warehouse: Warehouse) -> None:
    people(delta_spark, 1).write.saveAsTable(warehouse.full("t"))
    disconnect_catalog(warehouse.name)
    settings = {"": warehouse.url, ".storageRoot": warehouse.root}
    for key, value in settings.items():
        delta_spark.conf.set(f"spark.pyspark_delta.catalog.{warehouse.name}{key}", value)
    assert rows(delta_spark.table(warehouse.full("t"))) == [(1, "n1")]


def test_c471_a_statement_that_loses_runs_again_on_the_newer_version(
    delta_spark: SparkSession, warehouse: Warehouse
) -> None:
    name = warehouse.full("t")
    people(delta_spark, 1, 2, 3).write.saveAsTable(name)
    plan = DeltaTable.forName(delta_spark, name).delete("id = 1", plan=True)
    people(delta_spark, 4).write.mode("append").saveAsTable(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DeltaTable.forName(delta_spark, name).delete("id = 2")
    assert rows(delta_spark.table(name).select("id")) == [(1,), (3,), (4,)]
    assert plan is not None


def test_c462_a_name_is_asked_for_once(delta_spark: SparkSession, warehouse: Warehouse) -> None:
    name = warehouse.full("t")
    people(delta_spark, 1, 2).write.saveAsTable(name)
    counting = FaultyCatalog(warehouse.catalog.catalog, Fault(nth=10**9))
    warehouse.through(counting)  # type: ignore[arg-type]
    table = DeltaTable.forName(delta_spark, name)
    for ids in ([(1,), (2,)], [(1,), (2,), (3,)]):  # what is known already is asked for again
        for read_it in (lambda: delta_spark.read.table(name), lambda: delta_spark.table(name), table.toDF):
            before = counting.calls
            assert rows(read_it().select("id")) == ids
            assert counting.calls == before + 1
        people(delta_spark, 3).write.mode("append").saveAsTable(name)


def test_workers_read_with_the_credentials_that_a_catalog_gives(
    delta_spark: SparkSession, tmp_path: Path, s3_endpoint: str, s3_options: dict[str, str]
) -> None:
    with vending(tmp_path, s3_endpoint, s3_options) as vendor:
        connect_catalog(vendor.url, "main", storage_options=vendor.storage_options)
        people(delta_spark, 1, 2).write.option("delta.enableChangeDataFeed", "true").saveAsTable("main.s.t")
        DeltaTable.forName(delta_spark, "main.s.t").delete("id = 1")
        assert rows(delta_spark.table("main.s.t")) == [(2, "n2")]
        changes = delta_spark.read.option("readChangeFeed", "true").option("startingVersion", 1).table("main.s.t")
        assert rows(changes.select("id", "_change_type")) == [(1, "delete")]
        assert len(vendor.guard.seen) == 1
    disconnect_catalog("main")


def test_workers_read_what_spark_cannot(
    delta_spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = warehouse.full("t")
    people(delta_spark, 1, 2).write.option("delta.enableChangeDataFeed", "true").saveAsTable(name)
    people(delta_spark, 3).write.mode("append").saveAsTable(name)
    table = DeltaTable.forName(delta_spark, name)
    table.delete("id = 2")
    natively = rows(table.toDF()), rows(table.changes(0).drop("_commit_timestamp"))
    for reader in (read, change_feed):
        monkeypatch.setattr(reader, "reads_natively", lambda *_: False)
    monkeypatch.setattr(read, "_jvm_reads", lambda *_: False)  # as for a store that Hadoop has no file system for
    assert (rows(table.toDF()), rows(table.changes(0).drop("_commit_timestamp"))) == natively
    assert rows(table.toDF(where="id > 1").select("id")) == [(3,)]
    for file in Path(warehouse.location()).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(DataFileError, match=r"changes of version 1 .* does not exist"), translate():
        table.changes(1, ending_version=1).collect()


def test_by_name_over_connect(delta_connect: SparkSession, warehouse: Warehouse) -> None:
    check_writes_and_reads(delta_connect, warehouse)
    check_row_changes(delta_connect, warehouse)
