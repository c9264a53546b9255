"""The number of tasks that a session runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.spark.conf.sessions import ask_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENOUGH = 65_536  # rows: enough for every task to get some


def cores_of(spark: SparkSession) -> int:
    """Return the number of cores of all workers. On Spark Connect, a job counts them, once per session."""
    session = getattr(spark, "session_id", None)
    if session is None:
        return max(1, spark.sparkContext.defaultParallelism)
    tasks = spark.range(_ENOUGH).selectExpr("spark_partition_id()").distinct()
    return ask_once(session, "cores", lambda: max(1, tasks.count()))
