"""What can be read on which PySpark.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from tests.golden.catalogue import assert_content, golden_tables
from tests.spark.versions.frames import ids, load, plan

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import DataFileError, VersionNotFoundError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.reading import read_by_workers

pytestmark = pytest.mark.versions

GOLDEN = [
    *("dat/all_primitive_types", "dat/deletion_vectors", "dat/iceberg_compat_v1", "dat/multi_partitioned"),
    *("dat/multi_partitioned_2", "dat/nested_types", "dat/no_replay", "dat/timestamp_ntz", "dat/with_schema_change"),
    *("delta-golden/v2-checkpoint-parquet", "delta-kernel/column-mapping-id"),
]


@pytest.mark.parametrize("table_id", GOLDEN)
def test_golden_tables(delta_spark: SparkSession, golden_table: Callable[[str], Path], table_id: str) -> None:
    """Reading: tables of other engines, with partitions, nested columns, column mapping and checkpoints"""
    expected = next(table.expected for table in golden_tables() if table.id == table_id)
    assert_content(load(delta_spark, str(golden_table(table_id))).toArrow(), expected)


def test_scan(delta_spark: SparkSession, path: str) -> None:
    """Reading: Spark's own Parquet scan, which skips partitions and files"""
    frame = load(delta_spark, path).where("k = 1 AND id > 3")
    assert f"Scan parquet delta.{path}@v1" in plan(frame)
    assert ids(frame) == [4, 7]
    assert len(frame.inputFiles()) == 3
    assert load(delta_spark, path).selectExpr("max(_metadata.file_size) > 0").head() == (True,)


@pytest.mark.since("4.0")
def test_workers_read(delta_spark: SparkSession, path: str) -> None:
    """Reading: by workers with Arrow, where Spark's own scan cannot read the files or their store"""
    assert ids(delta_spark.read.format("deltapy").load(path)) == list(range(10))  # Spark may have found the source
    found = read_by_workers(delta_spark, Snapshot.load(path), {"where": "k = 1"})
    assert ids(found) == [1, 4, 7]


def test_time_travel(delta_spark: SparkSession, path: str) -> None:
    """Reading: time travel by version and by time"""
    delta_spark.range(10, 12).selectExpr("id", "0 AS k", "'x' AS s").write.format("delta").mode("append").save(path)
    first = Table.open(path, version=1).detail()["lastModified"].strftime("%Y-%m-%d %H:%M:%S.%f")
    assert ids(load(delta_spark, path, versionAsOf=1)) == list(range(10))
    assert ids(load(delta_spark, path, timestampAsOf=first)) == list(range(10))
    assert ids(delta_spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 1 WHERE k = 0")) == [0, 3, 6, 9]
    assert ids(delta_spark.table(f"delta.`{path}`")) == list(range(12))


def test_deletion_vectors(delta_spark: SparkSession, path: str) -> None:
    """Reading: deletion vectors, row ids and the hidden column `_metadata`"""
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'"
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({properties})")
    DeltaTable.forPath(delta_spark, path).delete("id IN (1, 5)")
    frame = load(delta_spark, path)
    assert ids(frame) == [0, 2, 3, 4, 6, 7, 8, 9]
    assert frame.where("id = 4").selectExpr("_metadata.row_index", "_metadata.row_id IS NOT NULL").head() == (1, True)


def test_column_mapping(delta_spark: SparkSession, path: str) -> None:
    """Changing tables: column mapping, with renamed and dropped columns"""
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    delta_spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN s TO text")
    assert load(delta_spark, path).where("text = '7'").select("id", "text").collect() == [Row(id=7, text="7")]
    delta_spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN text")
    assert load(delta_spark, path).columns == ["id", "k"]


def test_change_feed(delta_spark: SparkSession, path: str) -> None:
    """Reading: the change data feed, by options and by `table_changes`"""
    DeltaTable.forPath(delta_spark, path).update("id = 4", {"s": "'four'"})
    expected = [("update_postimage", "four"), ("update_preimage", "4")]
    by_option = load(delta_spark, path, readChangeFeed="true", startingVersion=2)
    by_function = delta_spark.sql(f"SELECT * FROM table_changes_by_path('{path}', 2)")
    for frame in (by_option, by_function):
        assert sorted(map(tuple, frame.select("_change_type", "s").collect())) == expected


def test_time_travel_by_path(delta_spark: SparkSession, path: str) -> None:
    """Reading: time travel in the name of a path, and names that qualify columns"""
    DeltaTable.forPath(delta_spark, path).delete("id > 4")
    assert delta_spark.sql(f"SELECT count(*) FROM delta.`{path}@v1`").head() == (10,)
    committed = Table.open(path).detail()["lastModified"].strftime("%Y-%m-%d %H:%M:%S.%f")
    for travel in ("", " VERSION AS OF 2", f" TIMESTAMP AS OF TIMESTAMP'{committed}' - INTERVAL 0 DAY"):
        frame = delta_spark.sql(f"SELECT `{path}`.id, delta.`{path}`.k FROM delta.`{path}`{travel}")
        assert ids(frame) == [0, 1, 2, 3, 4], travel
    with pytest.raises(VersionNotFoundError, match="Version 77"):
        delta_spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 77").collect()


def test_row_index_with_time_travel(delta_spark: SparkSession, path: str) -> None:
    """Reading: the hidden column `_metadata` with time travel, in frames of `spark.read`"""
    DeltaTable.forPath(delta_spark, path).delete("id > 2")
    frame = load(delta_spark, path, versionAsOf=1).where("k = 1 AND _metadata.row_index > 0")
    assert ids(frame) == [4, 7]


def test_missing_files(delta_spark: SparkSession, path: str) -> None:
    """Reading: a data file that is missing or damaged is named in the error"""
    place = f"{path} of versions"
    load(delta_spark, path).coalesce(1).write.format("delta").partitionBy("k").save(place)
    frame = load(delta_spark, place)
    file = next(Path(place).glob("k=1/*.parquet"))
    whole, checksum = file.read_bytes(), file.with_name(f".{file.name}.crc")
    checksum.unlink(missing_ok=True)
    for content in (b"no Parquet " * 100, b"", whole[:4] + bytes(60) + whole[64:]):
        file.write_bytes(content)
        with pytest.raises(DataFileError, match=f"{file.name}.*cannot be read as Parquet"):
            frame.collect()
    file.unlink()
    with pytest.raises(DataFileError, match=f"{file.name}.*does not exist"):
        frame.collect()


def test_columns_of_nested_types(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Reading: fields of structs, elements of arrays and values of maps, also in filters"""
    place = str(tmp_path / "nested")
    rows = delta_spark.range(4).selectExpr(
        "named_struct('a', id, 'b', array(id, id + 1)) AS s", "map('k', named_struct('v', id)) AS m"
    )
    rows.write.format("delta").save(place)
    found = load(delta_spark, place).where("s.a > 1 AND m['k'].v < 3").selectExpr("s.b[1] AS e", "m['k'].v AS v")
    assert found.collect() == [Row(e=3, v=2)]


def test_subqueries_and_joins(delta_spark: SparkSession, path: str) -> None:
    """Reading: joins, subqueries, views and cached frames"""
    name = f"delta.`{path}`"
    joined = delta_spark.sql(f"SELECT a.id FROM {name} a JOIN {name} b ON a.id = b.k WHERE a.id IN (SELECT 1L)")
    assert ids(joined) == [1, 1, 1]
    delta_spark.sql(f"CREATE OR REPLACE TEMP VIEW of_versions_view AS SELECT id FROM {name} WHERE k = 2")
    assert ids(delta_spark.table("of_versions_view")) == [2, 5, 8]
    cached = load(delta_spark, path).cache()
    try:
        assert (cached.count(), cached.count()) == (10, 10)
    finally:
        cached.unpersist()
        delta_spark.catalog.dropTempView("of_versions_view")


def test_widened_types(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Reading: columns whose types were widened"""
    place = str(tmp_path / "widened")
    delta_spark.range(3).selectExpr("CAST(id AS INT) AS id").write.format("delta").save(place)
    delta_spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    delta_spark.sql(f"ALTER TABLE delta.`{place}` ALTER COLUMN id TYPE BIGINT")
    delta_spark.range(2**40, 2**40 + 1).write.format("delta").mode("append").save(place)
    assert ids(load(delta_spark, place)) == [0, 1, 2, 2**40]
    DeltaTable.forPath(delta_spark, place).update("id = 2", {"id": "id + 1"})
    assert ids(load(delta_spark, place)) == [0, 1, 3, 2**40]
