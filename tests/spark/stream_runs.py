"""Runs of queries over the stream of a table: their batches, and the offsets in their checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

SECONDS = 120


@dataclass
class Run:
    """The batches of one run: their rows as tuples, and the progress of each trigger with a batch."""

    batches: dict[int, list[tuple[Any, ...]]]
    progress: Sequence[Any]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, sorted."""
        return sorted(row for batch in self.batches.values() for row in batch)

    @property
    def ids(self) -> list[Any]:
        """The values of the first column, sorted."""
        return [row[0] for row in self.rows]


def run(frame: DataFrame, checkpoint: Path, **trigger: Any) -> Run:
    """Run a query over everything that is available, and return its batches."""
    batches: dict[int, list[tuple[Any, ...]]] = {}
    query = started(frame, checkpoint, batches, **(trigger or {"availableNow": True}))
    assert query.awaitTermination(SECONDS)
    return Run(batches, query.recentProgress)


def started(
    frame: DataFrame, checkpoint: Path, batches: dict[int, list[tuple[Any, ...]]] | None = None, **trigger: Any
) -> StreamingQuery:
    """Start a query that keeps the rows of its batches."""
    kept = {} if batches is None else batches

    def keep(batch: DataFrame, number: int) -> None:
        kept[number] = [tuple(row) for row in batch.collect()]

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(**trigger) if trigger else writer).start()


def offsets(checkpoint: Path) -> list[list[dict[str, Any]]]:
    """The offsets of each planned batch, one for each source."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [[json.loads(line) for line in path.read_text().splitlines()[2:]] for path in files]


def position(offset: dict[str, Any]) -> tuple[int, int, bool]:
    """The version, index and snapshot flag of an offset."""
    return (offset["reservoirVersion"], offset["index"], offset["isStartingVersion"])


def schema_log(location: Path) -> list[dict[str, Any]]:
    """The entries of the only schema log in a directory."""
    [log] = location.iterdir()
    files = sorted(log.glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(path.read_text().partition("\n")[2]) for path in files]


def rewind(checkpoint: Path, batch: int) -> None:
    """Make a batch the last that is planned, and not complete, as if the process had ended in it."""
    for folder, first in (("offsets", batch + 1), ("commits", batch)):
        for path in (checkpoint / folder).iterdir():
            number = path.name.removeprefix(".").split(".")[0]
            if number.isdigit() and int(number) >= first:
                path.unlink()
