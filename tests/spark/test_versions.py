"""What works on which PySpark: each area once. CI runs these tests on 4.1, 4.0 and 3.5 too.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.golden.catalogue import assert_content, golden_tables
from tests.spark.streams import run, writer

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import MissingDependencyError, UnsupportedTableError
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
