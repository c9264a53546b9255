"""Which streams work on which PySpark.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from tests.spark.streams import run, writer
from tests.spark.versions.frames import ids, load

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import MissingDependencyError

pytestmark = pytest.mark.versions


@pytest.mark.until("4.0")
def test_streams_of_widened_types_are_refused(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Without a reader that widens types, a stream of such a table does not start."""
    table = Table.create(tmp_path / "widened", "id INT", properties={"delta.enableTypeWidening": "true"})
    table.append({"id": [1]})
    delta_spark.sql(f"ALTER TABLE delta.`{tmp_path}/widened` ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(MissingDependencyError, match=r"types of columns were widened.*install PySpark 4.2"):
        delta_spark.readStream.format("delta").load(f"{tmp_path}/widened")


@pytest.mark.since("4.0")
@pytest.mark.until("4.1")
def test_streams_of_shredded_variants_are_refused(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Without a reader of shredded variants, a stream of such a table does not start."""
    shredded = str(tmp_path / "shredded")
    variants = delta_spark.sql("SELECT parse_json('1') AS v")
    variants.write.format("delta").option("delta.enableVariantShredding", "true").save(shredded)
    with pytest.raises(MissingDependencyError, match=r"variants are shredded.*install PySpark 4.2"):
        delta_spark.readStream.format("delta").load(shredded)


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


def test_failed_batches(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: the error of a query says why a batch has failed, also in a task"""
    for number, value in enumerate(("CAST(raise_error('by the user') AS BIGINT)", "'a text'")):
        rows = delta_spark.readStream.format("delta").load(path).selectExpr(f"{value} AS id", "1 AS k", "s")
        query = writer(rows, tmp_path / f"checkpoint{number}").start(path if number else str(tmp_path / "other"))
        with pytest.raises(PySparkException, match=r"by the user|'a text' does not fit into the column 'id'"):
            query.awaitTermination(60)


def test_streams_of_changed_rows(delta_spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Streams: a source whose rows are deleted stops, unless `skipChangeCommits` is given"""
    DeltaTable.forPath(delta_spark, path).delete("id = 4")
    read = delta_spark.readStream.format("delta").option("startingVersion", 1)
    query = writer(read.load(path), tmp_path / "checkpoint").start(str(tmp_path / "copy"))
    with pytest.raises(PySparkException, match="skipChangeCommits"):
        query.awaitTermination(60)
    read = read.option("skipChangeCommits", "true")
    run(writer(read.load(path), tmp_path / "checkpoint2").start(str(tmp_path / "copy2")))


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
