"""Processes that change one table on HDFS, some of them killed: no commit is lost or doubled, and nothing half is seen.

The processes have no Spark session. They use Hadoop's client as tasks do: in a JVM of their own, or in the driver's.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from tests.plugins.hdfs import SETTINGS
from tests.processes import processes

from pyspark_delta.errors import CommitConflictError
from pyspark_delta.spark.hadoop.client import HadoopFileSystem
from pyspark_delta.spark.hadoop.connections import TaskAccess, use_access
from pyspark_delta.spark.hadoop.tasks import with_hadoop_access
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import file_name
from pyspark_delta.storage.temporary import LEFTOVER_AGE
from pyspark_delta.table import Table

WRITERS, ROUNDS, KILLED = 4, 3, 2


def access_of(spark: SparkSession) -> TaskAccess:
    """What a task of a local master gets."""
    task: Any = with_hadoop_access(spark, iter)
    return cast(TaskAccess, task.args[0])


def write(location: str, access: TaskAccess | None, number: int, told: Connection) -> None:
    """Append a row and add one to a row that all writers change, again and again; tell of each commit."""
    if access is not None:
        use_access(access)
    table = Table.open(location, storage_options=SETTINGS)
    for step in range(ROUNDS):
        table.append({"id": [100 * number + step], "n": [0]})
        told.send(100 * number + step)
        while True:
            try:
                table.update({"n": "n + 1"}, "id = 0")
                break
            except CommitConflictError:
                table.refresh()
        told.send(None)
    told.close()


def start(target: Callable[..., None], *arguments: Any) -> tuple[Any, Connection]:
    reader, writer = processes().Pipe(duplex=False)
    process = processes().Process(target=target, args=(*arguments, writer))
    process.start()
    writer.close()
    return process, reader


def test_killed_writers_lose_and_double_nothing(hdfs_spark: SparkSession, hdfs_path: str) -> None:
    Table.create(hdfs_path, "id BIGINT, n BIGINT").append({"id": [0], "n": [0]})
    accesses = None, access_of(hdfs_spark)
    running = {}
    for number in range(WRITERS):
        process, reader = start(write, hdfs_path, accesses[number % 2], number + 1)
        running[reader] = process
    to_kill, successor = list(running)[:KILLED], WRITERS + 1
    appended, updates = [0], 0
    while running:
        for reader in wait(list(running)):
            assert isinstance(reader, Connection)
            try:
                done = reader.recv()
            except EOFError:
                running.pop(reader).join()
                continue
            appended += [] if done is None else [done]
            updates += done is None
            if reader in to_kill:
                to_kill.remove(reader)
                running[reader].kill()  # in the middle of its next commit
                process, another = start(write, hdfs_path, accesses[1], successor)
                running[another] = process
                successor += 1

    table = Table.open(hdfs_path)
    rows = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert set(appended) <= set(rows)
    assert updates <= rows[0]
    assert len(rows) - len(appended) + rows[0] - updates <= KILLED  # what a killed writer was committing
    assert table.scan().to_arrow().num_rows == len(rows)
    assert table.version == len(rows) + rows[0]  # the creation, and one version for each row and each update
    frame = hdfs_spark.read.format("delta").load(hdfs_path)
    assert {row["id"]: row["n"] for row in frame.collect()} == rows


# ------------------------------------------------------------------------------------------------ crash points
def append_and_die(location: str, access: TaskAccess, point: str, told: Connection) -> None:
    """Append a row; the process ends at one point of its commit."""
    use_access(access)
    rename, create = HadoopFileSystem.rename, HadoopFileSystem.create

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def renamed(self: HadoopFileSystem, source: str, target: str, *, replace: bool) -> None:
        is_commit = target.endswith("1.json")
        if (is_commit and point == "commit written") or (not is_commit and point == "data written"):
            die()
        rename(self, source, target, replace=replace)
        if is_commit and point == "commit renamed":
            die()

    def created(self: HadoopFileSystem, target: str) -> Any:
        stream = create(self, target)
        if point == "commit created" and "_delta_log" in target:
            die()
        return stream

    HadoopFileSystem.rename, HadoopFileSystem.create = renamed, created  # type: ignore[method-assign]
    Table.open(location, storage_options=SETTINGS).append({"id": [1]})
    told.send("not killed")


POINTS = {"data written": 0, "commit created": 0, "commit written": 0, "commit renamed": 1}


def test_a_crash_leaves_all_or_nothing(hdfs_spark: SparkSession, hdfs_path: str) -> None:
    started = {}
    for point in POINTS:
        location = f"{hdfs_path}/{point.replace(' ', '-')}"
        Table.create(location, "id BIGINT")
        started[point] = location, *start(append_and_die, location, access_of(hdfs_spark), point)
    for point, (location, process, reader) in started.items():
        with pytest.raises(EOFError):
            reader.recv()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        table = Table.open(location)
        assert (table.version, table.scan().to_arrow().num_rows) == (POINTS[point], POINTS[point]), point
        store = store_for(location)
        names = [file_name(found.path) for found in store.list_from(f"{location}/_delta_log/")]
        assert [name for name in names if name.endswith(".json")] == [
            f"{v:020d}.json" for v in range(table.version + 1)
        ]
        assert not any(name.startswith(".") for name in names)
        table.append({"id": [2]})
        assert hdfs_spark.read.format("delta").load(location).count() == POINTS[point] + 1

        left = temporaries(hdfs_spark, location)
        assert len(left) == (point != "commit renamed"), left
        make_older(hdfs_spark, left)
        Table.open(location).clean_log()
        assert temporaries(hdfs_spark, location) == []


def temporaries(spark: SparkSession, location: str) -> list[str]:
    """Temporary files below a location, as Hadoop lists them."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    files = path.getFileSystem(jvm.org.apache.hadoop.conf.Configuration()).listFiles(path, True)
    found = []
    while files.hasNext():
        found.append(files.next().getPath().toString())
    return [one for one in found if file_name(one).startswith(".pyspark-delta-")]


def make_older(spark: SparkSession, paths: list[str]) -> None:
    jvm: Any = spark._jvm
    before = int(time.time() * 1000) - LEFTOVER_AGE - 60_000
    for path in paths:
        file = jvm.org.apache.hadoop.fs.Path(path)
        file.getFileSystem(jvm.org.apache.hadoop.conf.Configuration()).setTimes(file, before, -1)
