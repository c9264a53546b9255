"""Tables that change at random, and remember every file and every schema."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.hand_made import Json
from tests.unit.streaming.random_schemas import Schema, SchemaChanges
from tests.unit.streaming.tables import Log, add, features, metadata, remove, vector


@dataclass
class Commit:
    """What is known of a commit: the files that it adds with a change of data, if it removes any, and the schema.

    `changes` are the actions of its change data feed, in order: change data files, or else files that it adds and
    removes. `marked` ones are to be skipped; `declares` is True if the commit has metadata.
    """

    files: list[Json]
    changes: list[Json]
    removes: bool
    marked: bool
    schema: Schema
    declares: bool
    lost: bool = False


class Table:
    """A table that changes at random."""

    def __init__(self, chosen: random.Random, log: Log) -> None:
        self.chosen, self.log = chosen, log
        self.live: dict[str, Json] = {}
        self.commits: list[Commit] = []
        self.states: list[dict[str, Json]] = []
        self.checkpoints: set[int] = set()
        self.partitioned = chosen.random() < 0.3
        self.mapped = chosen.random() < 0.4
        self.vectors = chosen.random() < 0.5
        self.evolves = chosen.random() < 0.7
        self.feed = chosen.random() < 0.5
        self.number = 0
        self._create()

    def _create(self) -> None:
        self.schemas = SchemaChanges(self.chosen, mapped=self.mapped, partitioned=self.partitioned)
        self.schema = self.schemas.first
        self.configuration = {"delta.columnMapping.mode": "name"} if self.mapped else {}
        self.configuration |= {"delta.enableChangeDataFeed": "true"} if self.feed else {}
        self.commits.append(Commit([], [], removes=False, marked=False, schema=self.schema, declares=True))
        self.states.append({})
        self.log.create(
            *self.schema.fields(),
            protocol=self._protocol(),
            partition=self.schema.partition,
            configuration=self.configuration,
        )

    def _protocol(self) -> Json | None:
        has = {"deletionVectors": self.vectors, "typeWidening": self.schemas.widens}
        names = [name for name, is_on in {"columnMapping": self.schema.mapped, **has}.items() if is_on]
        return (
            features(*names, *(["changeDataFeed"] if self.feed else []), reader=names) if names or self.feed else None
        )

    @property
    def latest(self) -> int:
        """The latest version."""
        return len(self.commits) - 1

    def can_open(self, version: int) -> bool:
        """True if the log still has what the snapshot of a version needs."""
        starts = [-1, *(found for found in self.checkpoints if found <= version)]
        return any(not any(commit.lost for commit in self.commits[start + 1 : version + 1]) for start in starts)

    def change(self) -> None:
        """Commit something."""
        kinds = [self.append] * 6 + [self.delete, self.rewrite, self.optimize, self.nothing, self.properties]
        kinds += [self.mark_rows] if self.vectors else []
        kinds += [self.change_schema] * 3 if self.evolves else []
        self.chosen.choice(kinds)()
        if self.chosen.random() < 0.15:
            self.checkpoint()

    def append(self) -> None:
        """Add several files, or none."""
        added = [self._new() for _ in range(self.chosen.choice([0, 1, 1, 2, 3, 5, 8]))]
        self._commit(added, [])

    def delete(self) -> None:
        """Remove whole files."""
        self._commit([], self._some_live())

    def rewrite(self) -> None:
        """Replace files, with adds and removes in any order, and sometimes change data."""
        recorded = [self._change_data() for _ in range(self.chosen.choice([0, 0, 1, 2, 5]) if self.feed else 0)]
        self._commit([self._new() for _ in range(self.chosen.randint(1, 3))], self._some_live(), recorded=recorded)

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
        self._commit([self._new()] if self.chosen.random() < 0.5 else [], [], self._metadata())

    def change_schema(self) -> None:
        """Change the schema, with files that have the new one, and sometimes without those that have the old one."""
        before, self.schema = self.schema, self.schemas.next(self.schema)
        protocol: list[Json] = []
        if self.schema.mapped and not before.mapped:
            self.configuration = {**self.configuration, "delta.columnMapping.mode": "name"}
            protocol = [made] if (made := self._protocol()) else []
        added = [self._new() for _ in range(self.chosen.choice([0, 0, 1, 3]))]
        removed = self._some_live() if self.chosen.random() < 0.15 else []
        self._commit(added, removed, *protocol, self._metadata())

    def checkpoint(self) -> None:
        """Write a checkpoint of the latest version."""
        self.log.snapshot().checkpoint()
        self.checkpoints.add(self.latest)

    def clean_up(self, before: int) -> None:
        """Remove old commits after a checkpoint of the latest version."""
        self.checkpoint()
        gone = [version for version in range(before) if not self.commits[version].lost]
        self.log.lose(*gone)
        for version in gone:
            self.commits[version].lost = True

    def _metadata(self) -> Json:
        return metadata(*self.schema.fields(), partition=self.schema.partition, configuration=self.configuration)

    def _new(self, **extra: Any) -> Json:
        self.number += 1
        path = f"{self.chosen.choice(['', 'p=1/', 'a%20b/', 'é%25/', 'Z/'])}{self.chosen.random():.3f}-{self.number}"
        partition = {self.schema.partition_key: self.chosen.choice(["x", None])} if self.partitioned else {}
        made = add(path, self.chosen.choice([0, 1, 5, 10, 100]), partition, **extra)
        made["add"]["modificationTime"] = self.chosen.randrange(6)
        return made

    def _change_data(self) -> Json:
        made = self._new()["add"]
        kept = {name: made[name] for name in ("path", "partitionValues", "size")}
        return {"cdc": {**kept, "path": f"_change_data/{kept['path']}", "dataChange": False}}

    def _some_live(self) -> list[str]:
        return self.chosen.sample(sorted(self.live), min(len(self.live), self.chosen.randint(1, 3)))

    def _commit(
        self,
        added: list[Json],
        removed: list[str],
        *first: Json,
        recorded: Sequence[Json] = (),
        data_change: bool = True,
    ) -> None:
        gone = [remove(path, dataChange=data_change, **self._facts_of(path)) for path in removed]
        actions = [*added, *gone, *recorded]
        self.chosen.shuffle(actions)
        for path in removed:
            del self.live[path]
        self.live.update((action["add"]["path"], action) for action in added)
        files = [action for action in actions if "add" in action and data_change]
        changes = [action for action in actions if ("cdc" in action) == bool(recorded) and data_change]
        self._write(*first, *actions, files=files, changes=changes, removes=bool(removed) and data_change)

    def _write(
        self, *actions: Json, files: Sequence[Json] = (), changes: Sequence[Json] = (), removes: bool = False
    ) -> None:
        marked = self.chosen.random() < 0.15
        self.log.commit(*actions, operation="X", **({"userMetadata": "skip"} if marked else {}))
        declares = any("metaData" in action for action in actions)
        self.commits.append(Commit(list(files), list(changes), removes, marked, self.schema, declares))
        self.states.append(dict(self.live))

    def _facts_of(self, path: str) -> Json:
        made = self.live[path]["add"]
        names = ("partitionValues", "size", "deletionVector")
        return {"extendedFileMetadata": True, **{name: made[name] for name in names if name in made}}
