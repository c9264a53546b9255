"""Threads whose Spark jobs count as those of the thread that starts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark import inheritable_thread_target

from pyspark_delta.spark.conf.classes import has_classic_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
R = TypeVar("R")


def inheriting(spark: SparkSession, function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose jobs, in any thread, have the job group, tags and scheduler pool of this thread."""
    target: Any = inheritable_thread_target
    if has_classic_package():  # PySpark 3.5 takes no session
        target = target(spark)
    inherited: Callable[P, R] = target(function)
    return inherited
