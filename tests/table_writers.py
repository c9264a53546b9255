"""What processes do that change one table with `Table`, and the check of their commits, replayed one after another."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.managed import Warehouse

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import CommitConflictError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

STATEMENTS = int(os.environ.get("PYSPARK_DELTA_TEST_STATEMENTS", "4"))  # of each writer
WRITERS, ROWS = 4, 60
SCHEMA = "id BIGINT, n BIGINT"
NUMBERED = "id BIGINT, n BIGINT, k BIGINT GENERATED ALWAYS AS IDENTITY"
Asked = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A table by its path, or by its name in a catalog; another process opens it too."""

    location: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    warehouse: Warehouse | None = None

    def create(self, schema: str, **properties: object) -> Table:
        named = {f"delta.{name}": value for name, value in properties.items()}
        if self.warehouse is not None:
            return Table.create_for_name(self.warehouse.full("t"), schema, properties=named)
        return Table.create(self.location, schema, properties=named, storage_options=self.options)

    def open(self) -> Table:
        if self.warehouse is not None:
            return self.warehouse.open()
        return Table.open(self.location, storage_options=self.options)


def choose(number: int) -> Iterator[Asked]:
    """What one writer does."""
    chosen = random.Random(number)
    for step in range(STATEMENTS):
        start = chosen.randrange(0, ROWS, 5)
        yield {
            "kind": chosen.choice(["delete", "update", "update", "merge", "append", "replace"]),
            "from": start,
            "to": start + chosen.choice([2, 10]),
            "new": 1000 * (number + 1) + 10 * step,
        }


def run(table: Table, asked: Asked) -> bool:
    """Run a statement until no other one is in its way; whether it made a commit."""
    act = partial(_run, table, asked, f"id >= {asked['from']} AND id < {asked['to']}", json.dumps(asked))
    while True:
        try:
            return act().version is not None
        except CommitConflictError:
            table.refresh()


def _run(table: Table, asked: Asked, where: str, info: str) -> Any:
    ids = list(range(asked["from"], asked["to"]))
    match asked["kind"]:
        case "append":
            return table.append({"id": [asked["new"]], "n": [0]}, commit_info=info)
        case "delete":
            return table.delete(where, commit_info=info)
        case "update":
            return table.update({"n": "n + 1"}, where, commit_info=info)
        case "replace":
            return table.overwrite({"id": ids[:1], "n": [100]}, where=where, commit_info=info)
    merge = table.merge({"id": ids, "n": [7] * len(ids)}, "target.id = source.id", commit_info=info)
    return merge.when_matched_update({"n": "target.n * 2 + source.n"}).when_not_matched_insert_all().execute()


def replay(model: dict[int, int], asked: Asked) -> None:
    concerned = range(asked["from"], asked["to"])
    match asked["kind"]:
        case "append":
            model[asked["new"]] = 0
        case "delete" | "replace":
            for i in concerned:
                model.pop(i, None)
            if asked["kind"] == "replace":
                model[asked["from"]] = 100
        case "update":
            model.update({i: model[i] + 1 for i in concerned if i in model})
        case _:
            model.update({i: model[i] * 2 + 7 if i in model else 7 for i in concerned})


def write(place: Place, number: int) -> list[Asked]:
    """Run statements; those that made a commit."""
    table = place.open()
    return [asked for asked in choose(number) if run(table, asked)]


def check_history(table: Table, done: list[Asked]) -> None:
    """The rows, the feed and the row ids are those of the commits, one after another; no statement is there twice."""
    commits = [json.loads(one["userMetadata"]) for one in reversed(table.history()) if one["userMetadata"]]
    assert Counter(map(repr, commits)) == Counter(map(repr, done))
    model = dict.fromkeys(range(ROWS), 0)
    for asked in commits:
        replay(model, asked)
    found = [(row["id"], row["n"]) for row in table.scan(["id", "n"]).to_arrow().to_pylist()]
    assert sorted(found) == sorted(model.items())
    changed: Counter[tuple[int, int]] = Counter()
    for row in table.changes(starting_version=0).to_arrow().to_pylist():
        changed[row["id"], row["n"]] += 1 if row["_change_type"] in ("insert", "update_postimage") else -1
    assert +changed == Counter(model.items())
    assert not -changed
    ids = read_plan(plan_scan(table.snapshot, ["id"], row_ids=True)).read_all()["_row_id"].to_pylist()
    assert len(set(ids)) == len(model)
    assert table.snapshot.checksum_differences() == ()
