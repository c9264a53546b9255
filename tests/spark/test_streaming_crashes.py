"""Queries that are stopped or killed while they write a batch, and started again: every row is written once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming import StreamingQuery
from tests.lengths import FULL
from tests.spark.streaming_crash import POINTS, POINTS_OF_SINK, POINTS_OF_SOURCE, source_of
from tests.spark.streams import LIMIT, Source, ids, numbers, run, transactions, writer

from pyspark_delta import Table, streaming_batch
from pyspark_delta.spark.engine.write.save import FrameRows
from pyspark_delta.spark.streaming.sink import BatchRows, StreamWrite
from pyspark_delta.transaction import identity_allocation
from pyspark_delta.write import pipeline

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def killed(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of queries that were killed at each point."""
    folder = tmp_path_factory.mktemp("killed")
    for name in POINTS_OF_SINK:
        Source(delta_spark, folder / name, files=3)
    for name in POINTS_OF_SOURCE.values():
        delta_spark.range(0, 30, 1, 3).write.format("delta").save(str(folder / name / "source"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    process = subprocess.run(
        [sys.executable, "-m", "tests.spark.streaming_crash", str(folder)],
        env=environment,
        cwd=folder,
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr[-3000:]
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_c180_a_killed_query_writes_every_batch_once(delta_spark: SparkSession, killed: Path, point: str) -> None:
    folder = killed / point
    path, checkpoint = folder / "t", folder / "c"
    assert numbers(checkpoint / "offsets") == ([0] if point == "latest" else [0, 1])
    assert numbers(checkpoint / "commits") == [0]
    assert Table.open(path).version == (1 if point == "committed" else 0)
    files = set(path.glob("*.parquet"))
    assert len(files) == (2 if point in ("files", "committed") else 1)

    query = run(writer(source_of(delta_spark, folder, point), checkpoint).start(str(path)))
    assert ids(path) == list(range(30))
    assert (Table.open(path).version, transactions(path)) == (2, {query.id: 2})
    assert numbers(checkpoint / "commits") == [0, 1, 2]
    written = len(set(path.glob("*.parquet")) - files)
    assert written == (1 if point == "committed" else 2)


@pytest.fixture
def source(delta_spark: SparkSession, tmp_path: Path) -> Source:
    return Source(delta_spark, tmp_path, files=3)


def stop(query: StreamingQuery) -> None:
    query.stop()
    assert query.exception() is None


# Steps of a batch, as functions of the package, in order. A query is stopped before or after one of them.
STEPS: tuple[tuple[Any, str], ...] = (
    (StreamWrite, "write"),
    (BatchRows, "rows"),
    (FrameRows, "write_new"),
    (pipeline, "draft_plan"),
    (identity_allocation, "commit_draft"),
)


def test_a_query_that_is_stopped_in_a_batch_goes_on_later(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark interrupts the thread of the query, which goes on for a while or sees the interruption at once."""
    path, checkpoint, seed = str(tmp_path / "t"), tmp_path / "c", random.randrange(10**6)
    moments = [(step, when) for step in STEPS for when in ("before", "after")]
    for (owner, name), when in moments if FULL else random.Random(seed).sample(moments, 3):
        before, reached, stopping = getattr(owner, name), Event(), Event()

        def wait(reached: Event = reached, stopping: Event = stopping) -> None:
            reached.set()
            assert stopping.wait(LIMIT)

        def step(*args: Any, before: Any = before, when: str = when, wait: Any = wait, **kwargs: Any) -> Any:
            if when == "before":
                wait()
            result = before(*args, **kwargs)
            if when == "after":
                wait()
            return result

        source.add()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, step)
            query = writer(source.stream(), checkpoint).start(path)
            assert reached.wait(LIMIT), f"{name} was not reached (seed {seed})"
            stopping.set()
            stop(query)
    query = run(writer(source.stream(), checkpoint).start(path))
    assert ids(path) == source.ids, f"seed {seed}"
    assert (Table.open(path).version, transactions(path)) == (source.files - 1, {query.id: source.files - 1})


@pytest.mark.parametrize("in_function", [False, True])
def test_a_query_is_stopped_in_a_job(source: Source, tmp_path: Path, *, in_function: bool) -> None:
    """The rows never come: a worker waits until it is killed. The sink is ours, or a function that writes."""
    path, checkpoint, pipe = str(tmp_path / "t"), tmp_path / "c", str(tmp_path / "pipe")
    os.mkfifo(pipe)

    @udf("long", useArrow=False)
    def never(number: int) -> int:
        with open(pipe, "w") as file:
            file.write("waiting")
            file.flush()
            signal.pause()
        return number

    def write(batch: DataFrame, number: int) -> None:
        with streaming_batch(batch, number):
            batch.write.format("delta").mode("append").save(path)

    def start(stream: DataFrame) -> StreamingQuery:
        made = writer(stream, checkpoint)
        query: StreamingQuery = made.foreachBatch(write).start() if in_function else made.start(path)
        return query

    stream = source.stream()
    query = start(stream.select(never("id").alias("id")))
    with open(pipe) as file:
        assert file.read(7) == "waiting"
        stop(query)
    run(start(stream))
    assert ids(path) == source.ids
