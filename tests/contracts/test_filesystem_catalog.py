"""A catalog of files keeps the catalog contract, on a disk and in memory."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.filesystem import FilesystemCatalog
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalogs import connect_catalog
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    InvalidProposalError,
    NotAuthorizedError,
    PermissionDeniedError,
    RatificationConflictError,
)
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.testing.catalog_cases import PublishedCommits, SoftDrops
from pyspark_delta.testing.catalog_contract import CatalogContract
from pyspark_delta.testing.catalog_literal_names import LiteralNames
from pyspark_delta.testing.catalog_registered import Registering
from pyspark_delta.testing.catalog_repairs import Repairs
from pyspark_delta.testing.catalog_tables import CatalogSetup, commit_versions, create_table, new_table, propose
from pyspark_delta.testing.faults import Fault, FaultyStore, SimulatedCrash, connection_lost, crash


class TestFilesystemCatalog(CatalogContract, PublishedCommits, Registering, SoftDrops, Repairs, LiteralNames):
    @pytest.fixture(params=["local", "memory"])
    def setup(self, request: pytest.FixtureRequest, tmp_path: Path) -> CatalogSetup:
        url = f"file://{tmp_path}/catalog" if request.param == "local" else f"memory://{uuid.uuid4().hex}/catalog"
        setup = CatalogSetup(make=lambda: FilesystemCatalog(url))
        setup.make().create_schema(setup.catalog, setup.schema)
        return setup


@pytest.fixture
def setup(tmp_path: Path) -> CatalogSetup:
    setup = CatalogSetup(make=lambda: FilesystemCatalog(f"file://{tmp_path}/catalog"))
    setup.make().create_schema(setup.catalog, setup.schema)
    return setup


@contextmanager
def failing(fault: Fault) -> Iterator[None]:
    """One call to any store fails."""
    faulty = FaultyStore(store_for("/"), fault)
    with intercepted(lambda _: faulty):
        yield
    assert faulty.struck


@pytest.mark.parametrize("raises", [crash, connection_lost])
def test_a_renaming_that_is_interrupted_can_be_completed(
    setup: CatalogSetup, raises: Callable[[str], BaseException]
) -> None:
    table = create_table(setup, setup.make(), "old")
    new = setup.name("new")
    fault = Fault(kind="write_if_absent", path_part="/old.", raises=raises)
    with failing(fault), pytest.raises((SimulatedCrash, CatalogUnavailableError)):
        setup.make().rename_table(table.name, new)
    catalog = setup.make()
    assert catalog.load_table(table.name) == table
    assert catalog.list_tables(setup.catalog, setup.schema) == [table.name]
    with pytest.raises(CatalogNameNotFoundError):
        catalog.load_table(new)
    with pytest.raises(CatalogNameExistsError):
        catalog.create_staging_table(new)  # it is held
    catalog.rename_table(table.name, new)
    assert setup.make().load_table(new).table_id == table.table_id
    assert catalog.list_tables(setup.catalog, setup.schema) == [new]


def test_a_renaming_that_is_interrupted_holds_no_name_once_the_table_moved_elsewhere(setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog, "old")
    with failing(Fault(kind="write_if_absent", path_part="/old.")), pytest.raises(CatalogUnavailableError):
        setup.make().rename_table(table.name, setup.name("held"))
    catalog.rename_table(table.name, setup.name("new"))
    other = create_table(setup, catalog, "held")
    assert catalog.list_tables(setup.catalog, setup.schema) == [other.name, setup.name("new")]


def test_a_table_gets_one_of_two_new_names(setup: CatalogSetup) -> None:
    for number in range(5):
        table = create_table(setup, setup.make(), f"old{number}")
        names = [setup.name(f"{letter}{number}") for letter in "ab"]

        def rename(new: TableName, old: TableName = table.name) -> bool:
            try:
                setup.make().rename_table(old, new)
            except CatalogNameNotFoundError:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(rename, names))
        assert sorted(done) == [False, True]
        assert setup.make().load_table(names[done.index(True)]).table_id == table.table_id
        with pytest.raises(CatalogNameNotFoundError):
            setup.make().load_table(names[done.index(False)])


def test_c469_a_commit_whose_answer_is_lost_is_recognised(setup: CatalogSetup) -> None:
    table = create_table(setup, setup.make())
    proposal = propose(setup, setup.make(), table, 1)
    with failing(Fault(kind="write_if_absent", when="after")):
        assert not setup.make().ratify(table, proposal).replayed  # found out by looking
    further = propose(setup, setup.make(), table, 2)
    with failing(Fault(kind="write_if_absent")), pytest.raises(CatalogUnavailableError):
        setup.make().ratify(table, further)
    assert setup.make().log_tail(table).latest_version == 1
    assert not setup.make().ratify(table, further).replayed


def test_a_store_that_refuses_is_no_authorization(setup: CatalogSetup) -> None:
    table = create_table(setup, setup.make())
    proposal = propose(setup, setup.make(), table, 1)

    def refused(path: str) -> BaseException:
        return PermissionDeniedError(f"No permission to write '{path}'.", path=path)

    with failing(Fault(kind="write_if_absent", raises=refused)), pytest.raises(NotAuthorizedError):
        setup.make().ratify(table, proposal)


def test_c482_a_table_that_was_cleaned_up_and_checkpointed_is_found_by_its_hint(setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    commit_versions(setup, catalog, table, 1, 6)
    store = store_for(table.location)
    store.write(f"{table.location}/_delta_log/_last_checkpoint", b'{"version":4,"size":1}')
    store.delete([published_path(table.location, version) for version in range(4)])
    assert setup.make().log_tail(table).latest_version == 6
    with pytest.raises(RatificationConflictError):
        catalog.ratify(table, propose(setup, catalog, table, 4))  # version 3 is gone, version 4 is not
    commit_versions(setup, catalog, table, 7, 7)


def test_damaged_names_are_reported(setup: CatalogSetup, tmp_path: Path) -> None:
    table = create_table(setup, setup.make())
    (pointer,) = tmp_path.glob("catalog/_names/main/tests/t.*.json")
    pointer.write_bytes(b"{")
    with pytest.raises(CatalogError, match="damaged"):
        setup.make().load_table(table.name)


def test_new_tables_go_where_they_are_told(tmp_path: Path) -> None:
    catalog = FilesystemCatalog(str(tmp_path / "names"), storage_root=str(tmp_path / "elsewhere"))
    catalog.create_schema("main", "s")
    staging = catalog.create_staging_table(TableName("main", "s", "t"))
    assert staging.location == f"{tmp_path}/elsewhere/{staging.table_id}"
    with pytest.raises(InvalidProposalError):
        catalog.create_table(replace(staging, location=str(tmp_path)), new_table(staging))


def test_names_that_no_file_can_have_are_refused(setup: CatalogSetup) -> None:
    for name in ("n" * 240, "%" * 100):
        with pytest.raises(InvalidProposalError):
            setup.make().create_staging_table(setup.name(name))


@pytest.mark.parametrize("place", ["home", "catalog/tables", "catalog/tables/../../home", "catalog"])
def test_purging_deletes_only_what_the_catalog_made(tmp_path: Path, place: str) -> None:
    catalog = connect_catalog(f"file://{tmp_path}/catalog", "attacked")
    catalog.create_schema("s")
    victim = tmp_path / "home" / "letters.txt"
    victim.parent.mkdir()
    victim.write_text("dear")
    dropped = tmp_path / "catalog" / "_dropped"
    dropped.mkdir(exist_ok=True)
    own = str(uuid.uuid4())
    (tmp_path / "catalog" / "tables" / own).mkdir(parents=True)
    for name, table_id, location in (
        ("any", "any", f"{tmp_path}/{place}"),  # an id that is none
        (other := str(uuid.uuid4()), other, f"{tmp_path}/{place}"),  # another location than that of the id
        (str(uuid.uuid4()), own, f"{tmp_path}/catalog/tables/{own}"),  # the id of another table
    ):
        value = {"table": table_id, "location": location, "managed": True, "name": ["attacked", "s", "t"], "dropped": 1}
        (dropped / f"{name}.json").write_text(json.dumps(value))
    assert catalog.purge(timedelta(0)) == []
    assert victim.read_text() == "dear"
    assert (tmp_path / "catalog" / "tables" / own).is_dir()
    (dropped / f"{own}.json").write_text("no JSON")
    with pytest.raises(CatalogError, match="is damaged"):
        catalog.purge(timedelta(0))


def test_purging_removes_what_killed_processes_left_in_the_catalog(tmp_path: Path) -> None:
    catalog = connect_catalog(f"file://{tmp_path}/catalog", "left")
    catalog.create_schema("s")
    names = tmp_path / "catalog" / "_names" / "left"
    old, young = (names / f".pyspark-delta-{uuid.uuid4().hex}.tmp" for _ in range(2))
    for file in (old, young):
        file.write_bytes(b"{}")
    os.utime(old, (1, 1))
    entries = sorted(path.name for path in names.iterdir() if path != old)
    catalog.purge()
    assert sorted(path.name for path in names.iterdir()) == entries
    assert catalog.schemas() == ["s"]
