"""How many tasks a session can run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENOUGH = 65_536  # rows of which every task gets some
_told: dict[str, int] = {}  # by session of Spark Connect


def cores_of(spark: SparkSession) -> int:
    """The cores of all workers. Spark Connect tells them only by a job, which runs once for a session."""
    session = getattr(spark, "session_id", None)
    if session is None:
        return max(1, spark.sparkContext.defaultParallelism)
    if session not in _told:
        tasks = spark.range(_ENOUGH).selectExpr("spark_partition_id()").distinct().count()
        _told[session] = max(1, tasks)
    return _told[session]
