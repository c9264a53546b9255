"""`DeltaTable.optimize().executeZOrderBy` and `executeClustering`, on classic sessions and Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import DeltaTable
from pyspark_delta.errors import InvalidOperationError

SMALL = 2_000


class Clustering:
    """The tests; a session of each kind runs them all."""

    @pytest.fixture
    def path(self, session: SparkSession, tmp_path: Path) -> str:
        path = str(tmp_path / "t")
        for start in range(3):
            rows = session.range(start, 600, 3).selectExpr("id", "id * 7919 % 600 as x").coalesce(1)
            rows.write.format("delta").mode("append").save(path)
        return path

    def test_zorder_and_clustering(self, session: SparkSession, path: str) -> None:
        table = DeltaTable.forPath(session, path)
        builder = table.optimize().withTargetSize(SMALL)
        (row,) = builder.executeZOrderBy("id", "x").collect()
        assert row.path.endswith("/t")
        stats = row.metrics.zOrderStats
        assert (stats.strategyName, stats.inputOtherFiles.num, stats.numOutputCubes) == ("all", 3, 1)
        assert row.metrics.clusteringStats is None
        assert not row.metrics.preserveInsertionOrder
        assert builder.executeZOrderBy(["x"]).count() == 1
        with pytest.raises(InvalidOperationError) as caught:
            builder.executeClustering()
        assert caught.value.error_class == "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"
        table.alter().clusterBy("id", "x")
        (row,) = table.optimize().withTargetSize(SMALL).executeClustering(full=True).collect()
        assert (row.metrics.clusteringStats.numOutputZCubes, row.metrics.zOrderStats) == (1, None)
        assert table.optimize().executeCompaction().collect()[0].metrics.numFilesAdded == 0
        assert sorted(r.id for r in table.toDF().collect()) == list(range(600))
        with pytest.raises(TypeError, match="names of columns"):
            builder.executeZOrderBy()


class TestClassic(Clustering):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Clustering):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
