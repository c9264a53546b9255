"""B36: the first batch of a stream from a table of many files, which has to order all of them.

The data files do not exist, so a condition that is never true keeps the batch from reading them.
"""

from __future__ import annotations

import json
import tempfile
import time
from typing import Any

from benchmarks.model import OURS, Goal, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.workloads.logs import log

_HERE = __name__
DELTA_SPARK = "delta-spark"
FILES_OF_A_BATCH = 100


def workload(scale: Scale) -> Workload:
    """Time and memory, once in a process: memory that an earlier run has taken would hide that of a later one."""
    files = scale.files[2]
    goals = (Goal(DELTA_SPARK, 3), Goal(DELTA_SPARK, 3, "added_mib"))
    return Workload(
        "B36",
        "First batch of a stream",
        (
            Peer(OURS, f"{_HERE}:ours", processes=2),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", DELTA_SPARK, processes=2),
        ),
        (Variant(f"{size(files)} files", log(files), {}, goals),),
    )


def ours(location: str) -> Prepared:
    """By the native source of an enabled session."""
    return _prepared("ours", location)


def delta_spark(location: str) -> Prepared:
    """By delta-spark."""
    return _prepared("delta-spark", location)


def _prepared(reader: str, location: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session(reader)
    with tempfile.TemporaryDirectory(prefix="small-") as small:
        spark.range(10).write.format("delta").save(f"{small}/table")
        _first_batch(spark, f"{small}/table")
    return Prepared(lambda: _first_batch(spark, location))


def _first_batch(spark: Any, location: str) -> int:
    """Start a query, wait for its first batch, and return the index of the last file of the batch."""
    with tempfile.TemporaryDirectory(prefix="stream-") as checkpoint:
        frame = spark.readStream.format("delta").option("maxFilesPerTrigger", FILES_OF_A_BATCH).load(location)
        writer = frame.where("false").writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(processingTime="1 hour").start()
        while not query.recentProgress and query.isActive:
            time.sleep(0.005)
        if (error := query.exception()) is not None:
            raise error
        query.stop()
        index: int = json.loads(query.recentProgress[0]["sources"][0]["endOffset"])["index"]
        return index
