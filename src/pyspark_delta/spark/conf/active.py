"""The active session of the JVM, whose settings Spark 3.5 gives to SQL in texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_delta.spark.conf.classes import has_classic_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread while the block runs, on Spark 3.5.

    There, `F.expr` parses a text at once, with the settings of the active session: another one may allow that numbers
    overflow. From 4.0 on, the session of the frame parses it.
    """
    if has_classic_package():
        yield
        return
    java: Any = spark
    sessions = java._jvm.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(java._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
