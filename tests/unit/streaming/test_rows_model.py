"""Rows of streams over tables that change at random, against the rows that the commits wrote, deleted and updated.

The tables have nested columns, which are added, renamed, dropped and widened; column mapping may be enabled later. Each
version is read with its own schema, by a query that restarts where the schema changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from tests.lengths import length
from tests.unit.streaming.queries import Query

from pyspark_delta import StreamSchemaError, Table

Values: TypeAlias = dict[int, int]
"""The values of a row by the numbers of the columns and fields that existed when it was written."""

CONSENT = {f"allowSourceColumn{kind}": "always" for kind in ("Rename", "Drop", "TypeChange")}
INSIDE = {"struct": "", "array": ".element", "map": ".value"}
STEPS = 12


@dataclass(frozen=True)
class Column:
    """A column or a field in one; nested ones have `inner` fields."""

    name: str
    number: int
    type: str = "long"
    inner: tuple[Column, ...] = ()

    def arrow(self) -> pa.DataType:
        """The type for Arrow."""
        fields = pa.struct([(one.name, one.arrow()) for one in self.inner])
        types = {"int": pa.int32(), "long": pa.int64(), "struct": fields, "array": pa.list_(fields)}
        return pa.map_(pa.string(), fields) if self.type == "map" else types[self.type]

    def of(self, row: Values) -> Any:
        """The value in a row."""
        if self.number not in row:
            return None
        inside = {one.name: one.of(row) for one in self.inner}
        values = {"struct": inside, "array": [inside], "map": [("k", inside)]}
        return values.get(self.type, row[self.number])

    def numbers(self) -> Iterator[int]:
        """Its number, and those of its fields."""
        yield self.number
        for one in self.inner:
            yield from one.numbers()


@dataclass
class Rows:
    """A table, the rows that it has, and those that a stream from now on returns."""

    location: str
    chosen: random.Random
    is_feed: bool
    columns: tuple[Column, ...] = (Column("id", 1), Column("v", 2), Column("s", 3, "struct", (Column("x", 4, "int"),)))
    last: int = 4  # number of a column
    next_id: int = 0
    mapped: bool = False
    live: list[Values] = field(default_factory=list)
    expected: list[dict[str, Any]] = field(default_factory=list)

    def create(self) -> None:
        """Create the table."""
        properties = {"delta.enableTypeWidening": "true", "delta.enableChangeDataFeed": "true"}
        properties["delta.enableDeletionVectors"] = self.chosen.choice(["true", "false"])
        Table.create(self.location, "id BIGINT, v BIGINT, s STRUCT<x INT>", properties=properties)

    @property
    def table(self) -> Table:
        """The newest version."""
        return Table.open(self.location)

    def change(self) -> None:
        """Commit something."""
        kinds: list[Callable[[], None]] = [self.append] * 3 + [self.update, self.delete, self.optimize]
        kinds += [self.add, self.add, self.widen] + ([self.rename, self.drop] if self.mapped else [self.map_columns])
        self.chosen.choice(kinds)()

    def begin(self) -> None:
        """Expect the rows of the newest version, with which the stream begins."""
        self.expected.clear()
        self._expect("insert", self.live, self.table.version)

    # ------------------------------------------------------------------------------------------------------- rows
    def append(self) -> None:
        """Add rows."""
        numbers = [number for one in self.columns for number in one.numbers()]
        first, self.next_id = self.next_id, self.next_id + self.chosen.randint(1, 4)
        made = [{number: number * 1000 + n for number in numbers} | {1: n} for n in range(first, self.next_id)]
        schema = pa.schema([(one.name, one.arrow()) for one in self.columns])
        rows = [{one.name: one.of(row) for one in self.columns} for row in made]
        self.table.append(pa.Table.from_pylist(rows, schema), merge_schema=True, max_records_per_file=2)
        self.live += made
        self._expect("insert", made)

    def update(self) -> None:
        """Update a row."""
        if self.live:
            picked = self.chosen.choice(self.live)
            changed = {**picked, 2: picked[2] + 1}
            self.table.update({"v": "v + 1"}, where=f"id = {picked[1]}")
            self.live = [changed if row is picked else row for row in self.live]
            if self.is_feed:
                self._expect("update_preimage", [picked])
                self._expect("update_postimage", [changed])

    def delete(self) -> None:
        """Delete a row."""
        if self.live:
            picked = self.chosen.choice(self.live)
            self.table.delete(f"id = {picked[1]}")
            self.live = [row for row in self.live if row is not picked]
            if self.is_feed:
                self._expect("delete", [picked])

    def optimize(self) -> None:
        """Rewrite files."""
        self.table.optimize()

    def _expect(self, kind: str, rows: list[Values], version: int | None = None) -> None:
        facts = {"_change_type": kind, "_commit_version": self.table.version if version is None else version}
        for row in rows:
            self.expected.append({one.name: one.of(row) for one in self.columns} | (facts if self.is_feed else {}))

    # ---------------------------------------------------------------------------------------------------- columns
    def add(self) -> None:
        """Add a column, or a field in one, with rows that have it."""
        self.last += 1
        made = Column(f"n{self.last}", self.last, self.chosen.choice(["int", "long"]))
        nested = [one for one in self.columns if one.inner]
        if nested and self.chosen.random() < 0.5:
            picked = self.chosen.choice(nested)
            self._replace(picked, replace(picked, inner=(*picked.inner, made)))
        else:
            if self.chosen.random() < 0.5:
                self.last += 1
                made = replace(made, type=self.chosen.choice(list(INSIDE)), inner=(Column("x", self.last, "int"),))
            self.columns += (made,)
        self.append()

    def map_columns(self) -> None:
        """Enable column mapping."""
        self.table.alter().set_properties({"delta.columnMapping.mode": "name"})
        self.mapped = True

    def widen(self) -> None:
        """Widen a column."""
        self._change(lambda one: one.type == "int", self._widened)

    def rename(self) -> None:
        """Rename a column."""
        self._change(lambda one: True, self._renamed)

    def drop(self) -> None:
        """Drop a column."""
        self._change(lambda one: True, self._dropped)

    def _widened(self, path: str, one: Column) -> Column:
        self.table.alter().change_type(path, "BIGINT")
        return replace(one, type="long")

    def _renamed(self, path: str, one: Column) -> Column:
        self.last += 1
        self.table.alter().rename_column(path, f"r{self.last}")
        return replace(one, name=f"r{self.last}")

    def _dropped(self, path: str, one: Column) -> None:
        self.table.alter().drop_columns(path)

    def _change(self, fits: Callable[[Column], bool], change: Callable[[str, Column], Column | None]) -> None:
        """Change a column other than the first two, or a field in one that has others."""
        found = [(one.name, None, one) for one in self.columns[2:] if fits(one)]
        found += [
            (f"{one.name}{INSIDE[one.type]}.{inner.name}", one, inner)
            for one in self.columns[2:]
            for inner in one.inner
            if fits(inner) and len(one.inner) > 1
        ]
        if found:
            path, above, one = self.chosen.choice(found)
            after = change(path, one)
            if above is not None:
                inner = tuple(after if old is one else old for old in above.inner)
                one, after = above, replace(above, inner=tuple(new for new in inner if new is not None))
            self._replace(one, after)

    def _replace(self, before: Column, after: Column | None) -> None:
        columns = tuple(after if one is before else one for one in self.columns)
        self.columns = tuple(one for one in columns if one is not None)


def read(query: Query, options: dict[str, str]) -> None:
    """Run a query over all that is available; it restarts at each change of the schema."""
    while True:
        try:
            query.run(**options, **CONSENT)
        except StreamSchemaError as error:
            assert error.error_class == "DELTA_STREAMING_METADATA_EVOLUTION"  # noqa: PT017 - others are raised
        else:
            return


@pytest.mark.parametrize("is_feed", [False, True], ids=["rows", "feed"])
@pytest.mark.parametrize("seed", range(length(3, 100)))
def test_a_stream_returns_what_the_commits_wrote(seed: int, is_feed: bool, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    rows = Rows(str(tmp_path / "t"), chosen, is_feed)
    rows.create()
    for _ in range(chosen.randrange(4)):
        rows.change()
    rows.begin()
    query = Query(rows.location, tmp_path / "c")
    options = {"readChangeFeed": "true"} if is_feed else {"skipChangeCommits": "true"}
    for _ in range(STEPS):
        if chosen.random() < 0.4 or not query.offsets:
            read(query, {**options, "maxFilesPerTrigger": str(chosen.choice([1, 2, 1000]))})
        rows.change()
    read(query, options)
    for row in query.rows:
        row.pop("_commit_timestamp", None)
    assert sorted(map(str, query.rows)) == sorted(map(str, rows.expected))
