"""`DeltaTable.optimize` and `reorg`, on classic sessions and Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import Budget, DeltaTable, Table
from pyspark_delta.errors import InvalidOptionError, InvalidPredicateError

SETTING = "spark.databricks.delta.optimize."
AUTO = "spark.databricks.delta.autoCompact."


@contextmanager
def settings(session: SparkSession, prefix: str = SETTING, **values: object) -> Iterator[None]:
    for name, value in values.items():
        session.conf.set(prefix + name, str(value))
    try:
        yield
    finally:
        for name in values:
            session.conf.unset(prefix + name)


def rows(table: DeltaTable) -> list[tuple[int, int]]:
    return sorted((row.id, row.p) for row in table.toDF().collect())


class Optimize:
    """The tests; a session of each kind runs them all."""

    @pytest.fixture
    def table(self, session: SparkSession, tmp_path: Path) -> DeltaTable:
        path = str(tmp_path / "t")
        for start in (0, 10, 20):
            frame = session.range(start, start + 10, 1, 1).selectExpr("id", "cast(id % 2 as int) as p")
            frame.write.format("delta").mode("append").partitionBy("p").option(
                "delta.enableDeletionVectors", "true"
            ).save(path)
        return DeltaTable.forPath(session, path)

    def test_files_are_combined_and_purged(self, session: SparkSession, table: DeltaTable) -> None:
        expected = rows(table)
        (row,) = table.optimize().where("p = 0").executeCompaction().collect()
        assert row.path.startswith("file:/")
        metrics = row.metrics
        assert (metrics.numFilesAdded, metrics.numFilesRemoved, metrics.partitionsOptimized) == (1, 3, 1)
        assert (metrics.filesAdded.totalFiles, metrics.filesRemoved.totalFiles) == (1, 3)
        assert metrics.filesAdded.min == metrics.filesAdded.max == metrics.filesAdded.avg > 0
        assert (metrics.zOrderStats, metrics.clusteringStats, metrics.totalConsideredFiles) == (None, None, 3)
        assert rows(table) == expected
        history = table.history(1).collect()[0]
        assert (history.operation, "PySpark/" in history.engineInfo) == ("OPTIMIZE", True)
        with settings(session, minFileSize=1):
            assert table.optimize().plan().is_nothing
        with settings(session, batchSize=1, maxThreads=1, maxFileSize=1000, minFileSize=2000):
            plan = table.optimize().plan()
            assert (plan.bins.target_size, plan.rewriting.threads) == (1000, 1)
        assert table.optimize().withTargetSize("1GB").withBudget(Budget(bytes=10)).plan().bins_left == 1
        with settings(session, maxThreads="many"), pytest.raises(InvalidOptionError, match="maxThreads"):
            table.optimize().plan()
        with pytest.raises(InvalidPredicateError) as caught:
            table.optimize().where("id = 1").executeCompaction()
        assert caught.value.error_class == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
        table.delete("id < 4")
        table.optimize().where("p >= 0").where("p = 1").executeCompaction()
        purged = table.reorg().purge().collect()[0].metrics
        assert purged.deletionVectorStats.numDeletionVectorRowsRemoved > 0
        assert rows(table) == [row for row in expected if row[0] >= 4]
        assert table.reorg().plan().is_nothing

    def test_spark_rewrites_what_is_too_large_for_this_process(
        self, session: SparkSession, table: DeltaTable, tmp_path: Path
    ) -> None:
        expected = rows(table)
        session.conf.set("spark.pyspark_delta.costModel", '{"driver_local_bytes": 0}')
        try:
            assert table.optimize().plan().facts()["engine"] == "Arrow in tasks"
            (row,) = table.optimize().executeCompaction().collect()
        finally:
            session.conf.unset("spark.pyspark_delta.costModel")
        assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (2, 6)
        assert rows(table) == expected

    def test_a_commit_is_compacted_if_the_session_says_so(self, session: SparkSession, table: DeltaTable) -> None:
        expected = rows(table)
        one = session.range(100, 101).selectExpr("id", "cast(1 as int) as p")
        two = session.range(101, 103).selectExpr("id", "cast(1 as int) as p")
        with settings(session, AUTO, enabled="true", minNumFiles=4):
            table.delete("id = 0")  # the vector is on a file that was there
            one.write.format("delta").mode("append").save(table.detail().collect()[0].location)
        commit = table.history(1).collect()[0]
        assert (commit.operation, commit.operationParameters["auto"]) == ("OPTIMIZE", "true")
        assert commit.operationMetrics["numRemovedFiles"] == "4"
        with settings(session, AUTO, enabled="true", minNumFiles=2):
            with table.transaction() as transaction:
                transaction.append(two)
            assert (transaction.version, table.history(1).collect()[0].operation) == (6, "OPTIMIZE")
            table.update("id = 2", {"id": "202"}, plan=True).execute()
            assert [row.operation for row in table.history(2).collect()] == ["OPTIMIZE", "UPDATE"]
        with settings(session, AUTO, minNumFiles="few"), pytest.raises(InvalidOptionError, match="minNumFiles"):
            one.write.format("delta").mode("append").save(table.detail().collect()[0].location)
        later = [(202 if row[0] == 2 else row[0], row[1]) for row in expected if row[0]]
        assert rows(table) == sorted([*later, (100, 1), (101, 1), (102, 1)])


class TestClassic(Optimize):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Optimize):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


def test_batches_of_a_stream_are_compacted_and_written_once(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "t")
    delta_spark.range(0, 30, 1, 3).write.parquet(source)

    def write(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            writer = batch.selectExpr("id", "id % 2 as p").repartition(2).write.format("delta").mode("append")
            writer = writer.partitionBy("p").option("optimizeWrite", "true")
            writer.option("txnAppId", "app").option("txnVersion", number).save(path)

    stream = delta_spark.readStream.schema("id LONG").format("parquet").option("maxFilesPerTrigger", 1).load(source)
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    with settings(delta_spark, AUTO, enabled="true", minNumFiles=2):
        assert query.trigger(availableNow=True).start().awaitTermination(120)
    table = Table.open(path)
    commits = [commit["operation"] for commit in table.history()]
    assert commits == ["OPTIMIZE", "WRITE", "OPTIMIZE", "WRITE", "WRITE"]
    assert table.history()[-1]["operationMetrics"]["numFiles"] == "2"
    assert table.snapshot.transactions()["app"].version == 2
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(30))


@pytest.mark.parametrize(("driver_local_bytes", "in_tasks"), [(0, True), (1 << 30, False)])
def test_a_commit_is_compacted_in_tasks_if_it_is_much(
    delta_spark: SparkSession, tmp_path: Path, driver_local_bytes: int, in_tasks: bool
) -> None:
    """Its jobs are in the job group of the write, though other threads start them."""
    path, context = str(tmp_path / "t"), delta_spark.sparkContext

    def jobs_of_append(compacted: str) -> int:
        group = f"{path} {uuid4()}"
        context.setJobGroup(group, "an append")
        try:
            with settings(delta_spark, AUTO, enabled=compacted, minNumFiles=2):
                delta_spark.range(10).write.format("delta").mode("append").save(path)
        finally:
            for name in ("spark.jobGroup.id", "spark.job.description"):
                context.setLocalProperty(name, None)  # type: ignore[arg-type]
        return len(context.statusTracker().getJobIdsForGroup(group))

    cost = json.dumps({"driver_local_bytes": driver_local_bytes})
    with settings(delta_spark, "spark.pyspark_delta.", costModel=cost):
        alone = [jobs_of_append("false") for _ in range(2)][-1]
        compacted = jobs_of_append("true")
    table = Table.open(path)
    assert [commit["operation"] for commit in table.history(2)] == ["OPTIMIZE", "WRITE"]
    assert table.count() == 30
    assert (compacted > alone) is in_tasks
