"""`DeltaTable.inspect`, `diff` and `dropFeatureSupport`, on classic sessions and Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.inspection import NAMES


class LookInside:
    """The tests; a session of each kind runs them all."""

    @pytest.fixture
    def table(self, session: SparkSession, tmp_path: Path) -> DeltaTable:
        path = str(tmp_path / "t")
        rows = session.range(10).withColumn("p", f.col("id") % 2).coalesce(1)
        writer = rows.write.format("delta").partitionBy("p").option("delta.enableDeletionVectors", "true")
        writer.option("delta.columnMapping.mode", "name").save(path)
        table = DeltaTable.forPath(session, path)
        table.delete("id < 3")
        return table

    def test_metadata_tables_are_frames(self, table: DeltaTable, tmp_path: Path) -> None:
        arrow = Table.open(tmp_path / "t")
        for name in NAMES:
            frame, expected = table.inspect(name), arrow.inspect(name)
            assert frame.columns == list(expected.schema.names)
            assert frame.count() == expected.to_arrow().num_rows
        summed = table.inspect("files").groupBy("partition.p").agg(f.sum("num_deleted_records")).collect()
        assert {tuple(row) for row in summed} == {(0, 2), (1, 1)}
        (newest, *_) = table.inspect("history").orderBy(f.desc("version")).collect()
        (row,) = table.history(1).collect()
        assert (newest.timestamp, newest.operationMetrics) == (row.timestamp, row.operationMetrics)
        assert table.inspect("files", version=0).agg(f.sum("num_deleted_records")).first()[0] == 0

    def test_versions_are_compared(self, table: DeltaTable) -> None:
        assert table.diff(0).rows == (10, 7)

    def test_features_are_dropped(self, table: DeltaTable) -> None:
        plan = table.dropFeatureSupport("deletionVectors", plan=True)
        assert plan.facts()["files_rewritten"] == 2
        with pytest.raises(InvalidOperationError, match="nothing to drop"):
            table.dropFeatureSupport("checkConstraints", truncateHistory=True)
        assert table.dropFeatureSupport("deletionVectors") is None
        assert "deletionVectors" not in table.detail().first().tableFeatures
        assert sorted(row.id for row in table.toDF().collect()) == list(range(3, 10))
        (row,) = table.history(1).collect()
        assert row.operationParameters == {"featureName": "deletionVectors", "truncateHistory": "false"}
        assert "PySpark/" in row.engineInfo

    def test_tasks_rewrite_what_is_too_large_for_the_driver(self, session: SparkSession, table: DeltaTable) -> None:
        session.conf.set("spark.pyspark_delta.costModel", '{"driver_local_bytes": 0}')
        try:
            table.dropFeatureSupport("deletionVectors")
            table.dropFeatureSupport("columnMapping")
        finally:
            session.conf.unset("spark.pyspark_delta.costModel")
        assert sorted((row.id, row.p) for row in table.toDF().collect()) == [(n, n % 2) for n in range(3, 10)]
        assert set(table.detail().first().tableFeatures) == {"appendOnly", "checkpointProtection", "invariants"}


class TestClassic(LookInside):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(LookInside):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
