"""B34: read a table as a stream: a backlog of big files, many small commits, and commits as they come.

Spark's own source of Parquet files reads the same files.
"""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.model import OURS, Dataset, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size

_HERE = __name__
_INNER, _PROCESSES = 3, 2
PARQUET, DELTA_SPARK, PYTHON_SOURCE = "Spark's Parquet source", "delta-spark", "pyspark-delta, not enabled"
_EVERY = (OURS, PARQUET, DELTA_SPARK)
ROUNDS = 10  # commits that are followed


def workload(scale: Scale) -> Workload:
    """Throughput by columns, the cost of a batch, and the time from commit to commit."""
    commits = scale.commits[0]
    big = dataset("data", rows=scale.rows, files=8)
    small = dataset("changes", kind="appends", commits=commits, changes=commits * 10)
    marked = dataset("data", rows=scale.rows, files=9, deleted=0.1, every=3)
    rewrites = dataset("changes", kind="rewrites", commits=commits, changes=scale.rows // 2)
    whole = (Goal(PARQUET, 1 / 1.1), Goal(DELTA_SPARK, 1))
    return Workload(
        "B34",
        "Stream from a table",
        (
            Peer(OURS, f"{_HERE}:ours", inner=_INNER, processes=_PROCESSES, session=True),
            Peer(PARQUET, f"{_HERE}:parquet", inner=_INNER, processes=_PROCESSES, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", _INNER, processes=1, session=True),
            Peer(PYTHON_SOURCE, f"{_HERE}:python_source", inner=_INNER, processes=_PROCESSES, session=True),
        ),
        (
            _variant(f"{size(scale.rows)} rows, all columns", big, whole, peers=(*_EVERY, PYTHON_SOURCE)),
            _variant(f"{size(scale.rows)} rows, two columns", big, whole, columns=["id", "amount"]),
            _variant(f"{size(scale.rows)} rows, aggregate", big, whole, aggregate=True),
            _variant(
                f"{size(commits)} commits of a file, 10 a batch",
                small,
                (Goal(PARQUET, 1), Goal(DELTA_SPARK, 1.5)),
                limit=10,
            ),
            _variant("deletion vectors in a third", marked, (Goal(DELTA_SPARK, 1),), peers=(OURS, DELTA_SPARK)),
            _variant("change feed", rewrites, (Goal(DELTA_SPARK, 1),), peers=(OURS, DELTA_SPARK), changes=True),
            _variant(f"{ROUNDS} commits followed", small, (Goal(PARQUET, 0.9), Goal(DELTA_SPARK, 1)), followed=True),
        ),
    )


def _variant(
    name: str, made_of: Dataset, goals: tuple[Goal, ...], peers: tuple[str, ...] = _EVERY, **arguments: Any
) -> Variant:
    return Variant(name, made_of, arguments, goals, peers=peers)


def ours(location: str, **arguments: Any) -> Prepared:
    """By the native source of an enabled session."""
    return _prepared("ours", "delta", location, **arguments)


def parquet(location: str, **arguments: Any) -> Prepared:
    """By Spark's source of Parquet files."""
    return _prepared("parquet", "parquet", location, **arguments)


def delta_spark(location: str, **arguments: Any) -> Prepared:
    """By delta-spark."""
    return _prepared("delta-spark", "delta", location, **arguments)


def python_source(location: str, **arguments: Any) -> Prepared:
    """By the Python Data Source, without `enable`."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DefaultSource

    session("parquet").dataSource.register(DefaultSource)
    return _prepared("parquet", "delta", location, **arguments)


def _prepared(
    reader: str,
    source: str,
    location: str,
    columns: list[str] | None = None,
    aggregate: bool = False,
    limit: int | None = None,
    changes: bool = False,
    followed: bool = False,
) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session(reader)
    if followed:
        return _followed(spark, source)
    schema = spark.read.format(source).load(location).schema
    # The initial snapshot has no changes: the feed begins with the first version.
    options = {"readChangeFeed": "true", "startingVersion": "1"} if changes else {}
    if limit is not None:
        options["maxFilesPerTrigger"] = str(limit)

    def timed() -> list[Any]:
        stream = spark.readStream.format(source).options(**options)
        frame = (stream.schema(schema) if source == "parquet" else stream).load(location)
        frame = frame if columns is None else frame.select(*columns)
        if aggregate:
            frame = frame.groupBy("city").agg({"amount": "sum"})
        with tempfile.TemporaryDirectory(prefix="stream-") as checkpoint:
            writer = frame.writeStream.format("noop").outputMode("complete" if aggregate else "append")
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
            return list(query.recentProgress)

    return Prepared(timed, lambda progress: sum(one["numInputRows"] for one in progress))


def _followed(spark: Any, source: str) -> Prepared:
    """Append a file, wait until the stream has read it, and so on."""
    rows = spark.range(100)
    folder = tempfile.TemporaryDirectory(prefix="followed-")
    location = f"{folder.name}/table"
    rows.write.format(source).save(location)
    stream = spark.readStream.format(source)
    frame = (stream.schema("id LONG") if source == "parquet" else stream).load(location)
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", f"{folder.name}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start()
    )
    query.processAllAvailable()

    def timed() -> int:
        assert folder.name  # the table lives as long as this function
        for _ in range(ROUNDS):
            rows.coalesce(1).write.format(source).mode("append").save(location)
            query.processAllAvailable()
        return ROUNDS

    return Prepared(timed)
