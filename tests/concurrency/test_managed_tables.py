"""Processes that write to one managed table at once, through catalogs of every kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from tests.managed import Warehouse
from tests.processes import processes

from pyspark_delta.log.listing import list_log
from pyspark_delta.storage import store_for

# Commits of each process; more than CI has time for show more.
COMMITS = int(os.environ.get("PYSPARK_DELTA_TEST_COMMITS", "4"))
WRITERS = 4


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(WRITERS, mp_context=processes()) as made:
        yield made


def append_often(warehouse: Warehouse, process: int) -> list[tuple[int, int]]:
    """What one process was told that it committed: version and row."""
    rows = [process * 1000 + number for number in range(COMMITS)]
    return [(warehouse.append(row), row) for row in rows]


def check_writers(warehouse: Warehouse, pool: ProcessPoolExecutor) -> None:
    warehouse.create(properties={"delta.checkpointInterval": "5"})
    told = [pool.submit(append_often, warehouse, process) for process in range(WRITERS)]
    acknowledged = sorted(pair for one in told for pair in one.result())
    assert [version for version, _ in acknowledged] == list(range(1, WRITERS * COMMITS + 1))
    for version, _ in acknowledged[:: 2 * WRITERS]:
        assert warehouse.ids(version=version) == sorted(row for other, row in acknowledged if other <= version)
    assert warehouse.ids() == sorted(row for _, row in acknowledged)
    location = warehouse.location()
    warehouse.catalog.publish("s.t")
    listing = list_log(store_for(location), location)
    assert sorted(listing.commits) == list(range(WRITERS * COMMITS + 1))
    assert warehouse.snapshot().checksum_differences() == ()


def test_c469_c473_writers_through_sqlite(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    check_writers(Warehouse(tmp_path), pool)


def test_c469_c473_writers_through_postgresql(
    pool: ProcessPoolExecutor, postgresql_database: Callable[[], str], tmp_path: Path
) -> None:
    check_writers(Warehouse(tmp_path, url=postgresql_database()), pool)


def test_c456_c469_writers_through_files(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    check_writers(Warehouse(tmp_path, url=f"file://{tmp_path}/catalog"), pool)
