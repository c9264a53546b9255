"""Tables whose catalog is behind a server: created, written, read, and fought over, as with every other catalog."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import pytest
from tests.concurrency.test_managed_tables import WRITERS, check_writers
from tests.faults.test_catalog_crash_points import append, runs_of
from tests.managed import IDS, Warehouse
from tests.processes import processes
from tests.served import BASE, Application, Served

from pyspark_delta.catalog.connections import disconnect_catalog, managed_table
from pyspark_delta.catalog.contract import CommitKind
from pyspark_delta.catalog.names import required_name, resolve
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    DeltaError,
    DeltaWarning,
    MetadataChangedError,
    NotAuthorizedError,
)
from pyspark_delta.storage import store_for
from pyspark_delta.table import Table
from pyspark_delta.testing.catalog_faults import FaultyCatalog, no_answer
from pyspark_delta.testing.faults import Fault


@pytest.fixture
def warehouse(served: Served) -> Iterator[Warehouse]:
    """The served catalog, without tables."""
    made = Warehouse.served(served.url, served.token())
    yield made
    for name in made.catalog.tables("s"):
        made.catalog.drop(name)
    disconnect_catalog(made.name)


def test_a_table_from_its_creation_to_its_end(warehouse: Warehouse) -> None:
    warehouse.create(properties={"delta.checkpointInterval": "3"})
    assert [warehouse.append(number) for number in range(7)] == list(range(1, 8))
    table = managed_table(warehouse.snapshot().catalog_table)
    assert table is not None
    tail = table.log_tail()
    assert [(c.version, c.kind) for c in tail.commits] == [(7, CommitKind.STAGED)]
    assert warehouse.snapshot().segment.checkpoint_version == 6
    assert warehouse.ids(version=3) == [0, 1, 2]
    snapshot = warehouse.snapshot()
    commit_change(set_properties(snapshot.configuration, {"owner": "ada", "note": "x"}), snapshot)
    with pytest.raises(MetadataChangedError):
        commit_change(set_properties(snapshot.configuration, {"owner": "bob"}), snapshot)
    assert table.catalog.load_table(table.info.name).properties["owner"] == "ada"
    warehouse.catalog.rename("s.t", "s.u")
    assert warehouse.append(7, table="u") == 9
    warehouse.catalog.drop("s.u")
    with pytest.raises(CatalogNameNotFoundError):
        warehouse.open("u")
    with pytest.raises(DeltaError):
        snapshot.update()


def test_the_catalog_is_told_of_a_registered_table_and_of_its_changes(warehouse: Warehouse, tmp_path: Path) -> None:
    """By the commits that find it by its name, whatever commits."""
    path = str(tmp_path / "t")
    create_table(path, TableDefinition(schema=IDS, properties={"owner": "ada"}), CreateMode.CREATE)
    warehouse.catalog.register("s.r", path)
    catalog, name = warehouse.catalog.catalog, required_name(warehouse.full("r"))
    assert catalog.load_table(name).properties == {"owner": "ada"}
    with catch_warnings():
        simplefilter("error")
        assert warehouse.append(1, table="r") == 1
        before = catalog.load_table(name)
        snapshot = warehouse.snapshot("r")
        commit_change(set_properties(snapshot.configuration, {"owner": "bob", "note": "x"}), snapshot)
    found = catalog.load_table(name)
    assert (found.properties, found.etag != before.etag) == ({"owner": "bob", "note": "x"}, True)
    assert before.properties == {"owner": "ada"}
    warehouse.catalog.drop("s.r")
    snapshot = snapshot.update()
    with pytest.warns(DeltaWarning, match="committed, but its metadata could not be reported"):
        commit_change(set_properties(snapshot.configuration, {"owner": "eve"}), snapshot)
    assert Table.open(path).metadata.configuration["owner"] == "eve"


def test_c462_a_table_is_opened_by_its_name_with_one_request(tmp_path: Path) -> None:
    requests: list[str] = []

    def counting(application: Application) -> Application:
        async def count(scope: Any, receive: Any, send: Any) -> None:
            requests.append(f"{scope['method']} {scope['path'].removeprefix(BASE)}")
            await application(scope, receive, send)

        return count

    def asked(work: Callable[[], object]) -> list[str]:
        requests.clear()
        work()
        return list(requests)

    load = "GET /delta/v1/catalogs/main/schemas/s/tables/t"
    with Served(tmp_path, wrap=counting) as served:
        served.catalog.create_schema("main", "s")
        warehouse = Warehouse.served(served.url, served.token())
        warehouse.create()
        assert [warehouse.append(number) for number in range(3)] == [1, 2, 3]
        for _ in range(2):  # opened, and brought up to date
            assert asked(lambda: warehouse.open().scan().to_arrow()) == [load]
        assert asked(lambda: warehouse.open(version=1).scan().to_arrow()) == [load]
        table = warehouse.open()
        warehouse.append(3)
        assert asked(lambda: table.snapshot.update()) == [load]
        assert table.snapshot.update().version == warehouse.open().version == 4
    disconnect_catalog("main")


def test_c468_answers_that_get_lost(warehouse: Warehouse) -> None:
    whole = warehouse.catalog.catalog
    for number, when in enumerate(("before", "after")):
        name = f"lost{number}"
        warehouse.create(name)
        for done, call in enumerate(("ratify", "log_tail")):
            faulty = FaultyCatalog(whole, Fault(path_part=call, when=when, raises=no_answer))  # type: ignore[arg-type]
            warehouse.through(faulty)  # type: ignore[arg-type]
            try:
                warehouse.append(done, table=name)
            except DeltaError:
                warehouse.through(whole)
                warehouse.append(done, table=name)
            warehouse.through(whole)
        assert warehouse.ids(name) == [0, 1]


def test_c469_c473_writers_through_a_server(served: Served, warehouse: Warehouse) -> None:
    with ProcessPoolExecutor(WRITERS, mp_context=processes()) as pool:
        check_writers(warehouse, pool)


def test_a_token_that_may_only_read(served: Served, warehouse: Warehouse) -> None:
    warehouse.create()
    append(warehouse)
    reading = Warehouse.served(served.url, served.token(Scope.READ))
    assert reading.ids() == [1]
    table = resolve(required_name(reading.full("t")))
    assert table.catalog_table.catalog.url is None  # another process has no token
    assert str(reading.token).encode() not in pickle.dumps(table)
    files = sorted(file.path for file in store_for("/").list_from(f"{reading.location()}/_delta_log/0"))
    with pytest.raises(NotAuthorizedError):
        reading.append(2)
    with pytest.raises(NotAuthorizedError):
        reading.create("mine")
    warehouse.through(Warehouse.served(served.url, served.token()).catalog.catalog)
    assert runs_of(append, warehouse) == 1
    assert sorted(file.path for file in store_for("/").list_from(f"{warehouse.location()}/_delta_log/0")) == files
