"""Streams that run for long beside writers and maintenance: exact rows, flat memory, a small checkpoint.

The session has Delta's own source and sink, which run in this process. Writers and maintenance have another one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.lengths import FULL
from tests.spark.soak_writers import KEYS, Done, rows_of

from pyspark_delta import Table

pytestmark = pytest.mark.spark

SECONDS = 3600 if FULL else 300
# Seconds from commit to commit, from round to round of maintenance, and from batch to batch. The usual length runs
# beside all other tests, so it leaves the processors to them.
_COMMIT, _ROUND, _BATCH = (0.2, 2.0, 0) if FULL else (1.0, 10.0, 4)
_MOST_MIB = 64  # by which the memory of this process may grow after the first third
_RETAINED = 10  # batches in a checkpoint


def test_streams_run_for_long(delta_spark: SparkSession, tmp_path: Path) -> None:
    spark = delta_spark
    source, copy, totals = (str(tmp_path / name) for name in ("source", "copy", "totals"))
    Table.create(source, "writer INT, row BIGINT, key BIGINT")
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", str(_RETAINED))
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 20).load(source)
    counts = rows.groupBy("key").count()
    queries = [_started(rows.writeStream, copy), _started(counts.writeStream.outputMode("complete"), totals)]
    try:
        with _writing(source) as process:
            memory = _memory_over(SECONDS)
            done = _ended(process)
        for query in queries:
            query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")
    assert done.rounds > 0
    assert [query.exception() for query in queries] == [None, None]

    written = [
        (writer, row) for writer, commits in enumerate(done.commits, 1) for n in range(commits) for row in rows_of(n)
    ]
    found = Table.open(copy).scan(columns=["writer", "row"]).to_arrow().to_pylist()
    assert sorted((row["writer"], row["row"]) for row in found) == written
    expected = Counter(row % KEYS for _, row in written)
    assert {row["key"]: row["count"] for row in Table.open(totals).scan().to_arrow().to_pylist()} == dict(expected)

    assert memory[-1] - memory[len(memory) // 3] < _MOST_MIB
    offsets = [name for name in os.listdir(f"{copy}-checkpoint/offsets") if name.isdecimal()]
    assert len(offsets) <= 2 * _RETAINED + 1


@contextmanager
def _writing(location: str) -> Iterator[subprocess.Popen[str]]:
    """A process of writers and maintenance."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.soak_writers", location, str(_COMMIT), str(_ROUND)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _ended(process: subprocess.Popen[str]) -> Done:
    """Let the process end, and return what it has done."""
    said, _ = process.communicate()
    assert process.returncode == 0
    return Done(**json.loads(said))


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
