"""The number of tasks that a session runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENOUGH = 65_536  # rows, so many that every task gets some
_cores: dict[str, int] = {}  # by session of Spark Connect


def cores_of(spark: SparkSession) -> int:
    """Return the cores of all workers. On Spark Connect this takes a job, which runs once per session."""
    session = getattr(spark, "session_id", None)
    if session is None:
        return max(1, spark.sparkContext.defaultParallelism)
    if session not in _cores:
        tasks = spark.range(_ENOUGH).selectExpr("spark_partition_id()").distinct().count()
        _cores[session] = max(1, tasks)
    return _cores[session]
