"""Checkpoints of streams that delta-spark and this package use by turns: both plan and read the same batches.

The files of the table have the same modification time, and paths that are sorted in another way once they are decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.spark.made_tables import DataFile, make_table
from tests.spark.stream_runs import rewind, run

Batches: TypeAlias = dict[int, list[Any]]
Stream: TypeAlias = Callable[[], Batches]

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


@pytest.mark.parametrize("is_feed", [False, True])
def test_batches_are_the_same(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, table: Path, tmp_path: Path, is_feed: bool
) -> None:
    checkpoint, columns = tmp_path / "c", CHANGES if is_feed else ["id", "p"]
    options = {"maxFilesPerTrigger": "2", **({"readChangeFeed": "true"} if is_feed else {})}

    def ours() -> Batches:
        stream = our_spark.readStream.format("delta").options(**options).load(str(table))
        batches = run(stream.select(*columns), checkpoint).batches
        return {number: sorted(map(list, rows), key=str) for number, rows in batches.items()}

    def theirs() -> Batches:
        found = delta_spark_server.ask(
            "batches", path=str(table), checkpoint=str(checkpoint), options=options, columns=columns
        )
        return {int(number): rows for number, rows in found.items()}

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
