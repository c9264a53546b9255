"""Streams for tests: a source of files with known rows, and queries that read what there is and end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table

LIMIT = 120  # seconds that a query may take


class Source:
    """Files with the rows 0, 1, ...: each has ten, and is one micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path, files: int = 2) -> None:
        self.spark, self.path, self.files = spark, str(folder / "source"), 0
        self.add(files)

    def add(self, files: int = 1) -> None:
        """Add files. Those that are added at once are read in any order."""
        start = self.files * 10
        rows = self.spark.range(start, start + files * 10, 1, files)
        rows.write.mode("append").parquet(self.path)
        self.files += files

    def stream(self, *columns: str) -> DataFrame:
        """A stream of the rows, with columns of SQL."""
        reader = self.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
        return reader.parquet(self.path).selectExpr(*columns or ["id"])

    @property
    def ids(self) -> list[int]:
        return list(range(self.files * 10))


def writer(frame: DataFrame, checkpoint: Path, **options: object) -> Any:
    """A writer of Delta for a query that reads what there is and ends."""
    made = frame.writeStream.format("delta").trigger(availableNow=True)
    return made.options(checkpointLocation=str(checkpoint), **options)  # type: ignore[arg-type]


def run(query: StreamingQuery) -> StreamingQuery:
    """The query, when it has ended."""
    assert query.awaitTermination(LIMIT)
    assert query.exception() is None
    return query


def ids(path: object) -> list[int]:
    """The values of the column `id` in a table, sorted."""
    return sorted(Table.open(str(path)).scan().to_arrow()["id"].to_pylist())


def transactions(path: object) -> dict[str, int]:
    """The application transactions of a table."""
    return {name: found.version for name, found in Snapshot.load(str(path)).transactions().items()}


def numbers(folder: Path) -> list[int]:
    """The numbers of the batches in a log of a checkpoint."""
    return sorted(int(file.name) for file in _files(folder) if file.name.isdecimal())


def _files(folder: Path) -> Iterable[Path]:
    return folder.iterdir() if folder.exists() else ()
