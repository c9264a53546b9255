"""Every change of `Table` that fails at each of its storage calls in turn; see `crash_points`.

Deletion vectors or rewriting, with the change data feed, row ids, and a checkpoint after every commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.faults.crash_points import WRITING, Operation, Rows, content, crash_points, prepared, survive
from tests.lengths import FULL

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import CommitStateUnknownError, StorageError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.storage import ObjectStore, intercepted, store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.table import Table
from pyspark_delta.table.writing import Place
from pyspark_delta.testing.faults import connection_lost
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft
from pyspark_delta.write.options import WriteOptions

SCHEMA = "id BIGINT, n BIGINT, p STRING"
PROPERTIES: Mapping[str, object] = {
    "delta.enableChangeDataFeed": True,
    "delta.enableRowTracking": True,
    "delta.checkpointInterval": 1,
}
FIRST = [(1, 0, "a"), (2, 0, "a"), (3, 0, "b")]
NEW = {"id": [4, 5], "n": [0, 0], "p": ["a", "c"]}


def make(location: str, *, vectors: bool) -> None:
    properties = {**PROPERTIES, "delta.enableDeletionVectors": vectors}
    table = Table.create(location, SCHEMA, partition_by=["p"], properties=properties)
    table.append([dict(zip(("id", "n", "p"), row, strict=True)) for row in FIRST])


def rows(*found: tuple[int, int, str]) -> Rows:
    return [dict(zip(("id", "n", "p"), row, strict=True)) for row in sorted(found)]


@dataclass(frozen=True)
class Change:
    """A change of a table, and the rows after so many runs of it."""

    run: Callable[[Table], object]
    rows: Callable[[int], Rows]


def merge(table: Table) -> None:
    source = {"id": [2, 3, 6], "n": [7, 8, 9], "p": ["a", "b", "a"]}
    builder = table.merge(source, "target.id = source.id").when_matched_delete("source.id = 3")
    builder.when_matched_update({"n": "target.n + 1"}).when_not_matched_insert_all().execute()


MERGED = [
    FIRST,
    [(1, 0, "a"), (2, 1, "a"), (6, 9, "a")],
    [(1, 0, "a"), (2, 2, "a"), (3, 8, "b"), (6, 10, "a")],
]
ADDED = [(4, 0, "a"), (5, 0, "c")]
CHANGES: Mapping[str, Change] = {
    "append": Change(lambda t: t.append(NEW), lambda n: rows(*FIRST, *ADDED * n)),
    "overwrite": Change(lambda t: t.overwrite(NEW), lambda n: rows(*(ADDED if n else FIRST))),
    "overwrite where": Change(
        lambda t: t.overwrite({"id": [2], "n": [5], "p": ["a"]}, where="id = 2"),
        lambda n: rows((1, 0, "a"), (2, 5 if n else 0, "a"), (3, 0, "b")),
    ),
    "overwrite dynamically": Change(
        lambda t: t.overwrite({"id": [9], "n": [9], "p": ["a"]}, partitions="dynamic"),
        lambda n: rows(*([(9, 9, "a")] if n else FIRST[:2]), FIRST[2]),
    ),
    "delete": Change(lambda t: t.delete("id = 2"), lambda n: rows(*(FIRST[::2] if n else FIRST))),
    "update": Change(
        lambda t: t.update({"n": "n + 1"}, "id >= 2"), lambda n: rows((1, 0, "a"), (2, n, "a"), (3, n, "b"))
    ),
    "merge": Change(merge, lambda n: rows(*MERGED[n])),
    "alter": Change(
        lambda t: t.alter().add_column(f"c{len(t.schema)}", "INT"),
        lambda n: [{**row, **{f"c{3 + i}": None for i in range(n)}} for row in rows(*FIRST)],
    ),
}


def operation(name: str, *, vectors: bool) -> Operation:
    """A change of a table, for the harness."""
    change = CHANGES[name]
    return Operation(
        name,
        lambda location: make(location, vectors=vectors),
        lambda location: change.run(Table.open(location)),
        change.rows,
        check_feed,
    )


CREATE = Operation(
    "create",
    lambda location: None,
    lambda location: Table.create(location, SCHEMA, properties=PROPERTIES, if_exists="ignore"),
    lambda runs: rows() if runs else None,
)


def check_feed(location: str) -> None:
    """All changes together leave the rows that the table has, and every row has an id of its own."""
    table = Table.open(location)
    changed: Counter[tuple[int, int, str]] = Counter()
    for row in table.changes(starting_version=0).to_arrow().to_pylist():
        changed[row["id"], row["n"], row["p"]] += 1 if row["_change_type"] in ("insert", "update_postimage") else -1
    assert +changed == Counter((row["id"], row["n"], row["p"]) for row in content(location) or ())
    ids = read_plan(plan_scan(table.snapshot, ["id"], row_ids=True)).read_all()["_row_id"].to_pylist()
    assert len(set(ids)) == len(ids)


BY_VECTORS = ("delete", "update", "merge")


@pytest.mark.parametrize(
    ("name", "vectors"), [*((name, False) for name in CHANGES), *((name, True) for name in BY_VECTORS)]
)
def test_c012_c015_a_change_that_fails_at_any_storage_call_is_done_or_not(name: str, vectors: bool) -> None:
    check(operation(name, vectors=vectors))


def test_c012_c015_a_table_whose_creation_fails_at_any_storage_call_is_there_or_not() -> None:
    check(CREATE)


def check(tried: Operation) -> None:
    ready = prepared(tried)
    points = list(crash_points(tried, ["any"] if FULL else WRITING))
    if not FULL:
        points = [point for point in points if point.crashes == (point.when == "before")][::3]
    acknowledged = [survive(tried, point, ready) for point in points]
    assert any(acknowledged)  # what follows the commit may fail
    assert not all(acknowledged)


# ------------------------------------------------------------------------------------------- failures that last
class Refusing(CountingStore):
    """No commit is written, or each is but its answer is lost; `reads` says if the log can be read afterwards."""

    def __init__(self, inner: ObjectStore, *, lands: bool, reads: bool) -> None:
        super().__init__(inner)
        self._lands, self._reads, self._failed = lands, reads, False

    def write_if_absent(self, path: str, data: bytes) -> None:
        if not path.endswith(".json"):
            return super().write_if_absent(path, data)
        self._failed = True
        if self._lands:
            super().write_if_absent(path, data)
        raise connection_lost(path)

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        if self._failed and not self._reads:
            raise connection_lost(path)
        return super().read(path, byte_range)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts do not wait for each other."""
    monkeypatch.setitem(commit_draft.__kwdefaults__, "policy", AttemptPolicy(sleep=lambda _: None))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "alter"])
def test_c013_a_change_whose_answer_is_lost_is_done_once(name: str) -> None:
    tried = operation(name, vectors=True)
    location = prepared(tried)
    store = Refusing(store_for(location), lands=True, reads=True)
    with intercepted(lambda _: store):
        tried.run(location)  # the log says that the commit is there
    assert content(location) == tried.rows(1)
    check_feed(location)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "alter"])
def test_c013_a_change_of_unknown_outcome_keeps_its_files(name: str, lands: bool) -> None:
    tried = operation(name, vectors=True)
    location = prepared(tried)
    store = Refusing(store_for(location), lands=lands, reads=False)
    with intercepted(lambda _: store), pytest.raises(CommitStateUnknownError, match="check whether the history"):
        tried.run(location)
    assert content(location) == tried.rows(int(lands))
    check_feed(location)
    tried.run(location)
    assert content(location) == tried.rows(int(lands) + 1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_a_store_never_commits_is_not_done(name: str) -> None:
    tried = operation(name, vectors=False)
    location = prepared(tried)
    store = Refusing(store_for(location), lands=False, reads=True)
    with intercepted(lambda _: store), pytest.raises(StorageError, match="the connection was lost"):
        tried.run(location)
    assert content(location) == tried.rows(0)
    tried.run(location)
    assert content(location) == tried.rows(1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "alter"])
def test_c180_a_change_of_unknown_outcome_is_repeated_safely_with_txn(name: str) -> None:
    tried = operation(name, vectors=True)
    location = prepared(tried)
    store = Refusing(store_for(location), lands=True, reads=False)
    table = WithTransaction.open(location)
    with intercepted(lambda _: store), pytest.raises(CommitStateUnknownError):
        CHANGES[name].run(table)
    for _ in range(2):
        CHANGES[name].run(WithTransaction.open(location))
    assert content(location) == tried.rows(1)


class WithTransaction(Table):
    """A table whose changes all are write 7 of the application `job`."""

    def _place(self) -> Place:
        place = super()._place()
        return TransactionPlace(place.location, place.storage_options, place.catalog_table)


class TransactionPlace(Place):
    def options(self, **chosen: Any) -> WriteOptions:
        return super().options(**{**chosen, "transaction": SetTransaction(app_id="job", version=7)})
