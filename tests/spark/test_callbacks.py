"""Threads of the JVM call Python on connections of their own, which do not accumulate."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_delta import Table


def test_connections_of_threads_that_have_ended_are_closed(delta_spark: SparkSession, tmp_path: Path) -> None:
    Table.write(tmp_path / "t", [{"id": 1}, {"id": 2}])
    frame = delta_spark.read.format("delta").load(str(tmp_path / "t"))
    jvm: Any = delta_spark.sparkContext._jvm
    plan = frame._jdf.queryExecution().analyzed()
    index = plan.collectLeaves().head().relation().location()
    runnable = jvm.java.lang.Class.forName("java.lang.Runnable")
    before = set(threading.enumerate())
    for _ in range(20):
        thread = jvm.java.lang.Thread(jvm.java.beans.EventHandler.create(runnable, index, "sizeInBytes"))
        thread.start()
        thread.join()
    served = set(threading.enumerate()) - before
    assert len(served) >= 20  # and those that other tests left running
    deadline = time.monotonic() + 30
    while sum(one.is_alive() for one in served) >= 10 and time.monotonic() < deadline:
        jvm.java.lang.System.gc()  # Py4J releases objects of the JVM a little later than Python does
        min(served, key=lambda one: not one.is_alive()).join(0.2)
    assert sum(one.is_alive() for one in served) < 10  # without the release, all of them
