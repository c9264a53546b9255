"""Tables on HDFS in a session: rows, history, maintenance, SQL and streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.costs import SPARK, TASKS, set_cost

from pyspark_delta import DeltaTable
from pyspark_delta.storage import store_for

ENGINES: dict[str, dict[str, Any]] = {"driver": {}, "Arrow in tasks": TASKS, "Spark": {**TASKS, **SPARK}}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("engine", ENGINES)
def test_life_of_a_table(hdfs_spark: SparkSession, hdfs_path: str, engine: str) -> None:
    set_cost(hdfs_spark, **ENGINES[engine])
    try:
        _live(hdfs_spark, hdfs_path)
    finally:
        set_cost(hdfs_spark)


def _live(spark: SparkSession, path: str) -> None:
    first = spark.range(0, 20, 1, 2).selectExpr("id", "concat('v', id) v", "id % 2 p")
    first.write.format("delta").partitionBy("p").option("delta.enableDeletionVectors", "true").save(path)
    spark.range(20, 30, 1, 1).selectExpr("id", "'new' v", "id % 2 p").write.format("delta").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id < 5")
    table.update("id = 7", {"v": "'updated'"})
    source = spark.createDataFrame([(8, "merged", 0), (100, "inserted", 0)], "id long, v string, p long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.execute()

    expected = {i: (f"v{i}" if i < 20 else "new") for i in range(5, 30)}
    expected |= {7: "updated", 8: "merged", 100: "inserted"}
    assert rows(table.toDF().select("id", "v")) == sorted(expected.items())
    table.optimize().executeCompaction()
    assert rows(spark.read.format("delta").load(path).select("id", "v")) == sorted(expected.items())
    assert spark.read.format("delta").option("versionAsOf", 1).load(path).count() == 30

    operations = [row["operation"] for row in table.history().orderBy("version").collect()]
    assert operations == ["WRITE", "WRITE", "DELETE", "UPDATE", "MERGE", "OPTIMIZE"]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    before = data_files(path)
    table.vacuum(0)
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    kept = data_files(path)
    assert kept < before
    assert {file for file in kept if file.endswith(".parquet")} == {
        file.rpartition(path)[2][1:] for file in table.toDF().inputFiles()
    }
    assert rows(table.toDF().select("id", "v")) == sorted(expected.items())


def data_files(path: str) -> set[str]:
    found = store_for(path).list_tree(path, lambda name: name == "_delta_log")
    return {name for batch in found for name in batch["path"].to_pylist()}


def test_sql(hdfs_spark: SparkSession, hdfs_path: str) -> None:
    hdfs_spark.sql(f"CREATE TABLE on_hdfs (id BIGINT, v STRING) USING delta LOCATION '{hdfs_path}'")
    try:
        hdfs_spark.sql("INSERT INTO on_hdfs VALUES (1, 'a'), (2, 'b')")
        hdfs_spark.sql("UPDATE on_hdfs SET v = 'c' WHERE id = 2")
        assert rows(hdfs_spark.sql("SELECT * FROM on_hdfs")) == [(1, "a"), (2, "c")]
        assert rows(hdfs_spark.sql(f"SELECT * FROM delta.`{hdfs_path}` VERSION AS OF 1")) == [(1, "a"), (2, "b")]
    finally:
        hdfs_spark.sql("DROP TABLE on_hdfs")


def test_stream_from_table_to_table(hdfs_spark: SparkSession, hdfs_path: str, tmp_path: Path) -> None:
    source, target = f"{hdfs_path}/source", f"{hdfs_path}/target"
    for start in (0, 10):
        hdfs_spark.range(start, start + 10).write.format("delta").mode("append").save(source)
        stream = hdfs_spark.readStream.format("delta").load(source).writeStream.format("delta")
        query = stream.option("checkpointLocation", f"{hdfs_path}/checkpoint").trigger(availableNow=True).start(target)
        assert query.awaitTermination(120)
        assert query.exception() is None
    assert rows(hdfs_spark.read.format("delta").load(target)) == [(i,) for i in range(20)]
    log = store_for(target).list_from(f"{target}/_delta_log/")
    last = json.loads(store_for(target).read(list(log)[-1].path).splitlines()[0])
    assert last["commitInfo"]["operation"] == "STREAMING UPDATE"


def test_paths_without_a_scheme_are_on_the_default_file_system(
    hdfs_spark: SparkSession, hdfs_root: str, hdfs_path: str, tmp_path: Path
) -> None:
    bare = hdfs_path.removeprefix(hdfs_root)
    hadoop: Any = hdfs_spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    before = hadoop.get("fs.defaultFS")
    hadoop.set("fs.defaultFS", hdfs_root)
    try:
        hdfs_spark.range(3).write.format("delta").save(bare)
        hdfs_spark.sql(f"INSERT INTO delta.`{bare}` VALUES (3)")
        DeltaTable.forPath(hdfs_spark, bare).delete("id = 0")
        assert hdfs_spark.read.format("delta").option("path", bare).load().count() == 3
        stream = hdfs_spark.readStream.format("delta").option("ignoreDeletes", "true").load(f"{bare}").writeStream
        query = stream.format("delta").option("checkpointLocation", f"{hdfs_path}/checkpoint")
        assert query.trigger(availableNow=True).start(f"{bare}/copy").awaitTermination(120)
        hdfs_spark.range(1).write.format("delta").save(f"file:{tmp_path}/local")
        assert hdfs_spark.sql(f"SELECT * FROM delta.`file:{tmp_path}/local`").count() == 1
    finally:
        hadoop.set("fs.defaultFS", before)
    assert rows(hdfs_spark.read.format("delta").load(hdfs_path)) == [(1,), (2,), (3,)]
    assert hdfs_spark.read.format("delta").load(f"{hdfs_path}/copy").count() == 3
    assert (tmp_path / "local" / "_delta_log").is_dir()
