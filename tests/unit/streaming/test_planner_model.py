"""Streams of random tables, against a model that knows every file, its version and its index, and every schema.

A seed chooses the table, its commits, the options, the limits of each batch, and when the query restarts or a batch is
repeated.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.hand_made import struct_of
from tests.lengths import length
from tests.unit.streaming.planner_model import CHANGED, EVOLUTION, File, Model, Refusal
from tests.unit.streaming.random_schemas import DROP, INCOMPATIBLE, RENAME, RESTART, TYPE_CHANGE
from tests.unit.streaming.random_tables import Table
from tests.unit.streaming.tables import FIRST_TIME, TABLE_ID, Log

from pyspark_delta.schema.json import parse_schema
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.contents import BatchFiles
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import OnDataLoss, StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner

SEEDS = range(length(24, 3000))
STEPS = 40
WHERE, SKIP = "p = 'x'", "userMetadata = 'skip'"
CONSENT = {
    RENAME: "allowSourceColumnRename",
    DROP: "allowSourceColumnDrop",
    TYPE_CHANGE: "allowSourceColumnTypeChange",
}
T = TypeVar("T")


def random_options(chosen: random.Random, table: Table) -> dict[str, str]:
    """Options of a stream."""
    options = {"failOnDataLoss": chosen.choice(["true", "false"]), **_random_start(chosen, table)}
    allows = chosen.choice(["", "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits"])
    if allows:
        options[allows] = "true"
    if chosen.random() < 0.2:
        options["excludeRegex"] = chosen.choice(["^Z/", "5", "%20"])
    if chosen.random() < 0.3 and not table.schemas.renames_partition:
        options["where"] = WHERE
    if chosen.random() < 0.3:
        options["skipCommitsWhere"] = SKIP
    if chosen.random() < 0.4:
        options |= {"failOnDataLoss": "true", **schema_log(table)}
    if table.feed and chosen.random() < 0.6:
        options["readChangeFeed"] = "true"
    return options


def _random_start(chosen: random.Random, table: Table) -> dict[str, str]:
    start = chosen.choice(["snapshot", "snapshot", "version", "latest", "time"])
    if start == "version":
        return {"startingVersion": str(chosen.randint(0, table.latest))}
    if start == "latest":
        return {"startingVersion": "latest"}
    if start == "time" and not table.log.location.startswith("memory:"):
        return {
            "startingTimestamp": _time(FIRST_TIME + 1000 * chosen.randint(0, table.latest) - chosen.choice([0, 1, 999]))
        }
    return {}


def _time(milliseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def schema_log(table: Table) -> dict[str, str]:
    """The option for a schema log."""
    return {"schemaTrackingLocation": f"{table.log.location}-checkpoint/schemas"}


def random_limits(chosen: random.Random) -> Limits:
    """Limits of a batch."""
    return Limits(chosen.choice([None, 1, 2, 3, 7, 1000]), chosen.choice([None, None, 1, 7, 120]))


class Query:
    """A query that makes the same turns with planners and with the model."""

    def __init__(self, chosen: random.Random, table: Table) -> None:
        self.chosen, self.table = chosen, table
        self.given = random_options(chosen, table)
        self.model = Model(table, StreamOptions.parse(self.given))
        self.end: Offset | None = None
        self.seen: list[tuple[Offset | None, Offset]] = []
        self.restart()

    # ------------------------------------------------------------------------------------------------------- turns
    def restart(self, **more: str) -> None:
        """Make another planner, with more options, and the consent for which it asks."""
        self.given |= more
        self.bound: Offset | None = None
        self.model.options = StreamOptions.parse(self.given)
        refusal = self.model.begin_run()
        planner = self._made(lambda: StreamPlanner(self.table.log.snapshot(), self.model.options), refusal)
        if planner is None:
            version = self.model.log.entries[-1][0]
            refused = self.model.log.refused(self.model.options)
            self.restart(**{CONSENT[kind]: self.chosen.choice(["always", str(version)]) for kind in refused})
        else:
            self.planner = planner

    def choose_bound(self) -> None:
        """End the run at what is available now."""
        self.bound = self.planner.end_of_table()
        assert self.bound == Offset(TABLE_ID, self.table.latest + 1)

    def clean_up(self) -> None:
        """Remove old commits, sometimes of versions that were not read."""
        if self.end is None or self.end.initial or self.chosen.random() < 0.6:
            return
        self.seen.clear()
        self.restart()  # a planner still returns what it has read
        last = self.end.version
        if self.chosen.random() < 0.4:
            for _ in range(self.chosen.randrange(5)):
                self.table.change()
            last = self.table.latest
        self.table.clean_up(self.chosen.choice([last, self.chosen.randint(0, last)]))

    def repeat(self) -> None:
        """Ask for a former batch again, sometimes after a restart; only for the last one with an empty schema log."""
        if self.seen:
            if self.chosen.random() < 0.5:
                self.restart()
            begins = self.model.is_tracked and not self.model.log.entries
            self.returned(*(self.seen[-1] if begins else self.chosen.choice(self.seen)))

    def next_batch(self) -> None:
        """Plan a batch, return it, and complete it; the query may restart in between."""
        start, limits = self.end, random_limits(self.chosen)
        if start is not None and self.chosen.random() < 0.2 and not self._release(start):
            return
        last = self.table.latest if self.bound is None else self.bound.version - 1
        expected = self.model.latest(start, limits, last)
        end = self._made(lambda: self.planner.latest(start, limits, self.bound), expected)
        if end is None:
            return
        assert end == expected
        if self.chosen.random() < (0.3 if start is None else 0.1):  # before the offset was kept
            if start is None and self.table.evolves:
                self.table.change_schema()
            self.restart()
            return
        if self.chosen.random() < 0.1:
            self.restart()
        files = self.returned(start, end)
        if files is None:
            return
        self._check_schema(files)
        if end != start:
            self.seen.append((start, end))
        self.end = end
        if self.chosen.random() < 0.7:
            self._release(end)

    # ------------------------------------------------------------------------------------------------------- steps
    def returned(self, start: Offset | None, end: Offset) -> list[File] | None:
        """Return the files of a batch; None if an error was expected and raised."""
        expected = self.model.batch(start, end)
        parts = self._made(lambda: self.planner.batch(start, end), expected)
        if parts is None or isinstance(expected, Refusal):
            return None
        self._check_parts(parts)
        if self.model.options.changes:
            found = [change for part in parts for change in _changes_of(part)]
            assert sorted(found) == sorted((file.position[0], file.path, file.kind) for file in expected)
        else:
            paths = [path for part in parts for path in part.files["path"].to_pylist()]
            assert paths == [file.path for file in expected]
        return expected

    def _release(self, end: Offset) -> bool:
        expected = self.model.release(end)
        self._made(lambda: self.planner.release(end), expected)
        return expected is None

    def _check_parts(self, parts: list[BatchFiles]) -> None:
        """The rows have the schema of the run."""
        expected = parse_schema(json.dumps(struct_of(*self.model.reads.fields())))
        for part in parts:
            assert part.source.schema.fields[: len(expected)] == expected.fields

    def _check_schema(self, files: list[File]) -> None:
        """The schema of the run can read the files of a new batch, and is the very same with a schema log."""
        if any(commit.lost for commit in self.table.commits):
            return
        for written in {self.table.commits[file.position[0]].schema for file in files}:
            assert written == self.model.reads if self.model.is_tracked else self.model.reads.can_read(written)

    def _made(self, call: Callable[[], T], expected: object) -> T | None:
        """Return what a call returns; None if it raises an error, which has to be the expected one."""
        if not isinstance(expected, Refusal):
            return call()
        with pytest.raises(expected.kind) as caught:
            call()
        assert expected.error_class in (None, caught.value.error_class)
        assert expected.version in (None, caught.value.facts.get("version"))
        self._recover(expected)
        return None

    def _recover(self, refusal: Refusal) -> None:
        """Do what the message says, mostly. The same planner has to raise the error again."""
        is_restarting = self.chosen.random() < 0.8
        if refusal == CHANGED and self.chosen.random() < 0.5:
            self.restart(ignoreChanges="true")
        if refusal.error_class in (EVOLUTION, RESTART) and is_restarting:
            self.restart()
        can_track = self.model.options.on_data_loss is OnDataLoss.FAIL and not self.table.commits[0].lost
        if refusal.error_class == INCOMPATIBLE and is_restarting:
            self.restart(**(schema_log(self.table) if can_track else {}))


def _changes_of(part: BatchFiles) -> list[tuple[int, str, str]]:
    """The version, the path and the kind of change of files in a change data feed."""
    facts = [dict(values) for values in part.files["partition_values"].to_pylist()]
    paths = part.files["path"].to_pylist()
    kinds = ["recorded" if part.source.stored_too else values["_change_type"] for values in facts]
    return [(int(v["_commit_version"]), path, kind) for v, path, kind in zip(facts, paths, kinds, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_returns_every_file_once_in_order(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    table = Table(chosen, Log(str(tmp_path / "table")) if seed % 4 == 0 else Log())
    for _ in range(chosen.randrange(15)):
        table.change()
    query = Query(chosen, table)
    turns: list[Callable[[], None]] = [table.change] * 2 + [query.next_batch] * 3
    turns += [query.restart, query.repeat, query.choose_bound, query.clean_up]
    for _ in range(STEPS):
        chosen.choice(turns)()
    for start, end in query.seen:
        query.restart()
        query.returned(start, end)
