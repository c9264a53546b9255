"""Queries that read tables with a schema log, and keep their offsets in a checkpoint as Spark does."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark_delta.data.reader import read_plan
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner


class Query:
    """A query that keeps its offsets in a checkpoint, and plans each batch as Spark does."""

    def __init__(self, location: str, checkpoint: Path) -> None:
        self.location, self.checkpoint = location, checkpoint
        self.offsets: list[str] = []
        self.complete = 0
        self.rows: list[dict[str, object]] = []  # of all runs

    def planner(self, **options: str) -> StreamPlanner:
        given = {"schemaTrackingLocation": str(self.checkpoint / "_schema"), **options}
        return StreamPlanner(Snapshot.load(self.location), StreamOptions.parse(given))

    def run(self, **options: str) -> list[dict[str, object]]:
        """Run until nothing is new, and return the rows of this run."""
        planner, before = self.planner(**options), len(self.rows)
        if len(self.offsets) > self.complete:  # planned before the query stopped
            self._complete_batch(planner)
        while self._plan_batch(planner):
            self._complete_batch(planner)
        return self.rows[before:]

    def _plan_batch(self, planner: StreamPlanner) -> bool:
        start = planner.parse(self.offsets[-1]) if self.offsets else None
        end = planner.latest(start)
        if end is None or end == start:
            return False
        self.offsets.append(end.to_json())
        if start is not None:
            planner.release(start)
        return True

    def _complete_batch(self, planner: StreamPlanner) -> None:
        start = planner.parse(self.offsets[-2]) if len(self.offsets) > 1 else None
        for part in planner.batch(start, planner.parse(self.offsets[-1])):
            context = part.source.read_context(part.source.schema.fields, time_zone="UTC")
            self.rows += read_plan(ScanPlan(0, part.source.schema, context, part.files)).read_all().to_pylist()
        self.complete = len(self.offsets)

    @property
    def positions(self) -> list[tuple[int, int]]:
        return [(offset.version, offset.index) for offset in map(Offset.parse, self.offsets)]

    @property
    def entries(self) -> list[dict[str, object]]:
        [folder] = (self.checkpoint / "_schema").iterdir()
        files = sorted(folder.iterdir(), key=lambda file: int(file.name))
        return [json.loads(file.read_text().partition("\n")[2]) for file in files]
