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


def our_batches(spark: SparkSession, sources: Sources, checkpoint: Path) -> Batches:
    streams = [spark.readStream.format("delta").options(**one["options"]).load(one["path"]) for one in sources]
    chosen = [stream.selectExpr(*one["columns"]) for stream, one in zip(streams, sources, strict=True)]
    batches = run(reduce(DataFrame.union, chosen), checkpoint).batches
    return {number: sorted(map(list, rows), key=str) for number, rows in batches.items()}


def their_batches(server: DeltaSparkServer, sources: Sources, checkpoint: Path) -> Batches:
    found = server.ask("batches", sources=sources, checkpoint=str(checkpoint))
    return {int(number): rows for number, rows in found.items()}


@pytest.mark.parametrize("is_feed", [False, True])
def test_batches_are_the_same(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, table: Path, tmp_path: Path, is_feed: bool
) -> None:
    checkpoint, columns = tmp_path / "c", CHANGES if is_feed else ["id", "p"]
    options = {"maxFilesPerTrigger": "2", **({"readChangeFeed": "true"} if is_feed else {})}

    sources = [{"path": str(table), "options": options, "columns": columns}]
    ours = partial(our_batches, our_spark, sources, checkpoint)
    theirs = partial(their_batches, delta_spark_server, sources, checkpoint)
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


NESTED = "named_struct('x', id, 'l', array(named_struct('y', -id)), 'm', map('k', named_struct('z', id))) as s"
ROWS, NESTED_ROWS, FEED = (["id", f"{text} as text"] for text in ("'-'", "to_json(s)", "_change_type"))


def nested_text(number: int) -> str:
    """The nested column of a row as JSON."""
    return f'{{"x":{number},"l":[{{"y":{-number}}}],"m":{{"k":{{"z":{number}}}}}}}'


class Turns:
    """A query which either engine continues, and changes of its tables.

    It reads a table of nested columns, whose names are mapped, twice; and the rows and the changes of another table.
    """

    def __init__(self, spark: SparkSession, server: DeltaSparkServer, folder: Path, seed: int) -> None:
        self.spark, self.server, self.random = spark, server, random.Random(seed)
        self.nested, self.flat, self.checkpoint = str(folder / "nested"), str(folder / "flat"), folder / "c"
        skipping, feed = {"skipChangeCommits": "true"}, {"readChangeFeed": "true"}
        self.sources: Sources = [
            {"path": path, "options": {**options, "maxFilesPerTrigger": str(limit)}, "columns": columns}
            for path, limit, options, columns in (
                (self.nested, 3, skipping, NESTED_ROWS),
                (self.nested, 1, skipping, NESTED_ROWS),
                (self.flat, 2, skipping, ROWS),
                (self.flat, 2, feed, FEED),
            )
        ]
        self.next_id = 0
        self.live: list[int] = []  # rows of the flat table
        self.expected: list[list[Any]] = []
        self.rows: dict[int, list[Any]] = {}

    def create(self) -> None:
        """Create the tables."""
        for path, select, properties in (
            (self.nested, f"id, {NESTED}", "'delta.columnMapping.mode' = 'name'"),
            (self.flat, "id", "'delta.enableChangeDataFeed' = 'true'"),
        ):
            properties = f"tblproperties ('delta.enableDeletionVectors' = 'true', {properties})"
            self.server.sql(f"create table delta.`{path}` using delta {properties} as select {select} from range(0)")

    def append(self) -> None:
        """Add rows to one of the tables."""
        first = self.next_id
        self.next_id = end = first + self.random.randint(1, 8)
        is_nested = self.random.random() < 0.5
        if is_nested:
            self.expected += [[number, nested_text(number)] for number in range(first, end)] * 2
        else:
            self.live += range(first, end)
            self.expected += [[number, kind] for number in range(first, end) for kind in ("-", "insert")]
        path, select = (self.nested, f"id, {NESTED}") if is_nested else (self.flat, "id")
        statement = f"select {select} from range({first}, {end}, 1, {self.random.randint(1, 3)})"
        if self.random.random() < 0.5:
            self.spark.sql(statement).write.format("delta").mode("append").save(path)
        else:
            self.server.ask("append", path=path, select=statement)

    def change(self) -> None:
        """A change that streams skip, except for the change feed."""
        path = self.random.choice([self.nested, self.flat])
        statement = self.random.choice([f"optimize delta.`{path}`", f"delete from delta.`{path}` where id % 7 = 3"])
        if path == self.flat and statement.startswith("delete"):
            self.expected += [[number, "delete"] for number in self.live if number % 7 == 3]
            self.live = [number for number in self.live if number % 7 != 3]
        self._do(statement)

    def map_columns(self) -> None:
        """Enable column mapping, which changes no row and no name."""
        self._do(f"alter table delta.`{self.flat}` set tblproperties ('delta.columnMapping.mode' = 'name')")

    def _do(self, statement: str) -> None:
        if self.random.random() < 0.5:
            self.spark.sql(statement)
        else:
            self.server.sql(statement)

    def run(self) -> None:
        """Let one engine run the query; often from a batch that was planned and not completed."""
        if len(self.rows) > 1 and self.random.random() < 0.7:
            rewind(self.checkpoint, max(self.rows))
        if self.random.random() < 0.5:
            found = our_batches(self.spark, self.sources, self.checkpoint)
        else:
            found = their_batches(self.server, self.sources, self.checkpoint)
        for number, rows in found.items():
            assert self.rows.setdefault(number, rows) == rows


@pytest.mark.parametrize("seed", range(length(1, 10)))
def test_random_turns_lose_and_double_no_row(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, seed: int
) -> None:
    turns = Turns(our_spark, delta_spark_server, tmp_path, seed)
    turns.create()
    count = length(6, 30)
    for turn in range(count):
        for _ in range(turns.random.randint(1, 3)):
            turns.append()
        turns.run()
        if turn == count // 2:
            turns.map_columns()
        if turn:
            turns.change()
    turns.run()
    assert sorted(row for rows in turns.rows.values() for row in rows) == sorted(turns.expected)
