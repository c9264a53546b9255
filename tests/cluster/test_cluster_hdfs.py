"""Tables on HDFS from executors that are processes of their own: their tasks start Hadoop's client themselves."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from tests.costs import TASKS, set_cost
from tests.plugins.hdfs import SETTINGS

from pyspark_delta import DeltaTable


def test_tasks_write_and_change_rows_on_hdfs(delta_cluster: SparkSession, hdfs_path: str) -> None:
    hadoop: Any = delta_cluster.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in SETTINGS.items():
        hadoop.set(name, value)
    set_cost(delta_cluster, **TASKS)
    try:
        frame = delta_cluster.sql("select id, id % 10 n from range(0, 1000, 1, 4)")
        frame.write.format("delta").option("delta.enableDeletionVectors", "true").save(hdfs_path)
        table = DeltaTable.forPath(delta_cluster, hdfs_path)
        table.delete("n = 3")
        table.update("n = 4", {"n": "-1"})
        rows = delta_cluster.read.format("delta").load(hdfs_path).groupBy("n").count().collect()
        assert {row["n"]: row["count"] for row in rows} == dict.fromkeys((-1, 0, 1, 2, 5, 6, 7, 8, 9), 100)
        engines = [row["operation"] for row in table.history(3).collect()]
        assert engines == ["UPDATE", "DELETE", "WRITE"]
    finally:
        set_cost(delta_cluster)
        for name in SETTINGS:
            hadoop.unset(name)
