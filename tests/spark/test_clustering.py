"""`DeltaTable.optimize().executeZOrderBy` and `executeClustering`, on classic sessions and Spark Connect."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.costs import SetCost

from pyspark_delta import DeltaTable
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

SMALL = 2_000
ROWS, TARGET = 6_000, 8_000


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

    @pytest.mark.parametrize("kind", ["zorder", "clustering"])
    def test_large_work_is_a_job_with_an_exchange_and_does_the_same(
        self, session: SparkSession, tmp_path: Path, cost: SetCost, kind: str
    ) -> None:
        """Beside the same run in this process; others delete and update rows between the plan and the commit."""
        table = made(session, tmp_path / "tasks", clustered=kind == "clustering")
        shutil.copytree(tmp_path / "tasks", tmp_path / "process")
        other = DeltaTable.forPath(session, str(tmp_path / "process"))
        results = []
        for one, limits, engine in (
            (table, {"driver_local_bytes": 0}, "Arrow in tasks"),
            (other, {}, "Arrow in the driver"),
        ):
            cost(session, **limits)
            builder = one.optimize().withTargetSize(TARGET)
            plan = builder.plan(zOrderBy=["id", "x"] if kind == "zorder" else ())
            assert plan.facts()["engine"] == engine
            cost(session)
            one.delete("id % 10 = 7")
            one.update("id % 10 = 5", {"s": "'changed'"})
            results.append(builder._executed(plan).collect()[0].metrics.asDict(recursive=True))
        ours, theirs = (digest(Path(one.detail().collect()[0].location)) for one in (table, other))
        assert ours == theirs
        assert not list((tmp_path / "tasks").glob("row_origins_*"))
        for name in ("numFilesAdded", "numFilesRemoved", "zOrderStats", "clusteringStats", "deletionVectorStats"):
            assert without_sizes(results[0][name]) == without_sizes(results[1][name])
        depths = [
            Table.open(tmp_path / name).clustering_quality(["id", "x"]).average_depth for name in ("tasks", "process")
        ]
        assert all(depths[0][column] <= 1.1 * depths[1][column] for column in ("id", "x"))


def made(session: SparkSession, path: Path, *, clustered: bool) -> DeltaTable:
    """Rows with ids in files with deletion vectors."""
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    columns, clustering = "id BIGINT, x BIGINT, s STRING", ["id", "x"] if clustered else []
    table = Table.create(path, columns, cluster_by=clustering, properties=properties)
    for start in range(3):
        ids = np.arange(start, ROWS, 3)
        table.append({"id": ids, "x": ids * 7919 % ROWS, "s": [f"s{i % 9}" for i in ids.tolist()]})
    table.delete("id % 10 = 3")
    return DeltaTable.forPath(session, str(path))


def digest(path: Path) -> tuple[str, set[tuple[str, ...]]]:
    """A digest of the rows with their ids, and the tags of files."""
    snapshot = Table.open(path).snapshot
    rows = read_plan(plan_scan(snapshot, None, row_ids=True)).read_all().sort_by("_row_id")
    tags = snapshot.files(("tags",))["tags"].to_pylist()
    assert rows.num_rows == ROWS - 2 * ROWS // 10
    return hashlib.sha256(repr(rows.to_pydict()).encode()).hexdigest(), {tuple(dict(some or ())) for some in tags}


def without_sizes(metrics: Any) -> Any:
    """Metrics without bytes: files with other orders of rows differ by a few."""
    if not isinstance(metrics, dict):
        return metrics
    return {name: without_sizes(value) for name, value in metrics.items() if name != "size"}


class TestClassic(Clustering):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Clustering):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
