"""Processes that change one table with `Table` at once: what is left is what some serial order of the commits leaves.

Every commit carries what it was asked to do. Replayed by version in plain Python, the statements must give the rows,
the change feed and the numbers of the table.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from tests.managed import Warehouse
from tests.processes import processes
from tests.table_writers import NUMBERED, ROWS, SCHEMA, STATEMENTS, WRITERS, Place, check_history, write

from pyspark_delta.errors import CommitConflictError


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(WRITERS, mp_context=processes()) as made:
        yield made


def check_row_changes(pool: ProcessPoolExecutor, place: Place, *, vectors: bool) -> None:
    properties = {"enableDeletionVectors": vectors, "enableRowTracking": True, "enableChangeDataFeed": True}
    table = place.create(SCHEMA, checkpointInterval=5, **properties)
    for first in range(0, ROWS, 20):
        table.append({"id": list(range(first, first + 20)), "n": [0] * 20})
    told = [pool.submit(write, place, number) for number in range(WRITERS)]
    done = [asked for one in told for asked in one.result()]
    check_history(place.open(), done)


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "rewriting"])
def test_c015_row_changes_leave_what_a_serial_order_leaves(
    pool: ProcessPoolExecutor, tmp_path: Path, vectors: bool
) -> None:
    check_row_changes(pool, Place(str(tmp_path / "table")), vectors=vectors)


def test_c015_row_changes_on_s3_leave_what_a_serial_order_leaves(
    pool: ProcessPoolExecutor, s3_options: dict[str, str]
) -> None:
    check_row_changes(pool, Place(f"s3://contract/{uuid.uuid4().hex}/table", s3_options), vectors=True)


def test_c469_row_changes_by_name_leave_what_a_serial_order_leaves(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    check_row_changes(pool, Place(warehouse=Warehouse(tmp_path)), vectors=True)


# ---------------------------------------------------------------------------------------------------- appends
def append_numbered(place: Place, number: int) -> int:
    table = place.open()
    for step in range(STATEMENTS):
        table.append({"id": [number, number], "n": [step, step]})
    return 2 * STATEMENTS


def test_c401_identity_values_are_unique_among_writers(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "table"))
    place.create(NUMBERED, enableRowTracking=True)
    rows = sum(pool.map(append_numbered, [place] * WRITERS, range(WRITERS)))
    found = place.open().scan().to_arrow().to_pylist()
    assert len(found) == len({row["k"] for row in found}) == rows
    assert Counter(row["id"] for row in found) == dict.fromkeys(range(WRITERS), 2 * STATEMENTS)


def append_once(place: Place, writes: int) -> list[int]:
    """Make every write of one application that the table lacks, as a job does that is run again; the made ones."""
    table, made = place.open(), []
    for number in range(writes):
        while True:
            try:
                result = table.append({"id": [number], "n": [0]}, txn=("job", number))
            except CommitConflictError:
                table.refresh()
                continue
            made += [number] if result.version is not None else []
            break
    return made


def test_c180_two_processes_of_one_application_write_everything_once(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "table"))
    place.create(SCHEMA)
    writes = 3 * STATEMENTS
    made = [number for one in pool.map(append_once, [place] * 2, [writes] * 2) for number in one]
    assert sorted(made) == list(range(writes))
    assert sorted(place.open().scan(["id"]).to_arrow()["id"].to_pylist()) == list(range(writes))
