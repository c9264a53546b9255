"""Tables of streams, whose commits tests write as JSON, on the local disk or in memory."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.hand_made import Json, add, features, lines, metadata, remove
from tests.hand_made import field as column
from tests.inline_vectors import vector

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner

TABLE_ID = "11111111-2222-3333-4444-555555555555"
_DAY = 86_400_000
FIRST_TIME = (time.time_ns() // 1_000_000 // _DAY - 7) * _DAY
ID = column("id")

__all__ = ["FIRST_TIME", "ID", "TABLE_ID", "Log", "Run", "add", "column", "features", "metadata", "remove", "vector"]


@dataclass
class Log:
    """The log of a table; commit `version` is one second after the one before it."""

    location: str = field(default_factory=lambda: f"memory://stream/{uuid.uuid4()}")
    latest: int = -1

    def path(self, version: int) -> str:
        """The commit file of a version."""
        return f"{self.location}/_delta_log/{version:020}.json"

    def commit(self, *actions: Json, operation: str | None = "WRITE", **info: Any) -> int:
        """Write the next commit; its version."""
        self.latest += 1
        named = [{"commitInfo": {"operation": operation, **info}}] if operation is not None else []
        store_for(self.location).write(self.path(self.latest), lines([*named, *actions]).encode())
        if not self.location.startswith("memory:"):
            at = (FIRST_TIME + 1000 * self.latest) / 1000
            os.utime(self.path(self.latest), (at, at))
        return self.latest

    def create(self, *columns: Json, protocol: Json | None = None, **of_metadata: Any) -> int:
        """Write a commit with protocol and metadata."""
        protocol = protocol or {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        return self.commit(protocol, metadata(*(columns or (ID,)), **of_metadata), operation="CREATE TABLE")

    def append(self, *paths: str, size: int = 1, **extra: Any) -> int:
        """Commit new files."""
        return self.commit(*(add(path, size, **extra) for path in paths))

    def lose(self, *versions: int) -> None:
        """Delete commit files."""
        store_for(self.location).delete([self.path(version) for version in versions])

    def snapshot(self, version: int | None = None) -> Snapshot:
        """A snapshot."""
        return Snapshot.load(self.location, version=version)

    def stream(self, **options: Any) -> Run:
        """A stream that begins now."""
        return Run(self, StreamOptions.parse({name: str(value) for name, value in options.items()}))


class Run:
    """A query over the stream of a table: it asks a planner as Spark does, and keeps its last offset."""

    def __init__(self, log: Log, options: StreamOptions, end: Offset | None = None) -> None:
        self.log, self.options, self.end = log, options, end
        self.planner = StreamPlanner(log.snapshot(), options)

    def restart(self) -> Run:
        """The same query with another planner."""
        return Run(self.log, self.options, self.end)

    def next(self, limits: Limits | None = None, bound: Offset | None = None) -> list[str] | None:
        """The paths of the next batch, None if nothing is new."""
        end = self.planner.latest(self.end, limits, bound)
        if end is None or end == self.end:
            return None
        found = self.paths(self.end, end)
        self.planner.release(end)
        self.end = end
        return found

    def paths(self, start: Offset | None, end: Offset) -> list[str]:
        """The paths of a batch."""
        return [path for part in self.planner.batch(start, end) for path in part.files["path"].to_pylist()]

    def all(self) -> list[str]:
        """The paths of all batches up to the latest version."""
        return [path for batch in self.batches() for path in batch]

    def batches(self) -> Iterator[list[str]]:
        """The paths of each batch up to the latest version."""
        while (batch := self.next()) is not None:
            yield batch
