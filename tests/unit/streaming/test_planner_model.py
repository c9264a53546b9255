"""Streams of random tables, against a model that knows every file, its version and its index.

A seed chooses the table, its commits, the options, the limits of each batch, and when the query restarts or a batch is
repeated.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.hand_made import Json
from tests.lengths import length
from tests.unit.streaming.tables import (
    FIRST_TIME,
    ID,
    TABLE_ID,
    Log,
    Run,
    add,
    column,
    features,
    metadata,
    remove,
    vector,
)

from pyspark_delta.errors import ChangedRowsError, StreamDataLossError
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.offset import BASE_INDEX, Offset
from pyspark_delta.streaming.options import OnDataLoss, StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner

SEEDS = range(length(24, 3000))
STEPS = 40


WHERE, SKIP = "p = 'x'", "userMetadata = 'skip'"


class File(NamedTuple):
    """A file of a stream: its position, its path, its size, and if `WHERE` may be true for its rows."""

    position: tuple[int, int, int]
    path: str
    size: int
    is_possible: bool


@dataclass
class Commit:
    """What the model knows of a commit: the files that it adds with a change of data, and if it removes any.

    `SKIP` is true for a marked commit.
    """

    files: list[Json]
    removes: bool
    marked: bool
    lost: bool = False


class Table:
    """A table that changes at random."""

    def __init__(self, chosen: random.Random, log: Log) -> None:
        self.chosen, self.log = chosen, log
        self.live: dict[str, Json] = {}
        self.commits: list[Commit] = []
        self.states: list[dict[str, Json]] = []
        self.partitioned = chosen.random() < 0.3
        self.mapped = chosen.random() < 0.3
        self.vectors = chosen.random() < 0.5
        self.number = 0
        self._create()

    def _create(self) -> None:
        identifier: dict[str, Any] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
        other: dict[str, Any] = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "c2"}
        self.columns = (
            (column("id", **identifier), column("p", "string", **other)) if self.mapped else (ID, column("p", "string"))
        )
        self.configuration = {"delta.columnMapping.mode": "name"} if self.mapped else {}
        names = (["columnMapping"] if self.mapped else []) + (["deletionVectors"] if self.vectors else [])
        self.protocol = features(*names) if names else None
        self.commits.append(Commit([], removes=False, marked=False))
        self.states.append({})
        self.log.create(*self.columns, protocol=self.protocol, **self._metadata())

    def _metadata(self) -> dict[str, Any]:
        return {"partition": ["p"] if self.partitioned else [], "configuration": self.configuration}

    def _write(self, *actions: Json, files: Sequence[Json] = (), removes: bool = False) -> None:
        marked = self.chosen.random() < 0.15
        self.log.commit(*actions, operation="X", **({"userMetadata": "skip"} if marked else {}))
        self.commits.append(Commit(list(files), removes, marked))
        self.states.append(dict(self.live))

    def change(self) -> None:
        """Commit something."""
        kinds = [self.append] * 6 + [self.delete, self.rewrite, self.optimize, self.nothing, self.properties]
        self.chosen.choice([*kinds, self.mark_rows] if self.vectors else kinds)()
        if self.chosen.random() < 0.15:
            self.log.snapshot().checkpoint()

    def append(self) -> None:
        """Add several files, or none."""
        added = [self._new() for _ in range(self.chosen.choice([0, 1, 1, 2, 3, 5, 8]))]
        self._commit(added, [])

    def delete(self) -> None:
        """Remove whole files."""
        self._commit([], self._some_live())

    def rewrite(self) -> None:
        """Replace files, with adds and removes in any order."""
        self._commit([self._new() for _ in range(self.chosen.randint(1, 3))], self._some_live())

    def mark_rows(self) -> None:
        """Give files deletion vectors."""
        removed = self._some_live()
        added = []
        for path in removed:
            marked = {**self.live[path]["add"], **vector(self.chosen.randrange(100)), "dataChange": True}
            added.append({"add": marked})
        self._commit(added, removed)

    def optimize(self) -> None:
        """Replace files by others with the same rows."""
        removed = self._some_live()
        added = [self._new(dataChange=False)] if removed else []
        self._commit(added, removed, data_change=False)

    def nothing(self) -> None:
        """Commit no file."""
        self.number += 1
        actions = [
            {"txn": {"appId": "a", "version": self.number}},
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        ]
        self._write(*self.chosen.choice([[], actions[:1], actions]))

    def properties(self) -> None:
        """Change the metadata, and not the schema."""
        self.number += 1
        self.configuration = {**self.configuration, "owner": str(self.number)}
        changed = {"partitionColumns": ["p"] if self.partitioned else []}
        made: dict[str, Any] = {"configuration": self.configuration, **changed}
        added = [self._new()] if self.chosen.random() < 0.5 else []
        self._remember(added, [])
        self._write(metadata(*self.columns, **made), *added, files=added)

    def _new(self, **extra: Any) -> Json:
        self.number += 1
        path = f"{self.chosen.choice(['', 'p=1/', 'a%20b/', 'é%25/', 'Z/'])}{self.chosen.random():.3f}-{self.number}"
        partition = {"c2" if self.mapped else "p": self.chosen.choice(["x", None])} if self.partitioned else {}
        made = add(path, self.chosen.choice([0, 1, 5, 10, 100]), partition, **extra)
        made["add"]["modificationTime"] = self.chosen.randrange(6)
        return made

    def _some_live(self) -> list[str]:
        return self.chosen.sample(sorted(self.live), min(len(self.live), self.chosen.randint(1, 3)))

    def _remember(self, added: list[Json], removed: list[str]) -> None:
        for path in removed:
            del self.live[path]
        self.live.update((action["add"]["path"], action) for action in added)

    def _commit(self, added: list[Json], removed: list[str], *, data_change: bool = True) -> None:
        gone = [remove(path, dataChange=data_change, **self._vector_of(path)) for path in removed]
        actions = [*added, *gone]
        order = list(range(len(actions)))
        self.chosen.shuffle(order)
        actions = [actions[number] for number in order]
        self._remember(added, removed)
        files = [action for action in actions if "add" in action and data_change]
        self._write(*actions, files=files, removes=bool(removed) and data_change)

    def _vector_of(self, path: str) -> Json:
        found = self.live[path]["add"].get("deletionVector")
        return {"deletionVector": found} if found else {}

    def clean_up(self, before: int) -> None:
        """Remove old commits after a checkpoint of the latest version."""
        self.log.snapshot().checkpoint()
        gone = [version for version in range(before) if not self.commits[version].lost]
        self.log.lose(*gone)
        for version in gone:
            self.commits[version].lost = True


class Model:
    """What a stream with some options must return."""

    def __init__(self, table: Table, options: StreamOptions) -> None:
        self.table, self.options = table, options
        self.start = self._start()

    def _start(self) -> Offset:
        version = self.options.starting_version
        latest = len(self.table.commits) - 1
        if version == "latest":
            return Offset(TABLE_ID, latest + 1)
        if isinstance(version, int):
            return Offset(TABLE_ID, version)
        if self.options.starting_timestamp is not None:
            times = [FIRST_TIME + 1000 * v for v in range(latest + 1)]
            return Offset(TABLE_ID, next(v for v, t in enumerate(times) if t >= self.options.starting_timestamp))
        return Offset(TABLE_ID, latest, BASE_INDEX, initial=True)

    def initial(self) -> list[File]:
        """The initial snapshot."""
        if not self.start.initial:
            return []
        live = self.table.states[self.start.version].values()
        ordered = sorted(live, key=lambda action: (action["add"]["modificationTime"], action["add"]["path"].encode()))
        return self._files(self.start.version, 0, ordered)

    def _files(self, version: int, phase: int, actions: list[Json]) -> list[File]:
        """The files of a snapshot (phase 0) or a commit (phase 1), in order."""
        files = []
        for index, made in enumerate(action["add"] for action in actions):
            possible = (
                self.options.where is None or not self.table.partitioned or "x" in made["partitionValues"].values()
            )
            files.append(File((version, phase, index), made["path"], made["size"], possible))
        return files

    def skips(self, version: int) -> bool:
        """True for a commit that the options skip."""
        return self.options.skip_commits_where is not None and self.table.commits[version].marked

    def refuses(self, version: int) -> bool:
        """True for a commit with which the stream cannot go on."""
        commit = self.table.commits[version]
        if not commit.removes or self.options.skip_change_commits or self.skips(version):
            return False
        return not (self.options.allows_changes if commit.files else self.options.allows_deletes)

    def of_commit(self, version: int) -> list[File]:
        """The files of a commit."""
        commit = self.table.commits[version]
        if commit.lost or (commit.removes and self.options.skip_change_commits) or self.skips(version):
            return []
        return self._files(version, 1, commit.files)

    def between(self, start: Offset, end: Offset) -> list[str]:
        """The paths of a batch."""
        files = self.initial()
        first = self.start.version + 1 if self.start.initial else self.start.version
        for version in range(first, len(self.table.commits)):
            files += self.of_commit(version)
        chosen = [file.path for file in files if start.position < file.position <= end.position and file.is_possible]
        exclude = self.options.exclude
        return [path for path in chosen if exclude is None or not exclude.search(path)]

    def end(self, start: Offset, limits: Limits, last: int) -> Offset | type[Exception]:
        """Where a batch ends, file by file."""
        files_left, bytes_left = limits.files, limits.bytes

        def is_full() -> bool:
            return (files_left is not None and files_left <= 0) or (bytes_left is not None and bytes_left <= 0)

        position = start
        while True:
            if position.initial:
                files = self.initial()
            else:
                version = position.version
                while version <= last and self.table.commits[version].lost:
                    version += 1
                if version > last:
                    return position
                if is_full():
                    return position
                if version > position.version:
                    if self.options.on_data_loss is OnDataLoss.FAIL:
                        return StreamDataLossError
                    position = Offset(TABLE_ID, version)
                if self.refuses(version):
                    return ChangedRowsError
                files = self.of_commit(version)
            files = [file for file in files if file.position > position.position]
            for file in files:
                if is_full():
                    return position
                files_left = None if files_left is None else files_left - file.is_possible
                bytes_left = None if bytes_left is None else bytes_left - file.size * file.is_possible
                position = Offset(TABLE_ID, file.position[0], file.position[2], file.position[1] == 0)
            position = Offset(TABLE_ID, position.version + 1)


def random_options(chosen: random.Random, table: Table) -> dict[str, str]:
    """Options of a stream."""
    options: dict[str, str] = {"failOnDataLoss": chosen.choice(["true", "false"])}
    allows = chosen.choice(["", "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits"])
    if allows:
        options[allows] = "true"
    latest = len(table.commits) - 1
    start = chosen.choice(["snapshot", "snapshot", "version", "latest", "time"])
    if start == "version":
        options["startingVersion"] = str(chosen.randint(0, latest))
    elif start == "latest":
        options["startingVersion"] = "latest"
    elif start == "time" and not table.log.location.startswith("memory:"):
        options["startingTimestamp"] = _time(FIRST_TIME + 1000 * chosen.randint(0, latest) - chosen.choice([0, 1, 999]))
    if chosen.random() < 0.2:
        options["excludeRegex"] = chosen.choice(["^Z/", "5", "%20"])
    if chosen.random() < 0.3:
        options["where"] = WHERE
    if chosen.random() < 0.3:
        options["skipCommitsWhere"] = SKIP
    return options


def _time(milliseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def random_limits(chosen: random.Random) -> Limits:
    """Limits of a batch."""
    return Limits(chosen.choice([None, 1, 2, 3, 7, 1000]), chosen.choice([None, None, 1, 7, 120]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_returns_every_file_once_in_order(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    table = Table(chosen, Log(str(tmp_path)) if seed % 4 == 0 else Log())
    for _ in range(chosen.randrange(15)):
        table.change()
    options = StreamOptions.parse(random_options(chosen, table))
    model, run = Model(table, options), Run(table.log, options)
    seen: list[tuple[Offset | None, Offset]] = []
    bound: Offset | None = None
    for _ in range(STEPS):
        event = chosen.choice(["change", "change", "batch", "batch", "batch", "restart", "repeat", "bound", "clean up"])
        if event == "change":
            table.change()
        elif event == "restart":
            run, bound = run.restart(), None
        elif event == "bound":
            bound = run.planner.end_of_table()
            assert bound == Offset(TABLE_ID, len(table.commits))
        elif event == "clean up" and run.end is not None and not run.end.initial and chosen.random() < 0.3:
            table.clean_up(chosen.randint(0, len(table.commits) - 1 if chosen.random() < 0.2 else run.end.version))
            seen.clear()
            run, bound = run.restart(), None  # a planner still returns what it has read
        elif event == "repeat" and seen:
            start, end = chosen.choice(seen)
            planner = chosen.choice([run, run.restart()])
            assert planner.paths(start, end) == model.between(start or model.start, end)
        elif event == "batch":
            limits = random_limits(chosen)
            last = len(table.commits) - 1 if bound is None else bound.version - 1
            start = run.end
            if start is None and model.start.initial:  # the snapshot is that of the first batch
                model.start = Offset(TABLE_ID, last, BASE_INDEX, initial=True)
            elif start is None and options.starting_version == "latest":
                model.start = Offset(TABLE_ID, len(table.commits))
            expected = model.end(start or model.start, limits, last)
            if not isinstance(expected, Offset):
                with pytest.raises(expected):
                    run.planner.latest(start, limits, bound)
                continue
            end = run.planner.latest(start, limits, bound)
            assert end == expected
            assert end is not None
            assert run.paths(start, end) == model.between(start or model.start, end)
            if chosen.random() < 0.7:
                run.planner.release(end)
            if end != start:
                seen.append((start, end))
            run.end = end
    planned = StreamPlanner(table.log.snapshot(), options)
    for start, end in seen:
        assert [p for part in planned.batch(start, end) for p in part.files["path"].to_pylist()] == model.between(
            start or model.start, end
        )
