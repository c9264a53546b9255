"""Streams of tables that a catalog manages: commits that only the catalog has, and the same commits once published."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.managed import PATIENT, Warehouse

from pyspark_delta.errors import DeltaWarning, StorageError
from pyspark_delta.log.listing import list_log
from pyspark_delta.log.names import STAGED_DIRECTORY
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner
from pyspark_delta.transaction.transaction import Transaction


class NeverPublishes(CountingStore):
    """Every attempt to publish a commit fails, as if its writer had crashed."""

    def write_if_absent(self, path: str, data: bytes) -> None:
        name = path.rpartition("/")[2]
        if name[:20].isdecimal() and name.endswith(".json") and STAGED_DIRECTORY not in path and int(name[:20]):
            raise StorageError("not now", path=path)
        super().write_if_absent(path, data)


@contextlib.contextmanager
def unpublished() -> Iterator[None]:
    """Commits of the block are known to the catalog alone."""
    with warnings.catch_warnings(), intercepted(NeverPublishes):
        warnings.simplefilter("ignore", DeltaWarning)
        yield


def append(warehouse: Warehouse, note: str, number: int) -> None:
    """Append a row; a long note makes the commit too large to be inline."""
    with Transaction.on(warehouse.snapshot(), Operation("WRITE", {"note": note}), **PATIENT) as transaction:
        transaction.write([pa.RecordBatch.from_pydict({"id": pa.array([number], pa.int64())})])


def published(warehouse: Warehouse) -> list[int]:
    """The versions in the log."""
    return sorted(list_log(store_for(warehouse.location()), warehouse.location()).commits)


@pytest.mark.parametrize("kind", ["inline", "staged"])
@pytest.mark.parametrize("feed", [False, True])
def test_a_stream_follows_a_managed_table_across_publishing(kind: str, feed: bool, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create(properties={"delta.enableChangeDataFeed": "true"})
    note = "x" * 20_000 if kind == "staged" else ""
    options = StreamOptions.parse({"readChangeFeed": str(feed), "maxFilesPerTrigger": "2", "startingVersion": "0"})
    kept = StreamPlanner(warehouse.snapshot(), options)
    found: list[tuple[Offset | None, Offset, list[str]]] = []

    def read(planner: StreamPlanner) -> None:
        while True:
            start = found[-1][1] if found else None
            end = planner.latest(start)
            assert end is not None
            if end == start:
                return
            found.append((start, end, paths(planner, start, end)))

    read(kept)
    with unpublished():
        for number in range(3):
            append(warehouse, note, number)
        assert published(warehouse) == [0]
        read(kept)
        read(StreamPlanner(warehouse.snapshot(), options))
        append(warehouse, note, 3)
        read(kept)
        append(warehouse, note, 4)
        append(warehouse, note, 5)
        kept.end_of_table()  # finds commits that are published before they are read
        early = StreamPlanner(warehouse.snapshot(), options)
    staged = list(Path(warehouse.location(), "_delta_log", STAGED_DIRECTORY).glob("*.json"))
    assert len(staged) == (6 if kind == "staged" else 0)
    warehouse.catalog.publish("s.t")
    assert published(warehouse) == list(range(7))
    for path in staged:
        path.unlink()
    append(warehouse, note, 6)
    read(kept)
    new = StreamPlanner(warehouse.snapshot(), options)
    assert found[-1][1] == Offset(new.table_id, 8)
    returned = [path for _, _, batch in found for path in batch]
    assert len(returned) == len(set(returned)) == 7
    for planner in (new, early, kept):
        assert [paths(planner, start, end) for start, end, _ in found] == [batch for _, _, batch in found]


def paths(planner: StreamPlanner, start: Offset | None, end: Offset) -> list[str]:
    """The files of a batch."""
    return [path for part in planner.batch(start, end) for path in part.files["path"].to_pylist()]
