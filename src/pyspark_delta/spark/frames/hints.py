"""Spark's hint to exchange rows in parts of similar size; PySpark 3.5 passes no columns to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.conf.classes import has_classic_package
from pyspark_delta.spark.frames.catalyst.columns import expression_of
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of

_NAME = "rebalance"


def rebalanced(frame: DataFrame, parts: Sequence[int], names: Sequence[str]) -> DataFrame:
    """Return the frame with rows of equal values of the named columns in one part; `parts` has at most one number."""
    if has_classic_package():
        return frame.hint(_NAME, *parts, *names)
    jvm, java = jvm_of(frame.sparkSession), frame._jdf
    columns: list[Any] = [expression_of(jvm, F.col(name)) for name in names]
    return DataFrame(java.hint(_NAME, jvm.seq([*parts, *columns])), frame.sparkSession)
