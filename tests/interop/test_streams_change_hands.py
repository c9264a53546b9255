"""Checkpoints of streams that delta-spark and this package use by turns: both plan and read the same batches.

The files of the table have the same modification time, and paths that are sorted in another way once they are decoded.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.lengths import length
from tests.spark.made_tables import DataFile, make_table
from tests.spark.stream_runs import rewind, run

Batches: TypeAlias = dict[int, list[Any]]
Stream: TypeAlias = Callable[[], Batches]
Sources: TypeAlias = list[dict[str, Any]]

PARTITIONS = {
    "z.parquet": "z",
    "é.parquet": "é",
    "p=a b/x.parquet": "a b",
    "p=a%2Fb/x.parquet": "a/b",
    "a+b.parquet": None,
}
CHANGES = ["id", "p", "_change_type", "_commit_version"]


@pytest.fixture
def table(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> Path:
    files = [
        DataFile(
            pa.table({"id": pa.array(range(10 * n, 10 * n + 4), pa.int64())}), {"p": value}, (1,) if n % 2 else (), name
        )
        for n, (name, value) in enumerate(PARTITIONS.items())
    ]
    path = make_table(tmp_path / "table", files, partition_by={"p": "string"})
    delta_spark_server.sql(f"alter table delta.`{path}` set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    return Path(path)


def offsets(checkpoint: Path) -> dict[str, str]:
    """The offsets of each batch, as text."""
    found = (path for path in (checkpoint / "offsets").iterdir() if path.name.isdecimal())
    return {path.name: path.read_text().splitlines()[2] for path in found}


def assert_same(checkpoint: Path, first: Stream, second: Stream, repeated: int, *, same_texts: bool) -> int:
    """Run the stream once more from a batch that is planned and not complete; return the number of the next batch."""
    expected = first()
    planned = offsets(checkpoint)
    rewind(checkpoint, repeated)
    found = second()
    assert found == {number: rows for number, rows in expected.items() if number >= repeated}
    if same_texts:
        assert offsets(checkpoint) == planned
    return max(found) + 1


def our_batches(spark: SparkSession, sources: Sources, checkpoint: Path, columns: list[str]) -> Batches:
    streams = [spark.readStream.format("delta").options(**one["options"]).load(one["path"]) for one in sources]
    batches = run(reduce(DataFrame.union, [one.select(*columns) for one in streams]), checkpoint).batches
    return {number: sorted(map(list, rows), key=str) for number, rows in batches.items()}


def their_batches(server: DeltaSparkServer, sources: Sources, checkpoint: Path, columns: list[str]) -> Batches:
    found = server.ask("batches", sources=sources, checkpoint=str(checkpoint), columns=columns)
    return {int(number): rows for number, rows in found.items()}


@pytest.mark.parametrize("is_feed", [False, True])
def test_batches_are_the_same(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, table: Path, tmp_path: Path, is_feed: bool
) -> None:
    checkpoint, columns = tmp_path / "c", CHANGES if is_feed else ["id", "p"]
    options = {"maxFilesPerTrigger": "2", **({"readChangeFeed": "true"} if is_feed else {})}

    sources = [{"path": str(table), "options": options}]
    ours = partial(our_batches, our_spark, sources, checkpoint, columns)
    theirs = partial(their_batches, delta_spark_server, sources, checkpoint, columns)
    number = assert_same(checkpoint, theirs, ours, 1, same_texts=True)  # within the initial snapshot
    assert number == 3
    for first, second in ((ours, theirs), (theirs, ours)):
        append = "select id, concat('p ', id % 3) as p from range({0}, {0} + 9, 1, 3)"
        delta_spark_server.ask("append", path=str(table), select=append.format(100 * number))
        if is_feed:
            delta_spark_server.sql(f"update delta.`{table}` set id = -id where id = {100 * number}")
        our_spark.sql(append.format(100 * number + 50)).write.format("delta").mode("append").save(str(table))
        # After the change data files of a commit, delta-spark's offset may still name the commit.
        number = assert_same(checkpoint, first, second, number + 1, same_texts=not is_feed)


class Turns:
    """A query over one table twice and another table, which either engine continues, and changes of the tables."""

    def __init__(self, spark: SparkSession, server: DeltaSparkServer, folder: Path, seed: int) -> None:
        self.spark, self.server, self.random = spark, server, random.Random(seed)
        self.paths, self.checkpoint = [str(folder / "one"), str(folder / "other")], folder / "c"
        options = {"skipChangeCommits": "true"}
        self.sources: Sources = [
            {"path": path, "options": {**options, "maxFilesPerTrigger": str(limit)}}
            for path, limit in ((self.paths[0], 3), (self.paths[0], 1), (self.paths[1], 2))
        ]
        self.added: list[list[int]] = [[], []]
        self.rows: dict[int, list[Any]] = {}

    def append(self) -> None:
        which = self.random.randrange(2)
        first = len(self.added[0]) + len(self.added[1])
        end = first + self.random.randint(1, 8)
        self.added[which] += range(first, end)
        files = self.random.randint(1, 3)
        if self.random.random() < 0.5:
            frame = self.spark.range(first, end, 1, files)
            frame.write.format("delta").mode("append").save(self.paths[which])
        else:
            statement = f"select id from range({first}, {end}, 1, {files})"
            self.server.ask("append", path=self.paths[which], select=statement)

    def change(self) -> None:
        """A change that streams skip."""
        path = self.random.choice(self.paths)
        statement = self.random.choice([f"optimize delta.`{path}`", f"delete from delta.`{path}` where id % 7 = 3"])
        if self.random.random() < 0.5:
            self.spark.sql(statement)
        else:
            self.server.sql(statement)

    def run(self) -> None:
        """Let one engine run the query; often from a batch that was planned and not completed."""
        if len(self.rows) > 1 and self.random.random() < 0.7:
            rewind(self.checkpoint, max(self.rows))
        if self.random.random() < 0.5:
            found = our_batches(self.spark, self.sources, self.checkpoint, ["id"])
        else:
            found = their_batches(self.server, self.sources, self.checkpoint, ["id"])
        for number, rows in found.items():
            assert self.rows.setdefault(number, rows) == rows


@pytest.mark.parametrize("seed", range(length(1, 10)))
def test_random_turns_lose_and_double_no_row(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, seed: int
) -> None:
    turns = Turns(our_spark, delta_spark_server, tmp_path, seed)
    for path in turns.paths:
        properties = "tblproperties ('delta.enableDeletionVectors' = 'true')"
        delta_spark_server.sql(f"create table delta.`{path}` (id bigint) using delta {properties}")
    for turn in range(length(6, 30)):
        for _ in range(turns.random.randint(1, 3)):
            turns.append()
        turns.run()
        if turn:
            turns.change()
    turns.run()
    found = sorted(row[0] for rows in turns.rows.values() for row in rows)
    assert found == sorted([*turns.added[0] * 2, *turns.added[1]])
