"""Processes that commit through one catalog at once: no version is lost, made twice or skipped, whatever they do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path

import pytest
from tests.catalog_writers import TABLE, Address, commit, publish_all, read
from tests.processes import processes

from pyspark_delta.catalog.contract import Catalog
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.log.provenance import transaction_id
from pyspark_delta.storage import normalize_location
from pyspark_delta.testing.catalog_tables import create_table

# Commits of each process; more than CI has time for show more.
COMMITS = int(os.environ.get("PYSPARK_DELTA_TEST_COMMITS", "6"))
WRITERS, READERS = 8, 2


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(WRITERS + READERS, mp_context=processes()) as pool:
        yield pool


def check_catalog(pool: ProcessPoolExecutor, address: Address) -> None:
    """Commit by several processes while others read, and compare what they were told with what is there."""
    with address.opened() as catalog:
        _check_catalog(pool, address, catalog)


def _check_catalog(pool: ProcessPoolExecutor, address: Address, catalog: Catalog) -> None:
    setup, total = address.setup(), WRITERS * COMMITS
    catalog.create_schema(setup.catalog, setup.schema)
    table = create_table(setup, catalog, TABLE)
    readers = [pool.submit(read, address) for _ in range(READERS)]
    writers = [pool.submit(commit, address, process, COMMITS) for process in range(WRITERS)]
    wait(writers)
    (address.shared / "stop").touch()
    told = [writer.result() for writer in writers]
    seen = [reader.result() for reader in readers]

    acknowledged = {version: identity for one in told for version, identity in one.acknowledged.items()}
    assert sorted(version for one in told for version in one.acknowledged) == list(range(1, total + 1))
    assert len(set(acknowledged.values())) == total
    assert all(one.reads for one in seen)
    for one in seen:
        assert one.transactions.items() <= acknowledged.items()
    publish_all(setup, catalog, table)
    tail = catalog.log_tail(table)
    assert (tail.latest_version, tail.commits) == (total, ())
    found = {}
    for version in range(1, total + 1):
        path = published_path(normalize_location(table.location), version)
        found[version] = transaction_id(setup.store(path).read(path))
    assert found == acknowledged


def test_c012_c469_c472_processes_share_a_catalog_in_sqlite(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    check_catalog(pool, Address(f"sqlite:///{tmp_path}/catalog.db", tmp_path))


def test_c012_c469_c472_processes_share_a_catalog_in_postgresql(
    pool: ProcessPoolExecutor, postgresql_database: Callable[[], str], tmp_path: Path
) -> None:
    check_catalog(pool, Address(postgresql_database(), tmp_path, storage_root=str(tmp_path / "tables")))


def test_c012_c456_c469_processes_share_a_catalog_of_files(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    check_catalog(pool, Address(f"file://{tmp_path}/catalog", tmp_path))


def test_processes_that_connect_first_at_once_find_one_catalog(
    pool: ProcessPoolExecutor, postgresql_database: Callable[[], str], tmp_path: Path
) -> None:
    root = str(tmp_path / "tables")
    for url in (f"sqlite:///{tmp_path}/new/catalog.db", postgresql_database()):
        address = Address(url, tmp_path, storage_root=root)
        names = list(pool.map(create_schema, [address] * WRITERS, range(WRITERS)))
        with address.opened() as catalog:
            assert catalog.list_schemas("main") == sorted(names)


def create_schema(address: Address, process: int) -> str:
    """Connect, and make a schema of one's own."""
    with address.opened() as catalog:
        catalog.create_schema("main", f"schema{process}")
    return f"schema{process}"
