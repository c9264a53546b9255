"""The value for a table of a catalog, and the registry of connections that it is looked up in."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from tests.managed import IDS, PATIENT, Warehouse
from tests.processes import processes

from pyspark_delta.catalog.connections import (
    _may_hold_secret,
    attach_catalog,
    catalog_table,
    connect,
    disconnect_catalog,
    known_table,
    managed_table,
)
from pyspark_delta.catalog.contract import TableInfo, TableName
from pyspark_delta.catalog.names import ResolvedTable, required_name, resolve, resolve_or_create
from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.errors import CatalogError
from pyspark_delta.protocol.catalog_table import CatalogReference
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.transaction import Transaction

SECRET = "s3cr3t-wJalrXUtnFEMI"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A catalog with one table `t`."""
    made = Warehouse(tmp_path)
    made.create()
    yield made
    disconnect_catalog(made.name)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """Another process, which has not connected to any catalog."""
    with ProcessPoolExecutor(1, mp_context=processes()) as pool:
        yield pool


def load(resolved: ResolvedTable) -> Snapshot:
    return Snapshot.load(
        resolved.location, storage_options=resolved.storage_options, catalog_table=resolved.catalog_table
    )


def commit(resolved: ResolvedTable) -> int:
    """Append a row through the catalog of the value; the version."""
    return append(load(resolved))


def append(snapshot: Snapshot) -> int:
    with Transaction.on(snapshot, **PATIENT) as transaction:
        transaction.write([pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int64())})])
    return transaction.version


def test_c453_another_process_commits_through_the_value(warehouse: Warehouse, elsewhere: ProcessPoolExecutor) -> None:
    table = resolve(required_name(warehouse.full("t")))
    assert table.storage_options == {}
    assert [elsewhere.submit(commit, table).result() for _ in range(2)] == [1, 2]
    assert warehouse.ids() == [1, 1]


def test_a_value_that_does_not_hold_everything_needs_a_connection(
    warehouse: Warehouse, elsewhere: ProcessPoolExecutor
) -> None:
    attach_catalog(warehouse.name, warehouse.catalog.catalog)
    table = resolve(required_name(warehouse.full("t")))
    assert table.catalog_table.catalog == CatalogReference(warehouse.name)
    with pytest.raises(CatalogError, match="not connected"):
        elsewhere.submit(commit, table).result()


@pytest.mark.filterwarnings("ignore:Query string argument")  # SQLite needs no password
@pytest.mark.parametrize(("query", "options"), [("", {"aws_secret_access_key": SECRET}), (f"?password={SECRET}", {})])
def test_the_value_holds_no_secret(tmp_path: Path, query: str, options: dict[str, str]) -> None:
    url, root = f"sqlite:///{tmp_path}/catalog.db{query}", str(tmp_path / "tables")
    connect(url, "secret", storage_root=root, storage_options=options)
    info = TableInfo(table_id="1", name=TableName("secret", "s", "t"), location=str(tmp_path / "t"))
    table = catalog_table("secret", info)
    assert table.catalog == CatalogReference("secret")
    assert SECRET not in repr(table)
    assert SECRET.encode() not in pickle.dumps(table)
    disconnect_catalog("secret")


@pytest.mark.parametrize(
    ("url", "is_secret"),
    [
        (f"https://{SECRET}@host/api/2.1/unity-catalog", True),
        (f"postgresql://user:{SECRET}@host/db", True),
        (f"postgresql://host/db?password={SECRET}", True),
        ("postgresql://user@host/db", False),
        ("sqlite:////data/catalog.db", False),
        ("http://localhost:8080/api/2.1/unity-catalog", False),
    ],
)
def test_a_url_with_a_secret_is_recognized(url: str, is_secret: bool) -> None:
    assert _may_hold_secret(url) == is_secret


def test_a_disconnected_catalog_is_not_opened_again(warehouse: Warehouse) -> None:
    snapshot = warehouse.snapshot()
    disconnect_catalog(warehouse.name)
    for use in (snapshot.update, snapshot.checkpoint, lambda: append(snapshot)):
        with pytest.raises(CatalogError, match=f"not connected to a catalog '{warehouse.name}'"):
            use()


def test_the_next_connection_knows_tables_that_have_no_name_yet(warehouse: Warehouse) -> None:
    staging = resolve_or_create(required_name(warehouse.full("new")))
    warehouse.through(warehouse.catalog.catalog)
    create_table(staging.location, TableDefinition(schema=IDS), CreateMode.CREATE, catalog_table=staging.catalog_table)
    assert warehouse.open("new").version == 0
    assert managed_table(staging.catalog_table) is not None


@pytest.mark.parametrize("again", [True, False])
def test_a_connection_does_not_outlive_its_name(tmp_path: Path, again: bool) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    name, url, root = warehouse.name, warehouse.url, warehouse.root
    catalog = weakref.ref(warehouse.catalog.catalog)
    del warehouse
    gc.collect()
    assert catalog() is not None
    if again:
        connect(url, name, storage_root=root)
    else:
        disconnect_catalog(name)
    gc.collect()
    assert catalog() is None
    disconnect_catalog(name)


def recreate(warehouse: Warehouse) -> None:
    warehouse.catalog.drop("s.t")
    warehouse.create()


def rename(warehouse: Warehouse) -> None:
    warehouse.catalog.rename("s.t", "s.renamed")


@pytest.mark.parametrize(
    ("change", "message"), [(recreate, "now belongs to another table"), (rename, "no table|not found")]
)
def test_another_process_does_not_take_one_table_for_another(
    warehouse: Warehouse, elsewhere: ProcessPoolExecutor, change: Callable[[Warehouse], None], message: str
) -> None:
    table = resolve(required_name(warehouse.full("t")))
    change(warehouse)
    with pytest.raises(CatalogError, match=message):
        elsewhere.submit(commit, table).result()


def test_a_table_is_looked_up_once(warehouse: Warehouse) -> None:
    table = resolve(required_name(warehouse.full("t"))).catalog_table
    first, second = known_table(table), known_table(pickle.loads(pickle.dumps(table)))
    assert first is not None
    assert second is not None
    assert first[1] is second[1]
