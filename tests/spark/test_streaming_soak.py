"""Streams that run for long beside writers and maintenance: exact rows, flat memory, a small checkpoint."""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.lengths import FULL

from pyspark_delta import Table

pytestmark = pytest.mark.spark

SECONDS = 3600 if FULL else 300
# Seconds from commit to commit, from round to round of maintenance, and from batch to batch. The usual length runs
# beside all other tests, so it leaves the processors to them.
_COMMIT, _ROUND, _BATCH = (0.2, 2.0, 0) if FULL else (1.0, 10.0, 4)
KEYS = 7
_MOST_MIB = 64  # by which the memory of this process may grow after the first third
_RETAINED = 10  # batches in a checkpoint


class Writer(Thread):
    """Appends small files until it is told to stop, and counts what it has written."""

    def __init__(self, location: str, number: int, stop: Event) -> None:
        super().__init__(name=f"writer {number}")
        self.location, self.number, self.stop = location, number, stop
        self.written: Counter[int] = Counter()
        self.commits = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self.stop.wait(_COMMIT):
                rows = [self.commits * 10 + i for i in range(10)]
                keys = [row % KEYS for row in rows]
                Table.open(self.location).append({"writer": [self.number] * 10, "row": rows, "key": keys})
                self.written.update(keys)
                self.commits += 1
        except Exception as error:
            self.error = error


class Maintainer(Thread):
    """Compacts the table and looks for files to delete, as long as the writers run."""

    def __init__(self, location: str, stop: Event) -> None:
        super().__init__(name="maintenance")
        self.location, self.stop = location, stop
        self.rounds = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self.stop.wait(_ROUND):
                Table.open(self.location).optimize()
                Table.open(self.location).vacuum()
                self.rounds += 1
        except Exception as error:
            self.error = error


@contextmanager
def _running(*threads: Writer | Maintainer) -> Iterator[None]:
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop.set()
            thread.join()
    assert [thread.error for thread in threads if thread.error is not None] == []


def test_streams_run_for_long(spark: SparkSession, tmp_path: Path) -> None:
    source, copy, totals = (str(tmp_path / name) for name in ("source", "copy", "totals"))
    Table.create(source, "writer INT, row BIGINT, key BIGINT")
    stop = Event()
    writers, maintainer = [Writer(source, number, stop) for number in (1, 2)], Maintainer(source, stop)
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", str(_RETAINED))
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 20).load(source)
    counts = rows.groupBy("key").count()
    queries = [_started(rows.writeStream, copy), _started(counts.writeStream.outputMode("complete"), totals)]
    try:
        with _running(*writers, maintainer):
            memory = _memory_over(SECONDS)
        for query in queries:
            query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
    assert maintainer.rounds > 0
    assert [query.exception() for query in queries] == [None, None]

    written = [(writer.number, row) for writer in writers for row in range(writer.commits * 10)]
    found = Table.open(copy).scan(columns=["writer", "row"]).to_arrow().to_pylist()
    assert sorted((row["writer"], row["row"]) for row in found) == sorted(written)
    expected = writers[0].written + writers[1].written
    assert {row["key"]: row["count"] for row in Table.open(totals).scan().to_arrow().to_pylist()} == dict(expected)

    assert memory[-1] - memory[len(memory) // 3] < _MOST_MIB
    offsets = [name for name in os.listdir(f"{copy}-checkpoint/offsets") if name.isdecimal()]
    assert len(offsets) <= 2 * _RETAINED + 1


def _started(stream: DataStreamWriter, location: str) -> StreamingQuery:
    return (
        stream.format("delta")
        .option("checkpointLocation", f"{location}-checkpoint")
        .trigger(processingTime=f"{_BATCH} seconds")
        .start(location)
    )


def _memory_over(seconds: float) -> list[float]:
    """The peak of the memory of this process in MiB, several times until so many seconds have passed."""
    found, pause, end = [], Event(), time.monotonic() + seconds
    while time.monotonic() < end:
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        pause.wait(seconds / 30)
    return found
