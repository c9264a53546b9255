"""B35: write a stream to a table: ten batches of rows, and many small batches.

The stream reads Parquet files with Spark's own source, which all peers share; Spark's own sink writes Parquet files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size

_HERE = __name__
_INNER, _PROCESSES = 3, 2
PARQUET, DELTA_SPARK, SNAPPY = "Spark's Parquet sink", "delta-spark", "pyspark-delta, snappy"
BATCHES = 10


def workload(scale: Scale) -> Workload:
    """Throughput, and the cost of a batch."""
    rows = dataset("data", rows=scale.rows, files=BATCHES)
    small = dataset("changes", kind="appends", commits=100, changes=1_000)
    goals = (Goal(PARQUET, 1 / 1.1), Goal(DELTA_SPARK, 1))
    return Workload(
        "B35",
        "Stream to a table",
        (
            Peer(OURS, f"{_HERE}:ours", inner=_INNER, processes=_PROCESSES, session=True),
            Peer(SNAPPY, f"{_HERE}:snappy", inner=_INNER, processes=_PROCESSES, session=True),
            Peer(PARQUET, f"{_HERE}:parquet", inner=_INNER, processes=_PROCESSES, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", _INNER, processes=1, session=True),
        ),
        (
            Variant(f"{size(scale.rows)} rows in {BATCHES} batches", rows, {"files": 1}, goals),
            Variant("100 small files in 20 batches", small, {"files": 5}, goals),
        ),
    )


def ours(location: str, files: int) -> Prepared:
    """By the native sink of an enabled session."""
    return _prepared("ours", "delta", location, files)


def snappy(location: str, files: int) -> Prepared:
    """With the codec that Spark's writers take by default, in place of zstd."""
    return _prepared("ours", "delta", location, files, compression="snappy")


def parquet(location: str, files: int) -> Prepared:
    """By Spark's sink of Parquet files."""
    return _prepared("parquet", "parquet", location, files)


def delta_spark(location: str, files: int) -> Prepared:
    """By delta-spark."""
    return _prepared("delta-spark", "delta", location, files)


def _prepared(writer: str, sink: str, location: str, files: int, **options: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session(writer)
    schema = spark.read.parquet(location).schema

    def timed() -> int:
        with tempfile.TemporaryDirectory(prefix="stream-") as folder:
            stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", str(files)).parquet(location)
            query = (
                stream.writeStream.format(sink)
                .option("checkpointLocation", str(Path(folder, "checkpoint")))
                .options(**options)
                .trigger(availableNow=True)
                .start(str(Path(folder, "table")))
            )
            query.awaitTermination()
            return sum(int(progress["numInputRows"]) for progress in _progress(query))

    return Prepared(timed)


def _progress(query: Any) -> list[Any]:
    return list(query.recentProgress)
