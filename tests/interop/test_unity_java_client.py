"""Unity Catalog's Java client, which delta-spark uses, understands the server, and knows what the client here sends."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError
from tests.served import Served, first_version, publish, stage

from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol
from pyspark_delta.catalog.contract import MetadataChange, Proposal, TableInfo, TableName
from pyspark_delta.catalog.unity.property_sync import change_to_updates, new_table_to_json, snapshot_update
from pyspark_delta.catalog.unity.responses import (
    commit_of_proposal,
    commit_to_json,
    staging_of,
    table_of,
    wire_location,
)

ROOT = Path(__file__).parents[2]
NAME = TableName("main", "s", "t")


class JavaClient:
    """The Delta API of the Java client. Requests and answers are JSON, read and written by its own classes."""

    def __init__(self, java: JavaGateway, served: Served) -> None:
        client = java.jvm.io.unitycatalog.client
        token = client.auth.TokenProvider.create({"type": "static", "token": served.token()})
        connected = client.ApiClientBuilder.create().uri(served.origin).tokenProvider(token).build()
        self._java, self._mapper = java, connected.getObjectMapper()
        self.configuration = client.delta.api.DeltaConfigurationApi(connected)
        self.tables = client.delta.api.DeltaTablesApi(connected)
        self.credentials = client.delta.api.DeltaTemporaryCredentialsApi(connected)

    def request(self, model: str, value: Mapping[str, Any]) -> Any:
        """A request of the Java client; nothing of it may get lost."""
        kind = self._java.jvm.java.lang.Class.forName(f"io.unitycatalog.client.delta.model.Delta{model}")
        read = self._mapper.readValue(json.dumps(value), kind)
        assert self.answer(read) == value
        return read

    def answer(self, value: Any) -> Any:
        """The JSON of an answer, without members that are null."""
        return _present(json.loads(self._mapper.writeValueAsString(value)))


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _present(member) for key, member in value.items() if member is not None}
    return [_present(member) for member in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    """A JVM with the Java client."""
    folder = Path(os.environ.get("PYSPARK_DELTA_PEER_JARS") or ROOT / ".cache" / "jars")
    if not any(folder.glob("unitycatalog-client-*.jar")):
        pytest.skip("delta-spark is not set up; `make test` does it")
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    jars = Path(found.origin).parent / "jars"  # Jackson, which the client needs, is among them
    (py4j,) = jars.glob("py4j*.jar")
    port = launch_gateway(jarpath=str(py4j), classpath=f"{folder}/*:{jars}/*", die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    yield gateway
    gateway.shutdown()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as server:
        server.catalog.create_schema("main", "s")
        yield server


def update(table: TableInfo, *updates: Mapping[str, Any]) -> dict[str, Any]:
    return {"requirements": [{"type": "assert-table-uuid", "uuid": table.table_id}], "updates": list(updates)}


def add_commit(proposal: Proposal) -> dict[str, Any]:
    return {"action": "add-commit", "commit": commit_to_json(commit_of_proposal(proposal), "-")}


def refused(java: JavaGateway, status: int, kind: str | None, call: Any) -> None:
    """The call fails as the Java client expects; the answer to HEAD cannot say why."""
    with pytest.raises(Py4JJavaError) as caught:
        call()
    error = caught.value.java_exception
    understood = getattr(java.jvm.io.unitycatalog.client.delta.DeltaApiException, "from")(error)
    found = understood.get().getErrorType().toString() if understood.isPresent() else None
    assert (error.getCode(), found) == (status, kind)


def test_the_java_client_makes_a_table_and_commits_to_it(java: JavaGateway, served: Served) -> None:
    client = JavaClient(java, served)
    tables, where = client.tables, ("main", "s", "t")
    assert client.configuration.getConfig("main", "1.0").getProtocolVersion() == "1.0"

    request = client.request("CreateStagingTableRequest", {"name": "t"})
    staging = staging_of(NAME, client.answer(tables.createStagingTable("main", "s", request)))
    uuid = java.jvm.java.util.UUID.fromString(staging.table_id)
    (credential,) = client.answer(client.credentials.getStagingTableCredentials(uuid))["storage-credentials"]
    assert (credential["prefix"], credential["config"]) == (wire_location(staging.location), {})
    new = first_version(staging)
    create = client.request("CreateTableRequest", new_table_to_json("t", wire_location(staging.location), new))
    made = client.answer(tables.createTable("main", "s", create))
    assert made == client.answer(tables.loadTable(*where))
    table = table_of(NAME, made)
    assert (table.table_id, table.properties) == (staging.table_id, new.metadata.configuration)
    tables.tableExists(*where)

    first, second = stage(table, 1), stage(table, 2)
    tables.updateTable(*where, client.request("UpdateTableRequest", update(table, add_commit(first))))
    publish(table, first)
    published = {"action": "set-latest-backfilled-version", "latest-published-version": 1}
    answer = tables.updateTable(
        *where, client.request("UpdateTableRequest", update(table, add_commit(second), published))
    )
    assert second.file is not None
    assert [commit["file-name"] for commit in client.answer(answer)["commits"]] == [second.file.name]
    late = client.request("UpdateTableRequest", update(table, add_commit(stage(table, 2))))
    refused(java, 409, "CommitVersionConflictException", lambda: tables.updateTable(*where, late))
    early = client.request("UpdateTableRequest", update(table, add_commit(stage(table, 9))))
    refused(java, 400, "InvalidParameterValueException", lambda: tables.updateTable(*where, early))

    report = {"table-id": table.table_id, "report": {"commit-report": {"num-files-added": 1}}}
    tables.reportMetrics(*where, client.request("ReportMetricsRequest", report))
    tables.renameTable(*where, client.request("RenameTableRequest", {"new-name": "u"}))
    refused(java, 404, "NoSuchTableException", lambda: tables.loadTable(*where))
    operation = java.jvm.io.unitycatalog.client.delta.model.DeltaCredentialOperation.READ
    client.credentials.getTableCredentials(operation, "main", "s", "u")
    tables.deleteTable("main", "s", "u")
    refused(java, 404, None, lambda: tables.tableExists("main", "s", "u"))


def test_the_java_client_knows_every_update_and_every_type(java: JavaGateway, served: Served) -> None:
    client = JavaClient(java, served)
    catalog = served.client()
    staging = catalog.create_staging_table(NAME)
    new = first_version(staging)
    table = catalog.create_table(staging, new)
    schema = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{"comment":"c"}},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":'
        '{"type":"struct","fields":[{"name":"x","type":"decimal(10,2)","nullable":true,"metadata":{}}]},'
        '"containsNull":false},"valueContainsNull":true},"nullable":true,"metadata":{"delta.columnMapping.id":2}}]}'
    )
    properties = {key: value for key, value in new.metadata.configuration.items() if key.startswith("io.")}
    change = MetadataChange(
        protocol=new.protocol,
        metadata=Metadata(
            id="m",
            schema_string=schema,
            partition_columns=("id",),
            configuration={**properties, "delta.enableInCommitTimestamps": "true", "mine": "1"},
            description="words",
        ),
        domains=(
            DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["m","value"]]}'),
            DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":7}'),
        ),
    )
    known = {**table.properties, "gone": "1"}
    body = update(table, add_commit(stage(table, 1)), *change_to_updates(change, known))
    assert {len(body["updates"])} == {8}
    where = ("main", "s", "t")
    told = client.answer(client.tables.updateTable(*where, client.request("UpdateTableRequest", body)))["metadata"]
    sent = {given["action"]: given for given in body["updates"]}
    assert told["columns"] == sent["set-columns"]["columns"]
    assert told["partition-columns"] == ["id"]
    assert told["properties"]["mine"] == "1"
    assert told["properties"]["delta.clusteringColumns"] == '[["m","value"]]'
    assert told["properties"]["delta.rowTracking.rowIdHighWaterMark"] == "7"

    place = served.folder / "tables" / "registered"
    log = place / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_bytes(b"{}")
    none: frozenset[str] = frozenset()
    protocol = Protocol(min_reader_version=1, min_writer_version=2, reader_features=none, writer_features=none)
    plain = replace(new, protocol=protocol)
    body = new_table_to_json("r", f"file://{place}", plain, table_type="EXTERNAL")
    made = client.answer(client.tables.createTable("main", "s", client.request("CreateTableRequest", body)))
    registered = table_of(TableName("main", "s", "r"), made)
    assert not registered.catalog_managed
    comment = {"action": "set-table-comment", "comment": "words"}
    request = client.request("UpdateTableRequest", update(registered, comment, snapshot_update(3, 6000)))
    client.tables.updateTable("main", "s", "r", request)
