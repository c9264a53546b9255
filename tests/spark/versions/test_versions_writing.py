"""What can be written on which PySpark.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.spark.user_scripts import answer_of, run
from tests.spark.versions.frames import ids, load

from pyspark_delta import DeltaTable, IdentityGenerator, Table
from pyspark_delta.errors import MissingDependencyError, UnsupportedTableError

pytestmark = pytest.mark.versions


def test_activated_environments(tmp_path: Path) -> None:
    """Writing: a script of an activated environment, without settings"""
    code = """
spark = pyspark_delta.enable(builder.master("local[1]").getOrCreate())
spark.range(3).write.format("delta").save(path)
print(spark.read.format("delta").load(path).count())
"""
    assert answer_of(run(code, Path(sys.executable), tmp_path / "t")) == 3


def test_lists_of_maps_without_values(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Writing: lists of maps that are all null"""
    path = str(tmp_path / "t")
    empty = "CAST(NULL AS ARRAY<MAP<INT, STRING>>) AS l, named_struct('m', CAST(NULL AS ARRAY<MAP<INT, INT>>)) AS s"
    delta_spark.sql(f"SELECT id, {empty} FROM range(3)").write.format("delta").save(path)
    target = DeltaTable.forPath(delta_spark, path).alias("t")
    source = delta_spark.sql(f"SELECT id, {empty} FROM range(2, 4)").alias("s")
    target.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [tuple(row) for row in load(delta_spark, path).sort("id").collect()] == [
        (i, None, (None,)) for i in range(4)
    ]


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


@pytest.mark.since("4.0")
def test_variants(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Writing and reading: columns of type VARIANT, which Spark has from 4.0 on"""
    place = str(tmp_path / "variants")
    delta_spark.sql("""SELECT parse_json('{"a": [1, 2]}') AS v""").write.format("delta").save(place)
    assert load(delta_spark, place).selectExpr("variant_get(v, '$.a[1]', 'int')").head() == (2,)


@pytest.mark.since("4.0")
def test_shredded_variants(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Writing and reading: shredded variants, whose parts are columns of the files"""
    place = str(tmp_path / "shredded")
    variants = delta_spark.sql("SELECT id, parse_json(concat('{\"a\": ', id, '}')) AS v FROM range(0, 20, 1, 1)")
    variants.write.format("delta").option("delta.enableVariantShredding", "true").save(place)
    assert "typed_value" in str(pq.read_schema(next(Path(place).glob("*.parquet"))).field("v").type)
    table = DeltaTable.forPath(delta_spark, place)
    table.delete("id < 5")
    table.update("id = 5 AND soundex(CAST(id AS STRING)) IS NOT NULL", {"v": F.expr("parse_json('{\"a\": 100}')")})
    texts = load(delta_spark, place).selectExpr("to_json(v) AS v").collect()
    assert sorted(row.v for row in texts) == sorted(f'{{"a":{number}}}' for number in (*range(6, 20), 100))


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
