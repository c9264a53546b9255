"""Random sequences of everything that changes rows, against a model in plain Python.

After every step the content, the change feed and the row ids of the table are those of the model, and in the end every
version is what it was when it was made. Subclasses make the changes with an engine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pyspark_delta import Table
from pyspark_delta.data.reader import read_plan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot

RUNS = int(os.environ.get("PYSPARK_DELTA_TEST_MODEL_RUNS", "4"))
STEPS = 10
SCHEMA = "id bigint, n int, p string, v string"
Row = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """Rows, in SQL and in Python."""

    sql: str
    holds: Callable[[Row], bool] = field(compare=False)


CONDITIONS = (
    Condition("id % 3 = 0", lambda r: r["id"] % 3 == 0),
    Condition("n > 5", lambda r: r["n"] is not None and r["n"] > 5),
    Condition("p = 'a'", lambda r: r["p"] == "a"),
    Condition("v is null or n = 2", lambda r: r["v"] is None or r["n"] == 2),
    Condition("id between 4 and 9", lambda r: 4 <= r["id"] <= 9),
    Condition("not (n < 7)", lambda r: r["n"] is not None and not r["n"] < 7),
)
conditions = st.sampled_from(CONDITIONS)
values = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), st.integers(0, 9)),
        "p": st.sampled_from(["a", "b", "ü %"]),
        "v": st.one_of(st.none(), st.text("xy", max_size=2)),
    }
)


@dataclass(frozen=True)
class MergeClause:
    """A clause of a merge: for rows of a kind (matched, not matched, by source), an action with SQL."""

    kind: str
    action: str
    condition: str | None = None
    values: dict[str, str] | None = None


class RowChangesModel(RuleBasedStateMachine):
    """One table, and what it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="model-")
        self.path = str(Path(self.folder, "table"))
        self.rows: dict[int, Row] = {}
        self.versions: list[list[Row]] = []
        self.feeds: list[list[tuple[str, Row]]] = []
        self.ids: dict[int, int] = {}
        self.columns = ["id", "n", "p", "v"]
        self.next_id = 0

    # -------------------------------------------------------------------------------------- what an engine does
    @abstractmethod
    def make(self, properties: dict[str, str], partition_by: list[str]) -> None:
        """Create the table, without rows."""

    @abstractmethod
    def write(self, rows: list[Row], mode: str, **options: bool) -> None:
        """Write rows."""

    @abstractmethod
    def delete_rows(self, condition: str) -> int:
        """Delete rows; return their number."""

    @abstractmethod
    def update_rows(self, condition: str, values: dict[str, str]) -> int:
        """Update rows; return their number."""

    @abstractmethod
    def merge_rows(self, rows: list[Row], clauses: list[MergeClause]) -> None:
        """Merge rows by id; the aliases are t and s."""

    @abstractmethod
    def rewrite(self) -> None:
        """Write all rows again, with no change of data."""

    @initialize(
        vectors=st.booleans(), feed=st.booleans(), tracked=st.booleans(), mapped=st.booleans(), parted=st.booleans()
    )
    def create(self, vectors: bool, feed: bool, tracked: bool, mapped: bool, parted: bool) -> None:
        self.feed, self.tracked = feed, tracked
        properties = {
            "delta.enableDeletionVectors": str(vectors).lower(),
            "delta.enableChangeDataFeed": str(feed).lower(),
            "delta.enableRowTracking": str(tracked).lower(),
            **({"delta.columnMapping.mode": "name"} if mapped else {}),
        }
        self.make(properties, ["p"] if parted else [])
        self._made([])

    # -------------------------------------------------------------------------------------------------- the rules
    @rule(rows=st.lists(values, min_size=3, max_size=8))
    def append(self, rows: list[Row]) -> None:
        added = self._new(rows)
        self.write(added, "append")
        self.rows.update({row["id"]: row for row in added})
        self._made([("insert", row) for row in added])

    @rule(rows=st.lists(values, min_size=1, max_size=5))
    def overwrite(self, rows: list[Row]) -> None:
        added = self._new(rows)
        self.write(added, "overwrite")
        gone = list(self.rows.values())
        self.rows = {row["id"]: row for row in added}
        self._made([("delete", row) for row in gone] + [("insert", row) for row in added])

    @rule(condition=conditions)
    def delete(self, condition: Condition) -> None:
        gone = [row for row in self.rows.values() if condition.holds(row)]
        assert self.delete_rows(condition.sql) == len(gone)
        self._without(gone)
        if gone:
            self._made([("delete", row) for row in gone])

    @rule(
        condition=conditions, new=st.sampled_from([{"n": "n + 1"}, {"p": "'b'", "v": "coalesce(v, p)"}, {"v": "null"}])
    )
    def update(self, condition: Condition, new: dict[str, str]) -> None:
        old = [row for row in self.rows.values() if condition.holds(row)]
        assert self.update_rows(condition.sql, new) == len(old)
        if old:
            self._made(self._changed(old, new))

    @rule(
        known=st.lists(st.integers(0, 40), unique=True, max_size=6),
        fresh=st.lists(values, max_size=3),
        given=values,
        kinds=st.sets(
            st.sampled_from(["update", "delete", "insert", "by source update", "by source delete"]), min_size=1
        ),
        condition=conditions,
    )
    def merge(self, known: list[int], fresh: list[Row], given: Row, kinds: set[str], condition: Condition) -> None:
        source = [{**given, "id": i} for i in known if i < self.next_id] + self._new(fresh)
        clauses: list[MergeClause] = []
        matched = [(self.rows[row["id"]], row) for row in source if row["id"] in self.rows]
        others = [row for row in self.rows.values() if row["id"] not in {s["id"] for s in source}]
        feed: list[tuple[str, Row]] = []
        mine = Condition(_qualified(condition.sql), condition.holds)
        if "delete" in kinds:
            clauses.append(MergeClause("matched", "delete", mine.sql))
            gone = [row for row, _ in matched if mine.holds(row)]
            matched = [(row, s) for row, s in matched if not mine.holds(row)]
            feed += [("delete", row) for row in gone]
        if "update" in kinds:
            clauses.append(MergeClause("matched", "update", None, {"n": "s.n", "v": "s.v"}))
        if "insert" in kinds:
            inserted = {name: f"s.{name}" for name in ("id", "n", "p", "v")}
            clauses.append(MergeClause("not matched", "insert", None, inserted))
        if "by source delete" in kinds:
            clauses.append(MergeClause("by source", "delete", mine.sql))
            feed += [("delete", row) for row in others if mine.holds(row)]
            others = [row for row in others if not mine.holds(row)]
        if "by source update" in kinds:
            clauses.append(MergeClause("by source", "update", "t.n >= 3", {"n": "t.n - 1"}))
        self.merge_rows(source, clauses)
        self._without([row for _, row in feed])
        if "update" in kinds:
            for row, s in matched:
                feed += self._replaced(row, {**row, "n": s["n"], "v": s["v"]})
        if "by source update" in kinds:
            for row in others:
                if row["n"] is not None and row["n"] >= 3:
                    feed += self._replaced(row, {**row, "n": row["n"] - 1})
        if "insert" in kinds:
            added = [self._full(s) for s in source if s["id"] not in self.versions_ids()]
            self.rows.update({row["id"]: row for row in added})
            feed += [("insert", row) for row in added]
        if feed:
            self._made(feed)

    @precondition(lambda self: self.rows)
    @rule()
    def rearrange(self) -> None:
        self.rewrite()
        self.ids = {}
        self._made([])

    @precondition(lambda self: len(self.columns) < 6)
    @rule()
    def add_a_column(self) -> None:
        name = f"more{len(self.columns)}"
        added = [{**row, name: 1} for row in self._new([{"n": 1, "p": "b", "v": None}])]
        self.write(added, "append", merge_schema=True)
        self.columns.append(name)
        self.rows = {i: {**row, name: None} for i, row in self.rows.items()}
        self.rows.update({row["id"]: self._full(row) for row in added})
        self._made([("insert", self.rows[row["id"]]) for row in added])

    # ------------------------------------------------------------------------------------------------- the checks
    @invariant()
    def is_as_the_model(self) -> None:
        if not self.versions:
            return
        table = Table.open(self.path)
        assert table.version == len(self.versions) - 1
        assert _sorted(table.scan().to_arrow().to_pylist()) == _sorted(self.rows.values())
        if self.feed and self.feeds[-1]:
            found = table.changes(starting_version=table.version).to_arrow().to_pylist()
            changes = [(row.pop("_change_type"), {name: row[name] for name in self.columns}) for row in found]
            assert sorted(map(repr, changes)) == sorted(map(repr, self.feeds[-1]))
        if self.tracked:
            self._check_ids()

    def teardown(self) -> None:
        try:
            for version, rows in enumerate(self.versions):
                found = Table.open(self.path, version=version).scan().to_arrow().to_pylist()
                assert _sorted(found) == _sorted(rows)
        finally:
            shutil.rmtree(self.folder)

    def _check_ids(self) -> None:
        plan = plan_scan(Snapshot.load(self.path), ["id"], row_ids=True)
        found = {row["id"]: row["_row_id"] for row in read_plan(plan).read_all().to_pylist()}
        assert len(set(found.values())) == len(found)
        assert {i: row_id for i, row_id in found.items() if i in self.ids} == {
            i: row_id for i, row_id in self.ids.items() if i in found
        }
        self.ids.update(found)

    # ------------------------------------------------------------------------------------------------- the model
    def versions_ids(self) -> set[int]:
        """The ids in the newest version."""
        return {row["id"] for row in self.versions[-1]}

    def _new(self, rows: list[Row]) -> list[Row]:
        first, self.next_id = self.next_id, self.next_id + len(rows)
        return [self._full({"id": first + i, **row}) for i, row in enumerate(rows)]

    def _full(self, row: Row) -> Row:
        return {name: row.get(name) for name in self.columns}

    def _without(self, gone: list[Row]) -> None:
        self.rows = {i: row for i, row in self.rows.items() if i not in {row["id"] for row in gone}}

    def _changed(self, old: list[Row], new: dict[str, str]) -> list[tuple[str, Row]]:
        feed: list[tuple[str, Row]] = []
        for row in old:
            after = dict(row)
            if "n" in new:
                after["n"] = None if row["n"] is None else row["n"] + 1
            elif "p" in new:
                after.update(p="b", v=row["p"] if row["v"] is None else row["v"])
            else:
                after["v"] = None
            feed += self._replaced(row, after)
        return feed

    def _replaced(self, before: Row, after: Row) -> list[tuple[str, Row]]:
        self.rows[after["id"]] = after
        return [("update_preimage", before), ("update_postimage", after)]

    def _made(self, feed: list[tuple[str, Row]]) -> None:
        self.versions.append(list(self.rows.values()))
        self.ids = {i: row_id for i, row_id in self.ids.items() if i in self.rows}
        self.feeds.append(feed)


def _sorted(rows: Any) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


def _qualified(sql: str) -> str:
    words = (f"t.{word}" if word in ("id", "n", "p", "v") else word for word in sql.replace("(", "( ").split())
    return " ".join(words)


def run_model(machine: type[RowChangesModel]) -> None:
    """Run random sequences of changes with an engine."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
