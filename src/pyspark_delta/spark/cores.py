"""How many tasks a session can run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNKNOWN = 8


def cores_of(spark: SparkSession) -> int:
    """The cores of all workers, as far as Spark knows; Spark Connect does not tell, and some number is given."""
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except Exception:
        return _UNKNOWN
