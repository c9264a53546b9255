"""Delta Kernel and its clients for Unity Catalog use tables through our server, and we use tables that they make."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from tests.interop.conftest import DeltaSpark
from tests.managed import Warehouse
from tests.served import Served, content_of, create, stage

from pyspark_delta.catalog.connections import disconnect_catalog, managed_table
from pyspark_delta.catalog.contract import TableName
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.errors import MetadataChangedError
from pyspark_delta.storage.paths import file_name
from pyspark_delta.table import Table


@pytest.fixture(scope="module")
def java(delta_spark_peer: DeltaSpark) -> Iterator[JavaGateway]:
    """A Java process with Delta Kernel."""
    spark = Path(next(delta_spark_peer.python.parents[1].glob("lib/python3*/site-packages/pyspark/jars")))
    path = [*spark.glob("*.jar"), *delta_spark_peer.jars]
    port, token = launch_gateway(
        classpath=":".join(map(str, path)),
        jarpath=str(next(spark.glob("py4j*.jar"))),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway
    gateway.shutdown()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a schema `s`."""
    with Served(tmp_path_factory.mktemp("served")) as server:
        server.catalog.create_schema("main", "s")
        yield server


@pytest.fixture
def warehouse(served: Served) -> Iterator[Warehouse]:
    """Our own way to the tables of the server."""
    made = Warehouse.served(served.url, served.token())
    yield made
    disconnect_catalog(made.name)


@dataclass
class Kernel:
    """Delta Kernel, connected to the server by one of its two clients."""

    java: JavaGateway
    served: Served
    api: str

    def __post_init__(self) -> None:
        jvm, token = self.java.jvm, self.served.token()
        configuration = jvm.org.apache.hadoop.conf.Configuration()
        self.engine = jvm.io.delta.kernel.defaults.engine.DefaultEngine.create(configuration)
        self.nothing = jvm.java.util.Optional.empty()
        clients = jvm.io.delta.storage.commit.uccommitcoordinator
        if self.api == "delta":
            options = {"uri": self.served.origin, "auth.type": "static", "auth.token": token}
            self.client = clients.UCDeltaTokenBasedRestClient(options, None)
        else:
            tokens = jvm.io.unitycatalog.client.auth.TokenProvider.create({"type": "static", "token": token})
            self.client = clients.UCTokenBasedRestClient(self.served.origin, tokens, {})
        self.tables = jvm.io.delta.kernel.unitycatalog.UCCatalogManagedClient(self.client)

    def name(self, table: str) -> Any:
        return self.java.jvm.io.delta.kernel.unitycatalog.UCTableIdentifier("main", "s", table)

    def snapshot(self, table: Table, name: str) -> Any:
        """The latest version of a table."""
        identity = self.served.catalog.load_table(TableName("main", "s", name)).table_id
        location = f"file://{table.location}"
        return self.tables.loadSnapshot(self.engine, identity, location, self.name(name), self.nothing, self.nothing)

    def files(self, snapshot: Any) -> set[str]:
        """The names of the live files."""
        found, batches = set(), snapshot.getScanBuilder().build().getScanFiles(self.engine)
        status = self.java.jvm.io.delta.kernel.internal.InternalScanFileUtils.getAddFileStatus
        while batches.hasNext():
            rows = batches.next().getRows()
            while rows.hasNext():
                found.add(file_name(status(rows.next()).getPath()))
        return found

    def commit(self, builder: Any) -> Any:
        """Commit a transaction without files."""
        nothing = self.java.jvm.io.delta.kernel.utils.CloseableIterable.emptyIterable()
        return builder.build(self.engine).commit(self.engine, nothing)

    def set_property(self, snapshot: Any, key: str, value: str) -> Any:
        """Commit a property on top of a snapshot."""
        operation = self.java.jvm.io.delta.kernel.Operation.MANUAL_UPDATE
        builder = snapshot.buildUpdateTableTransaction("kernel", operation)
        return self.commit(builder.withTablePropertiesAdded({key: value}).withMaxRetries(0))


def our_files(table: Table) -> set[str]:
    return {file_name(path) for path in table.files().column("path").to_pylist()}


@pytest.mark.parametrize("api", ["delta", "older"])
def test_c464_c472_kernel_reads_and_commits(java: JavaGateway, served: Served, warehouse: Warehouse, api: str) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    warehouse.create(name)
    for number in range(3):
        warehouse.append(number, table=name)
    kernel = Kernel(java, served, api)
    snapshot = kernel.snapshot(warehouse.open(name), name)
    assert snapshot.getVersion() == 3
    assert kernel.files(snapshot) == our_files(warehouse.open(name))

    stale = warehouse.snapshot(name)
    committed = kernel.set_property(snapshot, "by", "kernel")
    assert committed.getVersion() == 4
    assert warehouse.snapshot(name).properties["by"] == "kernel"
    assert warehouse.append(3, table=name) == 5
    with pytest.raises(MetadataChangedError, match="Version 4"):
        commit_change(set_properties(stale.configuration, {"by": "us"}), stale)
    newer = kernel.snapshot(warehouse.open(name), name)
    assert newer.getVersion() == 5
    newer.publish(kernel.engine)
    assert (Path(warehouse.location(name)) / "_delta_log" / f"{5:020}.json").exists()
    assert warehouse.ids(name) == [0, 1, 2, 3]


def test_c464_kernel_reads_what_is_not_published(java: JavaGateway, served: Served, warehouse: Warehouse) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    info = create(served.catalog, TableName("main", "s", name))
    proposal = stage(info, 1)
    served.catalog.ratify(info, proposal)
    kernel = Kernel(java, served, "delta")
    snapshot = kernel.snapshot(warehouse.open(name), name)
    assert snapshot.getVersion() == warehouse.snapshot(name).version == 1
    assert kernel.files(snapshot) == our_files(warehouse.open(name))
    snapshot.publish(kernel.engine)
    content = content_of(1, proposal.transaction_id, proposal.timestamp)
    assert (Path(info.location) / "_delta_log" / f"{1:020}.json").read_bytes() == content


def test_c481_kernel_creates_a_table(java: JavaGateway, served: Served, warehouse: Warehouse) -> None:
    name, kernel, jvm = f"t{uuid.uuid4().hex[:8]}", Kernel(java, served, "delta"), java.jvm
    namespace = java.new_array(jvm.java.lang.String, 2)
    namespace[0], namespace[1] = "main", "s"
    identifier = jvm.io.delta.storage.commit.TableIdentifier(namespace, name)
    staging = kernel.client.createStagingTable(identifier)
    identity, location = str(staging.getTableId()), staging.getLocation()
    schema = jvm.io.delta.kernel.types.StructType().add("id", jvm.io.delta.kernel.types.LongType.LONG)
    builder = kernel.tables.buildCreateTableTransaction(identity, location, schema, "kernel", kernel.name(name))
    kernel.commit(builder.withTableProperties({"delta.enableDeletionVectors": "true"}))

    assert warehouse.append(5, table=name) == 1
    assert warehouse.ids(name) == [5]
    table = warehouse.open(name)
    assert table.metadata.configuration["io.unitycatalog.tableId"] == identity
    assert {"catalogManaged", "deletionVectors"} <= (table.protocol.reader_features or frozenset())
    snapshot = kernel.snapshot(table, name)
    assert (snapshot.getVersion(), kernel.files(snapshot)) == (1, our_files(table))
    kernel.set_property(snapshot, "by", "kernel")
    late = managed_table(table.snapshot.catalog_table)
    assert late is not None
    assert late.log_tail().latest_version == 2
