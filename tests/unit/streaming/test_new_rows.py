"""Streams of new rows: of a commit that changes rows, those that it inserted, or also those that it updated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from tests.lengths import length

from pyspark_delta import ChangedRowsError, InvalidOptionError, Table

ROW_TRACKING = {"delta.enableRowTracking": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "id"}
Row = tuple[int, int, str]


class Changes:
    """Random changes of a table; each writes values that no row had before."""

    def __init__(self, path: str, seed: int) -> None:
        self.path, self.random, self.fresh = path, random.Random(seed), 0

    @property
    def table(self) -> Table:
        return Table.open(self.path)

    def rows(self, version: int | None = None) -> set[Row]:
        found = Table.open(self.path, version=version).scan().to_arrow().to_pylist()
        return {(row["id"], row["value"], row["p"]) for row in found}

    def value(self) -> int:
        self.fresh += 1
        return self.fresh

    def new(self, ids: Sequence[int]) -> pa.Table:
        values = [self.value() for _ in ids]
        return pa.table({"id": ids, "value": values, "p": [f"p{number % 2}" for number in ids]})

    def some(self) -> str:
        low = self.random.randrange(40)
        return f"id BETWEEN {low} AND {low + self.random.randrange(12)}"

    def append(self) -> None:
        most = max((row[0] for row in self.rows()), default=0)
        self.table.append(self.new(range(most + 1, most + 1 + self.random.randint(1, 6))))

    def update(self) -> None:
        self.table.update({"value": f"{self.value()}"}, where=self.some())

    def delete(self) -> None:
        self.table.delete(self.some())

    def merge(self) -> None:
        source = self.new(self.random.sample(range(1, 60), 8))
        merge = self.table.merge(source, "target.id = source.id").when_matched_update({"value": "source.value"})
        merge.when_not_matched_insert_all().execute()

    def delete_all(self) -> None:
        self.table.delete()

    def optimize(self) -> None:
        self.table.optimize()

    def run(self, number: int) -> None:
        changes = (self.append, self.append, self.update, self.delete, self.merge, self.merge, self.optimize)
        for _ in range(number):
            self.random.choice(changes)()


def streamed(path: str, kind: str, **options: object) -> list[Row]:
    stream = Table.open(path).stream(changes=kind, **options)  # type: ignore[arg-type]
    rows = [row for batch in stream for row in batch.to_arrow().to_pylist()]
    return sorted((row["id"], row["value"], row["p"]) for row in rows)


def expected(changes: Changes, kind: str, first: int = 1) -> list[Row]:
    """The rows of each version that the one before did not have, or whose ids it did not have."""
    found: list[Row] = []
    for version in range(first, changes.table.version + 1):
        before, after = changes.rows(version - 1), changes.rows(version)
        ids = {row[0] for row in before}
        found += [row for row in after - before if kind == "upserts" or row[0] not in ids]
    return sorted(found)


KINDS = {
    "row tracking": (ROW_TRACKING, False, ("inserts", "upserts")),
    "row tracking, vectors, mapped": (ROW_TRACKING | VECTORS | MAPPED, True, ("inserts", "upserts")),
    "feed": (FEED, True, ("inserts", "upserts")),
    "feed, vectors": (FEED | VECTORS, False, ("inserts", "upserts")),
    "vectors": (VECTORS, True, ("upserts",)),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(length(3, 60)))
def test_rows_are_those_that_versions_add(tmp_path: Path, name: str, seed: int) -> None:
    properties, partitioned, kinds = KINDS[name]
    schema = "id BIGINT, value BIGINT, p STRING"
    path = str(tmp_path / "t")
    Table.create(path, schema, partition_by=["p"] if partitioned else [], properties=properties)
    changes = Changes(path, seed)
    changes.append()
    changes.run(10)
    for kind in kinds:
        limit = changes.random.randint(1, 8)
        assert streamed(path, kind, starting_version=1, max_files=limit) == expected(changes, kind)
        assert streamed(path, kind) == sorted(changes.rows())


def test_rows_that_come_back_are_new(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, "id BIGINT, value BIGINT, p STRING", properties=VECTORS)
    changes = Changes(path, 0)
    changes.append()
    changes.delete_all()
    changes.table.restore(version=1)
    assert set(streamed(path, "upserts", starting_version=2)) == changes.rows(1)

    vectors = str(tmp_path / "v")
    Table.create(vectors, "id BIGINT, value BIGINT, p STRING", properties=VECTORS)
    again = Changes(vectors, 0)
    again.table.append(again.new(range(10)))
    again.table.delete("id < 3")
    again.table.restore(version=1)
    assert [row[0] for row in streamed(vectors, "upserts", starting_version=2)] == [0, 1, 2]


def test_c169_other_commits_than_those_that_tell_are_an_error_that_names_ways_out(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, "id BIGINT, value BIGINT, p STRING")
    changes = Changes(path, 0)
    changes.table.append(changes.new(range(10)))
    changes.table.delete()  # whole files: nothing is new
    changes.table.append(changes.new(range(10)))
    assert len(streamed(path, "upserts", starting_version=1)) == 20
    changes.table.update({"value": "-1"}, where="id = 3")
    with pytest.raises(ChangedRowsError, match=r"Version 4 .*UPDATE.*enableRowTracking.*version = 4"):
        streamed(path, "upserts", starting_version=1)
    assert len(streamed(path, "upserts", starting_version=1, skip_commits_where="version = 4")) == 20


def test_vectors_do_not_tell_inserted_rows_from_updated_ones(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, "id BIGINT, value BIGINT, p STRING", properties=VECTORS)
    changes = Changes(path, 0)
    changes.table.append(changes.new(range(10)))
    changes.table.delete("id = 2")
    assert len(streamed(path, "inserts", starting_version=1)) == 10
    changes.table.update({"value": "-1"}, where="id = 3")
    with pytest.raises(ChangedRowsError, match="which of them are inserted, and which updated"):
        streamed(path, "inserts", starting_version=1)


def test_files_that_row_tracking_knew_before_are_not_new(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, "id BIGINT, value BIGINT, p STRING", properties=ROW_TRACKING)
    changes = Changes(path, 0)
    changes.table.append(changes.new(range(10)))
    changes.table.update({"value": "-1"}, where="id = 3")
    changes.table.restore(version=1)
    with pytest.raises(ChangedRowsError, match=r"Version 3 .*RESTORE"):
        streamed(path, "upserts", starting_version=1)


@pytest.mark.parametrize("option", ["ignore_changes", "skip_change_commits"])
def test_options_that_contradict_are_refused(tmp_path: Path, option: str) -> None:
    path = str(tmp_path / "t")
    Table.create(path, "id BIGINT")
    with pytest.raises(InvalidOptionError, match="exclude each other"):
        Table.open(path).stream(changes="inserts", **{option: True})
    with pytest.raises(InvalidOptionError, match=r"'inserts'.*found 'updates'"):
        Table.open(path).stream(changes="updates")
