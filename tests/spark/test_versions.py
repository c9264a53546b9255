"""What works on which PySpark: each area once. CI runs these tests on 4.1, 4.0 and 3.5 too.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.golden.catalogue import assert_content, golden_tables
from tests.spark.streams import run, writer

from pyspark_delta import DeltaTable, IdentityGenerator, Table
from pyspark_delta.errors import (
    DataFileError,
    MissingDependencyError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.spark.frames.exchange_by_id import repartitioned_by_id

pytestmark = pytest.mark.versions

GOLDEN = [
    *("dat/all_primitive_types", "dat/deletion_vectors", "dat/iceberg_compat_v1", "dat/multi_partitioned"),
    *("dat/multi_partitioned_2", "dat/nested_types", "dat/no_replay", "dat/timestamp_ntz", "dat/with_schema_change"),
    *("delta-golden/v2-checkpoint-parquet", "delta-kernel/column-mapping-id"),
]


@pytest.fixture
def path(delta_spark: SparkSession, tmp_path: Path) -> str:
    """A table with the rows 0 to 9, partitioned by `k`, at version 0, and the row 10 from version 1 on."""
    path = str(tmp_path / "t")
    rows = delta_spark.range(10).selectExpr("id", "CAST(id % 3 AS INT) AS k", "CAST(id AS STRING) AS s")
    rows.coalesce(1).write.format("delta").partitionBy("k").option("delta.enableChangeDataFeed", "true").save(path)
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    return path


def load(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("delta").options(**options).load(path)  # type: ignore[arg-type]


def deletion_vectors(path: str) -> int:
    vectors = Snapshot.load(path).files(("deletion_vector",))["deletion_vector"]
    return len(vectors) - vectors.null_count


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


# ---------------------------------------------------------------------------------------------------------------- reads
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
    for travel in ("", " VERSION AS OF 2", " TIMESTAMP AS OF '2030-01-01' - INTERVAL 0 DAY"):
        if "TIMESTAMP" in travel:
            committed = Table.open(path).detail()["lastModified"].strftime("%Y-%m-%d %H:%M:%S.%f")
            travel = travel.replace("2030-01-01", committed).replace("AS OF ", "AS OF TIMESTAMP")
        frame = delta_spark.sql(f"SELECT `{path}`.id, delta.`{path}`.k FROM delta.`{path}`{travel}")
        assert ids(frame) == [0, 1, 2, 3, 4], travel
    with pytest.raises(VersionNotFoundError, match="Version 77"):
        delta_spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 77").collect()


def test_row_index_with_time_travel(delta_spark: SparkSession, path: str) -> None:
    """Reading: the hidden column `_metadata` with time travel, in frames of `spark.read`"""
    DeltaTable.forPath(delta_spark, path).delete("id > 2")
    frame = load(delta_spark, path, versionAsOf=1).where("k = 1 AND _metadata.row_index > 0")
    assert ids(frame) == [4, 7]


@pytest.mark.since("4.2")
def test_metadata_in_sql(delta_spark: SparkSession, path: str) -> None:
    """SQL: the hidden column `_metadata` in queries, which Spark finds under the name of a table from 4.2 on"""
    found = delta_spark.sql(f"SELECT id FROM delta.`{path}` VERSION AS OF 1 WHERE k = 1 AND _metadata.row_index = 1")
    assert ids(found) == [4]


def test_missing_files(delta_spark: SparkSession, path: str) -> None:
    """Reading: a data file that is missing is named in the error"""
    frame = load(delta_spark, path)
    file = next(Path(path).glob("k=1/*.parquet"))
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


# --------------------------------------------------------------------------------------------------------------- writes
def test_save_modes(delta_spark: SparkSession, path: str) -> None:
    """Writing: `df.write` with its modes, `replaceWhere` and schema evolution"""
    more = delta_spark.range(20, 22).selectExpr("id", "1 AS k", "'x' AS s", "true AS new")
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    assert load(delta_spark, path).where("new").count() == 2
    one = delta_spark.sql("SELECT 30L AS id, 1 AS k, 'y' AS s, false AS new")
    one.write.format("delta").mode("overwrite").option("replaceWhere", "k = 1").save(path)
    assert ids(load(delta_spark, path)) == [0, 2, 3, 5, 6, 8, 9, 30]
    with pytest.raises(PySparkException, match="already"):
        one.write.format("delta").save(path)


def test_named_tables(delta_spark: SparkSession) -> None:
    """Writing: `saveAsTable`, `insertInto` and `writeTo` with tables of the session catalog"""
    rows = delta_spark.range(3).withColumn("k", F.lit(1))
    try:
        rows.writeTo("of_versions").using("delta").create()
        delta_spark.sql("DROP TABLE of_versions")
        rows.write.format("delta").saveAsTable("of_versions")
        rows.write.insertInto("of_versions")
        rows.writeTo("of_versions").append()
        assert ids(delta_spark.table("of_versions")) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert delta_spark.catalog.tableExists("of_versions")
        clustered: Any = rows.write.mode("overwrite")  # PySpark has `clusterBy` from 4.0 on
        clustered.clusterBy("id").option("overwriteSchema", "true").saveAsTable("of_versions")
        assert DeltaTable.forName(delta_spark, "of_versions").detail().head().clusteringColumns == ["id"]
    finally:
        delta_spark.sql("DROP TABLE IF EXISTS of_versions")


def test_dynamic_partition_overwrite(delta_spark: SparkSession, path: str) -> None:
    """Writing: overwriting only the partitions that have new rows, by options and by `overwritePartitions`"""
    one = delta_spark.sql("SELECT 20L AS id, 1 AS k, 'x' AS s")
    one.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert ids(load(delta_spark, path)) == [0, 2, 3, 5, 6, 8, 9, 20]
    one.withColumn("k", F.lit(2)).writeTo(f"delta.`{path}`").overwritePartitions()
    assert ids(load(delta_spark, path)) == [0, 3, 6, 9, 20, 20]


def test_replace_where_is_checked(delta_spark: SparkSession, path: str) -> None:
    """Writing: rows that do not match `replaceWhere` are refused"""
    one = delta_spark.sql("SELECT 20L AS id, 2 AS k, 'x' AS s")
    with pytest.raises(PySparkException, match="k = 1"):
        one.write.format("delta").mode("overwrite").option("replaceWhere", "k = 1").save(path)
    assert Table.open(path).version == 1


def test_schemas_are_enforced(delta_spark: SparkSession, path: str) -> None:
    """Writing: columns that the table does not have are refused without `mergeSchema`"""
    with pytest.raises(PySparkException, match="more"):
        delta_spark.sql("SELECT 1L AS id, true AS more").write.format("delta").mode("append").save(path)
    assert Table.open(path).version == 1


def test_idempotent_writes(delta_spark: SparkSession, path: str) -> None:
    """Writing: a repeated write with `txnAppId` and `txnVersion` adds nothing"""
    one = delta_spark.sql("SELECT 20L AS id, 2 AS k, 'x' AS s").write.format("delta").mode("append")
    for _ in range(2):
        one.options(txnAppId="app", txnVersion="1").save(path)
    assert ids(load(delta_spark, path)) == [*range(10), 20]


@pytest.mark.until("4.0")
def test_clustering_of_other_formats_is_refused(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Without `clusterBy` of PySpark, only writes of Delta know the columns: no other write loses them."""
    frame, refused = delta_spark.range(1), r"has no clusterBy.*found clusterBy\('id'\).*Leave clusterBy out"
    clustered: Any = frame.write.format("parquet")
    stream: Any = delta_spark.readStream.format("rate").load().withColumnRenamed("value", "id").writeStream
    for write in (
        lambda: clustered.clusterBy("id").save(str(tmp_path / "p")),
        lambda: clustered.clusterBy("id").saveAsTable("of_versions"),
        lambda: clustered.clusterBy("id").insertInto("of_versions"),
        lambda: clustered.clusterBy("id").parquet(str(tmp_path / "p")),
        lambda: frame.writeTo("of_versions").using("delta").clusterBy("id").create(),
        lambda: stream.clusterBy("id").format("parquet").start(str(tmp_path / "p")),
        lambda: stream.clusterBy("id").format("parquet").toTable("of_versions"),
    ):
        with pytest.raises(MissingDependencyError, match=refused):
            write()
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("kind", ["generatedAlwaysAs", "generatedByDefaultAs"])
def test_identity_of_builders(delta_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Writing: identity columns of `DeltaTable.create`, with numbers that the table gives"""
    builder: Any = DeltaTable.create(delta_spark).location(str(tmp_path / "t"))
    table = builder.addColumn("i", "bigint", **{kind: IdentityGenerator(10, 5)}).addColumn("id", "bigint").execute()
    for _ in range(2):
        delta_spark.range(1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    numbers = [row.i for row in table.toDF().collect()]
    assert len(set(numbers)) == 2
    assert all(number >= 10 and number % 5 == 0 for number in numbers)


def test_generated_columns(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Writing: generated columns, computed where left out and checked where given"""
    place = str(tmp_path / "t")
    builder = DeltaTable.create(delta_spark).location(place).addColumn("id", "bigint")
    builder.addColumn("double", "bigint", generatedAlwaysAs="id * 2").execute()
    delta_spark.range(3).write.format("delta").mode("append").save(place)
    assert sorted(row.double for row in load(delta_spark, place).collect()) == [0, 2, 4]
    with pytest.raises(PySparkException, match="double"):
        delta_spark.sql("SELECT 1L AS id, 3L AS double").write.format("delta").mode("append").save(place)


def test_constraints(delta_spark: SparkSession, path: str) -> None:
    """Writing: rows that violate CHECK or NOT NULL are refused by writes and by row changes"""
    table = DeltaTable.forPath(delta_spark, path)
    table.alter().addConstraint("small", "id < 100")
    rows = delta_spark.sql("SELECT 200L AS id, 1 AS k, 'x' AS s")
    with pytest.raises(PySparkException, match="small"):
        rows.write.format("delta").mode("append").save(path)
    with pytest.raises(PySparkException, match="small"):
        table.update("id = 1", {"id": "id + 100"})
    table.alter().setNotNull("s")
    with pytest.raises(PySparkException, match=r"NOT NULL|null"):
        table.update("id = 1", {"s": "NULL"})
    assert ids(table.toDF()) == list(range(10))


def test_column_defaults(delta_spark: SparkSession, path: str) -> None:
    """SQL: DEFAULT values of columns, in INSERT and MERGE"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    sql(f"ALTER TABLE {name} ALTER COLUMN s SET DEFAULT 'none'")
    sql(f"INSERT INTO {name} (id, k) VALUES (20, 1)")
    sql(f"INSERT INTO {name} VALUES (21, 1, DEFAULT)")
    sql(f"MERGE INTO {name} t USING (SELECT 22L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (id)")
    assert [row.s for row in sql(f"SELECT s FROM {name} WHERE id > 19").collect()] == ["none"] * 3


def test_every_type(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Writing: columns of every type of Spark 3.5"""
    place = str(tmp_path / "types")
    columns = [
        *("true AS b", "1Y AS i1", "2S AS i2", "3 AS i4", "4L AS i8", "1.5F AS f", "2.5D AS d", "1.23BD AS dec"),
        *("'text' AS s", "X'0102' AS bin", "DATE'2024-02-29' AS day", "TIMESTAMP'2024-02-29 12:00:00' AS ts"),
        *("TIMESTAMP_NTZ'2024-02-29 12:00:00' AS ntz", "array(1, null) AS a", "map('k', struct(1 AS x)) AS m"),
    ]
    frame = delta_spark.range(1).selectExpr(*columns)
    frame.write.format("delta").save(place)
    assert load(delta_spark, place).collect() == frame.collect()


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


def test_time_zones(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: timestamps in sessions of another time zone"""
    place, before = str(tmp_path / "times"), delta_spark.conf.get("spark.sql.session.timeZone")
    rows = "(1, TIMESTAMP'2024-07-01 12:00:00', TIMESTAMP'2024-07-01 06:00:00')"
    try:
        for zone, hour in (("Europe/Berlin", 10), ("+05:00", 7)):
            delta_spark.conf.set("spark.sql.session.timeZone", zone)
            frame = delta_spark.sql(f"SELECT * FROM VALUES {rows} AS (id, at, p)")
            frame.write.format("delta").mode("overwrite").partitionBy("p").save(place)
            DeltaTable.forPath(delta_spark, place).update("p = '2024-07-01 06:00:00'", {"at": "at + INTERVAL 1 HOUR"})
            assert load(delta_spark, place).selectExpr("unix_seconds(at) AS s").head() == (
                1_719_792_000 + (hour + 1) * 3600,
            )
    finally:
        delta_spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_widened_types_in_merges(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: a merge with schema evolution that adds columns and widens types"""
    place = str(tmp_path / "t")
    delta_spark.sql("SELECT 1 AS id, 'a' AS s").write.format("delta").save(place)
    table = DeltaTable.forPath(delta_spark, place)
    table.alter().setProperties({"delta.enableTypeWidening": "true"})
    source = delta_spark.sql("SELECT * FROM VALUES (1L, 'b', true), (1099511627776L, 'c', false) AS (id, s, new)")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert sorted(map(tuple, table.toDF().collect())) == [(1, "b", True), (2**40, "c", False)]


@pytest.mark.until("4.0")
def test_streams_of_widened_types_are_refused(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Without a reader that widens types, a stream of such a table does not start."""
    table = Table.create(tmp_path / "widened", "id INT", properties={"delta.enableTypeWidening": "true"})
    table.append({"id": [1]})
    delta_spark.sql(f"ALTER TABLE delta.`{tmp_path}/widened` ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(MissingDependencyError, match=r"types of columns were widened.*install PySpark 4.2"):
        delta_spark.readStream.format("delta").load(f"{tmp_path}/widened")


@pytest.mark.since("4.0")
def test_variants(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Writing and reading: columns of type VARIANT, which Spark has from 4.0 on"""
    place = str(tmp_path / "variants")
    delta_spark.sql("""SELECT parse_json('{"a": [1, 2]}') AS v""").write.format("delta").save(place)
    assert load(delta_spark, place).selectExpr("variant_get(v, '$.a[1]', 'int')").head() == (2,)


@pytest.mark.until("4.0")
def test_variants_are_refused(delta_spark: SparkSession, golden_table: Callable[[str], Path], tmp_path: Path) -> None:
    """Without the type VARIANT, tables with such a column are neither read nor written, and stay as they are."""
    refused = r"column 'v' has the type VARIANT, which Spark has from 4.0 on, found .* install PySpark 4.0"
    golden = golden_table("delta-kernel/spark-variant-stable-feature-checkpoint")
    with pytest.raises(UnsupportedTableError, match=refused):
        load(delta_spark, str(golden)).collect()
    with pytest.raises(UnsupportedTableError, match=refused):
        delta_spark.sql(f"SELECT * FROM delta.`{golden}`").collect()

    place = str(tmp_path / "variants")
    Table.create(place, "id BIGINT, v VARIANT")
    with pytest.raises(UnsupportedTableError, match=refused):
        delta_spark.range(1).write.format("delta").mode("append").save(place)
    with pytest.raises(PySparkException, match="VARIANT"):
        delta_spark.sql(f"INSERT INTO delta.`{place}` (id) VALUES (1)")
    assert Table.open(place).version == 0


# ---------------------------------------------------------------------------------------------------------- row changes
def test_row_changes(delta_spark: SparkSession, path: str) -> None:
    """Row changes: `DeltaTable` deletes, updates and merges"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete(F.col("id") < 2)
    table.update(F.expr("id = 2"), {"s": F.lit("two"), "k": "9"})
    source = delta_spark.sql("SELECT id, 'merged' AS s FROM range(8, 12)")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate("t.id = 9", {"s": "s.s"}).whenMatchedDelete()
    merge.whenNotMatchedInsert(values={"id": "s.id", "k": F.lit(0), "s": F.col("s.s")}).execute()
    found = {row.id: (row.k, row.s) for row in table.toDF().collect()}
    assert sorted(found) == [2, 3, 4, 5, 6, 7, 9, 10, 11]
    assert (found[2], found[9], found[11]) == ((9, "two"), (0, "merged"), (0, "merged"))


def test_row_changes_as_spark_jobs(delta_spark: SparkSession, path: str) -> None:
    """Row changes: as Spark jobs, with functions that only Spark computes"""
    table = DeltaTable.forPath(delta_spark, path)
    lower = F.udf(lambda text: f"<{text}>")
    table.update(F.col("k") == 1, {"s": lower("s")})
    source = delta_spark.range(5, 15).withColumn("key", F.hash("id"))
    merge = table.alias("t").merge(source.alias("s"), "hash(t.id) = s.key AND t.id > 6")
    merge.whenMatchedUpdate(set={"s": "sha2(CAST(s.id AS STRING), 256)"}).whenNotMatchedInsert(
        values={"id": "s.id", "k": "7", "s": "uuid()"}
    ).execute()
    found = {(row.id, row.k): row.s for row in table.toDF().collect()}
    assert (found[1, 1], len(found[7, 1]), len(found)) == ("<1>", 64, 17)


def test_merges_with_schema_evolution(delta_spark: SparkSession, path: str) -> None:
    """Row changes: a merge with schema evolution through `DeltaTable`"""
    table = DeltaTable.forPath(delta_spark, path)
    source = delta_spark.sql("SELECT 4L AS id, 1 AS k, 'new' AS s, 7 AS more")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().execute()
    assert table.toDF().where("more = 7").select("id", "s").collect() == [Row(id=4, s="new")]


@pytest.mark.since("4.0")
def test_merge_statements_with_schema_evolution(delta_spark: SparkSession, path: str) -> None:
    """SQL: MERGE WITH SCHEMA EVOLUTION"""
    delta_spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{path}` t USING (SELECT 50L AS id, 'x' AS other) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert load(delta_spark, path).where("other = 'x'").select("id", "k").collect() == [Row(id=50, k=None)]


def test_ambiguous_merges(delta_spark: SparkSession, path: str) -> None:
    """Row changes: a merge in which several source rows match one row is refused"""
    table = DeltaTable.forPath(delta_spark, path)
    source = delta_spark.sql("SELECT * FROM VALUES (1L, 'a'), (1L, 'b') AS (id, s)")
    with pytest.raises(PySparkException, match="Several rows of the source match one row"):
        table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"s": "s.s"}).execute()
    assert table.history(1).head().version == 1


def test_row_changes_with_deletion_vectors(delta_spark: SparkSession, path: str) -> None:
    """Row changes: deletion vectors in updates and merges, and the purge that removes them"""
    table = DeltaTable.forPath(delta_spark, path)
    table.alter().setProperties({"delta.enableDeletionVectors": "true"})
    table.update("id = 4", {"s": "'four'"})
    source = delta_spark.sql("SELECT 7L AS id")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    assert deletion_vectors(path) == 1
    table.reorg().purge()
    assert deletion_vectors(path) == 0
    assert {row.id: row.s for row in table.toDF().where("k = 1").collect()} == {1: "1", 4: "four"}


def test_row_tracking(delta_spark: SparkSession, path: str) -> None:
    """Row changes: row ids stay when a row is changed, and when files are compacted"""
    table = DeltaTable.forPath(delta_spark, path)
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    row_ids = {row.id: row.row_id for row in load(delta_spark, path).select("id", "_metadata.row_id").collect()}
    assert len(set(row_ids.values())) == 10
    table.update("id = 4", {"s": "'four'"})
    table.optimize().executeZOrderBy("s")
    assert {row.id: row.row_id for row in load(delta_spark, path).select("id", "_metadata.row_id").collect()} == row_ids


def test_conditions_with_subqueries(delta_spark: SparkSession, path: str) -> None:
    """SQL: subqueries in the conditions of DELETE and UPDATE"""
    name = f"delta.`{path}`"
    delta_spark.sql(f"UPDATE {name} SET s = 'x' WHERE id = (SELECT max(id) FROM {name})")
    delta_spark.sql(f"DELETE FROM {name} WHERE NOT EXISTS (SELECT 1 FROM range(9, 20) r WHERE r.id = {name}.id)")
    assert delta_spark.table(name).collect() == [Row(id=9, k=0, s="x")]


# ------------------------------------------------------------------------------------------------------------------ SQL
def test_statements(delta_spark: SparkSession, path: str) -> None:
    """SQL: INSERT, UPDATE, DELETE and MERGE, on paths"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    sql(f"INSERT INTO {name} (id, k) VALUES (10, 1)")
    sql(f"INSERT OVERWRITE {name} PARTITION (k = 2) SELECT 40, 'x'")
    assert sql(f"UPDATE {name} SET s = concat(s, '!') WHERE id = 3").collect() == [Row(num_affected_rows=1)]
    assert sql(f"DELETE FROM {name} WHERE id IN (SELECT id FROM range(2))").head() == (2,)
    merged = sql(
        f"MERGE INTO {name} AS t USING (SELECT 4L AS id, 'm' AS s) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, s.s) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN DELETE"
    )
    assert merged.head() == (2, 1, 1, 0)
    found = {row.id: row.s for row in sql(f"SELECT * FROM {name}").collect()}
    assert found == {3: "3!", 4: "m", 6: "6", 7: "7", 10: None, 40: "x"}
    assert "executed" not in sql(f"EXPLAIN DELETE FROM {name}").head()[0]
    assert sql(f"SELECT count(*) FROM {name}").head() == (6,)


def test_named_statements(delta_spark: SparkSession) -> None:
    """SQL: CREATE, ALTER, DESCRIBE, TRUNCATE and DROP TABLE in the session catalog"""
    sql = delta_spark.sql
    try:
        sql("CREATE TABLE of_versions (id BIGINT NOT NULL, k INT COMMENT 'key') USING delta PARTITIONED BY (k)")
        sql("ALTER TABLE of_versions ADD COLUMN s STRING")
        sql("ALTER TABLE of_versions ADD CONSTRAINT positive CHECK (id > 0)")
        sql("INSERT INTO default.of_versions VALUES (1, 1, DEFAULT)")
        with pytest.raises(PySparkException, match="positive"):
            sql("INSERT INTO of_versions VALUES (-1, 1, 'a')")
        assert [row.col_name for row in sql("DESCRIBE of_versions").collect()][:3] == ["id", "k", "s"]
        assert sql("DESCRIBE DETAIL of_versions").head().partitionColumns == ["k"]
        sql("CREATE OR REPLACE TABLE of_versions USING delta AS SELECT id + 1 AS id FROM of_versions")
        assert ids(delta_spark.table("of_versions")) == [2]
        sql("TRUNCATE TABLE default.of_versions")
        assert sql("SELECT * FROM of_versions").collect() == []
    finally:
        sql("DROP TABLE IF EXISTS of_versions")
    assert not delta_spark.catalog.tableExists("of_versions")


def test_missing_schemas(delta_spark: SparkSession) -> None:
    """SQL: a schema that does not exist is named in Spark's own error"""
    for statement in ("SHOW TABLES IN nope", "ALTER SCHEMA nope SET DBPROPERTIES ('a' = 'b')", "USE nope"):
        with pytest.raises(AnalysisException, match=r"\[SCHEMA_NOT_FOUND\].*nope"):
            delta_spark.sql(statement)
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        delta_spark.catalog.listTables("nope")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        delta_spark.sql("CREATE TABLE nope.t (i INT) USING delta")


def test_tables_whose_log_is_gone(delta_spark: SparkSession) -> None:
    """SQL: a table whose directory was deleted is refused by queries, and can be dropped and created again"""
    sql = delta_spark.sql
    try:
        sql("CREATE TABLE of_versions USING delta AS SELECT 1 AS id")
        shutil.rmtree(Path(sql("DESCRIBE DETAIL of_versions").head().location.removeprefix("file:")))
        with pytest.raises(TableNotFoundError, match="no Delta table at"):
            sql("SELECT * FROM of_versions").collect()
        sql("DROP TABLE of_versions")
        assert not delta_spark.catalog.tableExists("of_versions")
        sql("CREATE TABLE of_versions USING delta AS SELECT 2 AS id")
        assert ids(delta_spark.table("of_versions")) == [2]
    finally:
        sql("DROP TABLE IF EXISTS of_versions")


def test_describing_statements(delta_spark: SparkSession) -> None:
    """SQL: SHOW TABLES, SHOW TBLPROPERTIES and DESCRIBE HISTORY"""
    sql = delta_spark.sql
    try:
        sql("CREATE TABLE of_versions (id BIGINT, k INT) USING delta TBLPROPERTIES ('a.b' = 'c')")
        sql("INSERT INTO of_versions VALUES (1, 2)")
        assert "of_versions" in [row.tableName for row in sql("SHOW TABLES").collect()]
        assert sql("SHOW TBLPROPERTIES of_versions ('a.b')").head().value == "c"
        assert [row.operation for row in sql("DESCRIBE HISTORY of_versions").collect()] == ["WRITE", "CREATE TABLE"]
        assert sql("DESCRIBE HISTORY of_versions LIMIT 1").head().operationMetrics["numOutputRows"] == "1"
    finally:
        sql("DROP TABLE IF EXISTS of_versions")


def test_altered_columns(delta_spark: SparkSession, path: str) -> None:
    """SQL: ALTER TABLE adds, moves and comments columns, and changes constraints and properties"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    sql(f"ALTER TABLE {name} ADD COLUMNS (a INT COMMENT 'first' FIRST, b STRING AFTER id)")
    sql(f"ALTER TABLE {name} ALTER COLUMN b COMMENT 'second'")
    sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (id < 100)")
    sql(f"ALTER TABLE {name} DROP CONSTRAINT small")
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    schema = load(delta_spark, path).schema
    assert schema.names == ["a", "id", "b", "k", "s"]
    assert schema["b"].metadata == {"comment": "second"}
    with pytest.raises(PySparkException, match="append"):
        sql(f"DELETE FROM {name}")
    sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.appendOnly')")
    assert sql(f"DELETE FROM {name}").head() == (10,)


@pytest.mark.since("4.0")
def test_identity_columns(delta_spark: SparkSession, path: str) -> None:
    """SQL: identity columns in CREATE TABLE, which Spark parses from 4.0 on"""
    name = f"delta.`{path}-identity`"
    delta_spark.sql(f"CREATE TABLE {name} (i BIGINT GENERATED ALWAYS AS IDENTITY, s STRING) USING delta")
    delta_spark.sql(f"INSERT INTO {name} (s) VALUES ('a'), ('b')")
    assert sorted(row.i for row in delta_spark.table(name).collect()) == [1, 2]


@pytest.mark.since("4.1")
def test_scripts(delta_spark: SparkSession, path: str) -> None:
    """SQL: scripts, which Spark runs from 4.1 on"""
    name = f"delta.`{path}`"
    script = f"BEGIN DECLARE n BIGINT; DELETE FROM {name} WHERE id > 4; SELECT count(*) FROM {name}; END"
    assert delta_spark.sql(script).head() == (5,)


@pytest.mark.since("4.1")
def test_parameters(delta_spark: SparkSession, path: str) -> None:
    """SQL: parameters (`args` of `spark.sql`) in statements that change rows, which reach our parser from 4.1 on"""
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id > :least", args={"least": 4})
    assert ids(load(delta_spark, path)) == [0, 1, 2, 3, 4]


@pytest.mark.since("4.2")
def test_replace_using(delta_spark: SparkSession, path: str) -> None:
    """SQL: INSERT ... REPLACE USING and REPLACE ON, which Spark parses from 4.2 on"""
    delta_spark.sql(f"INSERT INTO delta.`{path}` REPLACE USING (k) SELECT 50, 1, 'x'")
    assert ids(load(delta_spark, path)) == [0, 2, 3, 5, 6, 8, 9, 50]


# ---------------------------------------------------------------------------------------------------------- maintenance
def test_maintenance(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: OPTIMIZE with ZORDER and clustering, VACUUM, RESTORE, history and clones"""
    sql, name = delta_spark.sql, f"delta.`{path}`"
    table = DeltaTable.forPath(delta_spark, path)
    delta_spark.range(10, 12).selectExpr("id", "1 AS k", "'x' AS s").write.format("delta").mode("append").save(path)
    assert sql(f"OPTIMIZE {name} ZORDER BY (id)").head().metrics.numFilesRemoved > 0
    sql(f"RESTORE TABLE {name} TO VERSION AS OF 1")
    assert ids(table.toDF()) == list(range(10))
    assert [row.operation for row in table.history(2).collect()] == ["RESTORE", "OPTIMIZE"]
    assert sql(f"VACUUM {name} DRY RUN").collect() == []
    sql(f"CREATE TABLE delta.`{path}-clone` SHALLOW CLONE {name}")
    assert load(delta_spark, f"{path}-clone").count() == 10
    table.vacuum()


def test_optimize_builder(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `DeltaTable.optimize` with a partition filter"""
    table = DeltaTable.forPath(delta_spark, path)
    delta_spark.range(10, 13).selectExpr("id", "CAST(id % 3 AS INT) AS k", "'x' AS s").write.format("delta").mode(
        "append"
    ).save(path)
    assert table.optimize().where("k = 1").executeCompaction().head().metrics.numFilesRemoved == 2
    assert len(load(delta_spark, path).inputFiles()) == 5
    assert ids(table.toDF()) == list(range(13))


def test_vacuum(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `DeltaTable.vacuum` deletes files that no version of the retention period has"""
    table, check = DeltaTable.forPath(delta_spark, path), "spark.databricks.delta.retentionDurationCheck.enabled"
    table.delete("k = 1")
    with pytest.raises(PySparkException, match="retention"):
        table.vacuum(0)
    delta_spark.conf.set(check, "false")
    try:
        table.vacuum(0)
    finally:
        delta_spark.conf.unset(check)
    assert not list(Path(path).glob("k=1/*.parquet"))
    assert len(ids(table.toDF())) == 7


def test_restore(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `DeltaTable` restores a version and a time"""
    table = DeltaTable.forPath(delta_spark, path)
    before = Table.open(path).detail()["lastModified"].strftime("%Y-%m-%d %H:%M:%S.%f")
    for restore in (lambda: table.restoreToVersion(1), lambda: table.restoreToTimestamp(before)):
        table.delete()
        assert restore().head().num_restored_files == 3
        assert ids(table.toDF()) == list(range(10))


def test_clones(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: shallow and deep clones of a version, through `DeltaTable` and in SQL"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete("id > 4")
    table.cloneAtVersion(1, f"{path}-shallow", isShallow=True)
    delta_spark.sql(f"CREATE TABLE delta.`{path}-sql` SHALLOW CLONE delta.`{path}` VERSION AS OF 1")
    table.clone(f"{path}-deep", isShallow=False)
    DeltaTable.forPath(delta_spark, f"{path}-shallow").delete("id = 0")
    assert ids(load(delta_spark, f"{path}-shallow")) == list(range(1, 10))
    assert ids(load(delta_spark, f"{path}-sql")) == list(range(10))
    assert len(list(Path(f"{path}-deep").glob("k=*/*.parquet"))) == 3
    assert ids(table.toDF()) == [0, 1, 2, 3, 4]


def test_conversions(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Maintenance: CONVERT TO DELTA of Parquet files, with partitions, and `convertToDelta`"""
    for number in (1, 2):
        rows = delta_spark.range(4).withColumn("k", F.expr("CAST(id % 2 AS INT)"))
        rows.write.partitionBy("k").parquet(str(tmp_path / str(number)))
    delta_spark.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/1` PARTITIONED BY (k INT)")
    DeltaTable.convertToDelta(delta_spark, f"parquet.`{tmp_path}/2`", "k INT")
    for number in (1, 2):
        assert ids(load(delta_spark, str(tmp_path / str(number))).where("k = 1")) == [1, 3]


def test_details(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: `detail` and `history` of `DeltaTable`, with operations, metrics and properties"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete("id = 4")
    detail = table.detail().head()
    assert (detail.format, detail.numFiles, detail.partitionColumns) == ("delta", 3, ["k"])
    assert detail.properties["delta.enableChangeDataFeed"] == "true"
    last = table.history(1).head()
    assert (last.version, last.operation, last.operationMetrics["numDeletedRows"]) == (2, "DELETE", "1")
    assert "id = 4" in last.operationParameters["predicate"]


def test_dropped_features(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: features of tables are added, and dropped again"""
    table = DeltaTable.forPath(delta_spark, path)
    table.alter().setProperties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    assert "deletionVectors" in table.detail().head().tableFeatures
    delta_spark.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE deletionVectors")
    assert "deletionVectors" not in table.detail().head().tableFeatures
    assert len(ids(table.toDF())) == 9


def test_checkpoints(delta_spark: SparkSession, path: str) -> None:
    """Maintenance: checkpoints, from which tables are read"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete("id = 1")
    table.checkpoint()
    for version in (0, 1):
        Path(path, "_delta_log", f"{version:020}.json").unlink()
    clear_cache(path)
    assert len(ids(load(delta_spark, path))) == 9


def test_exchange(delta_spark: SparkSession) -> None:
    """Maintenance: rewriting files side by side in tasks, whose rows are exchanged"""
    rows = repartitioned_by_id(delta_spark.range(50).selectExpr("CAST(id % 7 AS INT) AS task"), 7, "task")
    placed = rows.selectExpr("task", "spark_partition_id() AS place").distinct().collect()
    assert sorted(map(tuple, placed)) == [(task, task) for task in range(7)]


# -------------------------------------------------------------------------------------------------------------- streams
def test_streams(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: native source and sink, with limits of files and bytes"""
    copy, checkpoint = tmp_path / "copy", tmp_path / "checkpoint"
    read: Any = (
        delta_spark.readStream.format("delta").option("maxFilesPerTrigger", 1).option("maxBytesPerTrigger", "1g")
    )
    query = run(writer(read.load(path), checkpoint).start(str(copy)))
    assert query.lastProgress["sink"]["description"] == f"DeltaSink[{copy}]"
    assert ids(load(delta_spark, str(copy))) == list(range(10))
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (10, 1, 'x')")
    run(writer(read.load(path), checkpoint).start(str(copy)))
    assert ids(load(delta_spark, str(copy))) == list(range(11))


def test_streams_into_functions(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: `foreachBatch` with MERGE in each batch, started again from its checkpoint"""
    copy = str(tmp_path / "copy")
    Table.create(copy, "id BIGINT, k INT, s STRING")

    def upsert(batch: DataFrame, number: int) -> None:
        merge = DeltaTable.forPath(batch.sparkSession, copy).alias("t").merge(batch.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    for expected in (range(10), range(11)):
        made = delta_spark.readStream.format("delta").load(path).writeStream.foreachBatch(upsert)
        run(made.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint")).start())
        assert ids(load(delta_spark, copy)) == list(expected)
        delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (10, 1, 'x')")


def test_streams_of_changes(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: the change data feed as a source, from a version on"""
    DeltaTable.forPath(delta_spark, path).delete("id = 4")
    read = delta_spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    run(writer(read.load(path).select("id", "_change_type"), tmp_path / "checkpoint").start(str(tmp_path / "copy")))
    assert load(delta_spark, str(tmp_path / "copy")).collect() == [Row(id=4, _change_type="delete")]


def test_streams_that_aggregate(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: aggregates in output mode complete, to a table of the session catalog"""
    counts = delta_spark.readStream.format("delta").load(path).groupBy("k").count()
    try:
        run(writer(counts, tmp_path / "checkpoint").outputMode("complete").toTable("of_versions"))
        assert sorted(map(tuple, delta_spark.table("of_versions").collect())) == [(0, 4), (1, 3), (2, 3)]
    finally:
        delta_spark.sql("DROP TABLE IF EXISTS of_versions")


def test_streams_of_changed_rows(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: a source whose rows are deleted stops, unless `skipChangeCommits` is given"""
    DeltaTable.forPath(delta_spark, path).delete("id = 4")
    read = delta_spark.readStream.format("delta").option("startingVersion", 1)
    query = writer(read.load(path), tmp_path / "checkpoint").start(str(tmp_path / "copy"))
    with pytest.raises(PySparkException, match="skipChangeCommits"):
        query.awaitTermination(60)
    read = read.option("skipChangeCommits", "true")
    run(writer(read.load(path), tmp_path / "checkpoint2").start(str(tmp_path / "copy2")))


# ----------------------------------------------------------------------------------------------- the Python Data Source
@pytest.mark.since("4.0")
def test_python_data_source(plain_spark: SparkSession, tmp_path: Path) -> None:
    """Python Data Source: reading and writing without `enable`, which Spark has from 4.0 on"""
    place = str(tmp_path / "source")
    plain_spark.range(5).write.format("delta").mode("append").save(place)
    assert ids(plain_spark.read.format("delta").option("versionAsOf", 0).load(place).where("id > 2")) == [3, 4]


@pytest.mark.since("4.2")
def test_streams_of_the_python_data_source(plain_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Python Data Source: reading streams, which know their position from 4.2 on"""
    copy = tmp_path / "copy"
    run(writer(plain_spark.readStream.format("delta").load(path), tmp_path / "checkpoint").start(str(copy)))
    assert ids(plain_spark.read.format("delta").load(str(copy))) == list(range(10))
