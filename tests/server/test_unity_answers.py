"""The server answers as Unity Catalog's own does, so that a client tested against it alone meets nothing new there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.served import IDS, UNUSED, Served, create, first_version

from pyspark_delta.catalog.contract import StagingTable, TableInfo, TableName
from pyspark_delta.catalog.unity.property_sync import new_table_to_json
from pyspark_delta.catalog.unity.responses import wire_location
from pyspark_delta.catalog.unity.type_json import columns_of
from pyspark_delta.errors import CatalogNameNotFoundError

SCHEMA = "/delta/v1/catalogs/main/schemas/s"
ABSENT = "/delta/v1/catalogs/nowhere/schemas/s"


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {served.token()}"}
    with httpx.Client(base_url=served.url, headers=headers, timeout=20, verify=UNUSED) as client:
        yield client


@pytest.fixture
def table(served: Served) -> TableInfo:
    return create(served.client(), name())


def name() -> TableName:
    return TableName("main", "s", f"t{uuid.uuid4().hex[:8]}")


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Status, and the error type of the Delta API or the error code of the older endpoints."""
    body = answer.json()
    return answer.status_code, body["error"]["type"] if "error" in body else body["error_code"]


# --------------------------------------------------------------------------------------------------------- successes
def test_where_there_is_nothing_to_say_the_answer_is_text(http: httpx.Client, table: TableInfo) -> None:
    http.post("/schemas", json={"name": "gone", "catalog_name": "main"}).raise_for_status()
    for answer in (http.delete("/schemas/main.gone"), http.delete(f"/tables/{table.name}")):
        assert (answer.status_code, answer.text) == (200, "200 OK")
        assert answer.headers["Content-Type"].startswith("text/plain")


def test_what_is_not_known_is_null(http: httpx.Client, table: TableInfo) -> None:
    for path, query in [
        ("/catalogs", {}),
        ("/schemas", {"catalog_name": "main"}),
        ("/tables", {"catalog_name": "main", "schema_name": "s"}),
    ]:
        assert http.get(path, params=query).json()["next_page_token"] is None
    path = f"{SCHEMA}/tables/{table.name.name}/credentials"
    (credential,) = http.get(path, params={"operation": "READ"}).json()["storage-credentials"]
    assert credential["expiration-time-ms"] is None
    request = {"table_id": table.table_id, "operation": "READ"}
    assert http.post("/temporary-table-credentials", json=request).json() == {
        "aws_temp_credentials": None,
        "azure_user_delegation_sas": None,
        "gcp_oauth_token": None,
        "expiration_time": None,
        "url": wire_location(table.location),
    }


# ------------------------------------------------------------------------------------------------ catalogs and names
def test_an_unknown_catalog_is_not_created(http: httpx.Client, served: Served) -> None:
    before = served.state()
    schema = {"name": "s", "catalog_name": "nowhere"}
    assert error_of(http.post("/schemas", json=schema)) == (404, "CATALOG_NOT_FOUND")
    assert error_of(http.get("/schemas", params={"catalog_name": "nowhere"})) == (404, "CATALOG_NOT_FOUND")
    config = {"catalog": "nowhere", "protocol-versions": "1.0"}
    assert error_of(http.get("/delta/v1/config", params=config)) == (404, "NoSuchCatalogException")
    staging = http.post(f"{ABSENT}/staging-tables", json={"name": "t"})
    assert error_of(staging) == (404, "NoSuchCatalogException")
    older = {"name": "t", "catalog_name": "nowhere", "schema_name": "s"}
    assert error_of(http.post("/staging-tables", json=older)) == (404, "CATALOG_NOT_FOUND")
    with pytest.raises(CatalogNameNotFoundError):
        served.client(catalog="nowhere")
    assert served.state() == before


def test_a_catalog_is_there_until_it_is_dropped(http: httpx.Client) -> None:
    """With its last schema, too."""
    schema = {"name": "s", "catalog_name": "mine"}
    assert http.post("/catalogs", json={"name": "mine"}).status_code == 200
    assert http.post("/schemas", json=schema).status_code == 200
    assert error_of(http.delete("/catalogs/mine")) == (400, "FAILED_PRECONDITION")
    assert http.delete("/schemas/mine.s").status_code == 200
    assert http.get("/catalogs/mine").json()["name"] == "mine"
    assert http.get("/schemas", params={"catalog_name": "mine"}).json()["schemas"] == []
    assert http.post("/schemas", json=schema).status_code == 200
    assert http.delete("/schemas/mine.s").status_code == 200
    assert http.delete("/catalogs/mine").status_code == 200
    assert error_of(http.get("/catalogs/mine")) == (404, "CATALOG_NOT_FOUND")


def test_a_catalog_that_began_with_a_schema_stays_too(http: httpx.Client, served: Served) -> None:
    served.catalog.create_schema("begun", "s")
    assert http.delete("/schemas/begun.s").status_code == 200
    assert http.get("/schemas", params={"catalog_name": "begun"}).json()["schemas"] == []
    assert http.delete("/catalogs/begun").status_code == 200


def test_what_exists_is_refused_with_its_kind(http: httpx.Client, table: TableInfo) -> None:
    assert error_of(http.post("/catalogs", json={"name": "main"})) == (400, "CATALOG_ALREADY_EXISTS")
    schema = {"name": "s", "catalog_name": "main"}
    assert error_of(http.post("/schemas", json=schema)) == (400, "SCHEMA_ALREADY_EXISTS")
    older = {"name": table.name.name, "catalog_name": "main", "schema_name": "s"}
    assert error_of(http.post("/staging-tables", json=older)) == (400, "TABLE_ALREADY_EXISTS")
    newer = http.post(f"{SCHEMA}/staging-tables", json={"name": table.name.name})
    assert error_of(newer) == (409, "AlreadyExistsException")
    assert error_of(http.delete("/schemas/main.s")) == (400, "FAILED_PRECONDITION")


@pytest.mark.parametrize("bad", ["a.b", "a b", "a/b", "ü", "", "x" * 256, "a'b"])
def test_names_that_cannot_be_given_are_refused(http: httpx.Client, table: TableInfo, bad: str) -> None:
    for path, body in [
        ("/catalogs", {"name": bad}),
        ("/schemas", {"name": bad, "catalog_name": "main"}),
        ("/staging-tables", {"name": bad, "catalog_name": "main", "schema_name": "s"}),
        (f"{SCHEMA}/staging-tables", {"name": bad}),
        (f"{SCHEMA}/tables/{table.name.name}/rename", {"new-name": bad}),
    ]:
        assert http.post(path, json=body).status_code == 400, path


def test_requests_that_leave_something_out_are_refused(http: httpx.Client, table: TableInfo) -> None:
    assert http.get("/delta/v1/config", params={"catalog": "main"}).status_code == 400
    assert http.get("/delta/v1/staging-tables/nothing/credentials").status_code == 400
    published = {"action": "set-latest-backfilled-version", "latest-published-version": 0}
    requirements = [{"type": "assert-table-uuid", "uuid": table.table_id}]
    body = {"requirements": requirements, "updates": [published]}
    assert error_of(http.post(f"{SCHEMA}/tables/{table.name.name}", json=body))[0] == 400
    address = {"table_id": table.table_id, "table_uri": wire_location(table.location)}
    older = http.post("/delta/preview/commits", json={**address, "latest_backfilled_version": 0})
    assert error_of(older) == (400, "INVALID_ARGUMENT")
    assert "commit log is empty" in older.json()["message"]


def test_unknown_members_are_refused_by_the_delta_api_alone(http: httpx.Client, table: TableInfo) -> None:
    staging = http.post(f"{SCHEMA}/staging-tables", json={"name": name().name, "extra": 1})
    assert error_of(staging) == (400, "InvalidParameterValueException")
    assert "`extra`" in staging.json()["error"]["message"]
    older = {"name": name().name, "catalog_name": "main", "schema_name": "s", "extra": 1}
    assert http.post("/staging-tables", json=older).status_code == 200
    for path, query in [
        ("/delta/v1/config", {"catalog": "main", "protocol-versions": "1.0"}),
        (f"{SCHEMA}/tables/{table.name.name}/credentials", {"operation": "READ"}),
        ("/catalogs", {}),
    ]:
        assert http.get(path, params={**query, "extra": "1"}).status_code == 200


@pytest.mark.parametrize(
    ("update", "place"),
    [
        ({"action": "set-table-comment", "comment": 1}, "$.updates[0].comment"),
        ({"action": "set-properties", "updates": {"a": None}}, "$.updates[0].updates[...]"),
        ({"action": "set-columns", "columns": {"type": "struct", "fields": [{}]}}, "$.updates[0].columns.fields[0]"),
        ({"action": "add-commit", "commit": {"version": 0}}, "$.updates[0].commit.version"),
        ({"action": "add-commit", "commit": {"version": 2**63}}, "$.updates[0].commit.version"),
        ({"action": "fly"}, "$.updates[0].action"),
        ({"comment": "x"}, "`action` - at `$.updates[0]`"),
    ],
)
def test_errors_name_the_member(http: httpx.Client, table: TableInfo, update: dict[str, Any], place: str) -> None:
    body = {"requirements": [{"type": "assert-table-uuid", "uuid": table.table_id}], "updates": [update]}
    answer = http.post(f"{SCHEMA}/tables/{table.name.name}", json=body)
    assert error_of(answer) == (400, "InvalidParameterValueException")
    assert place in answer.json()["error"]["message"]


# ------------------------------------------------------------------------------------------------------ new tables
def field(**changed: Any) -> dict[str, Any]:
    found = {"name": "id", "type": "long", "nullable": True, "metadata": {}, **changed}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize(
    "changed",
    [
        {"columns": {"type": "struct", "fields": []}},
        {"columns": {"type": "struct", "fields": [field(type="void")]}},
        {"columns": {"type": "struct", "fields": [field(metadata=None)]}},
        {"columns": {"type": "struct", "fields": [field(nullable=None)]}},
        {"domain-metadata": {"delta.clustering": {"clusteringColumns": [["id"]]}}},
    ],
)
def test_a_new_table_that_cannot_be_is_refused_each_time(
    http: httpx.Client, served: Served, changed: dict[str, Any]
) -> None:
    staging: StagingTable = served.client().create_staging_table(name())
    body = new_table_to_json(staging.name.name, wire_location(staging.location), first_version(staging))
    before = served.state()
    for _ in range(2):
        assert http.post(f"{SCHEMA}/tables", json={**body, **changed}).status_code == 400
    assert served.state() == before
    assert http.post(f"{SCHEMA}/tables", json=body).status_code == 200
    assert http.post(f"{SCHEMA}/tables", json={**body, **changed}).status_code == 400  # it is there by now


# ------------------------------------------------------------------------------------------------ registered tables
def test_a_registered_table_is_shown_as_it_is_told(http: httpx.Client, served: Served) -> None:
    """The location is that of a table under another name, whose files are there."""
    staging = served.client().create_staging_table(name())
    first_version(staging)
    location, wanted = f"{staging.location}", name()
    elsewhere = served.folder / f"path-{uuid.uuid4().hex}"
    (served.folder / "tables" / staging.table_id).rename(elsewhere)
    body = {
        "name": wanted.name,
        "location": f"file://{elsewhere}",
        "table-type": "EXTERNAL",
        "columns": columns_of(IDS),
        "partition-columns": ["id"],
        "protocol": {"min-reader-version": 1, "min-writer-version": 2},
        "properties": {"owner": "ada"},
        "comment": "words",
        "last-commit-timestamp-ms": 5000,
    }
    managed = {**body, "protocol": new_table_to_json("x", location, first_version(staging))["protocol"]}
    assert http.post(f"{SCHEMA}/tables", json=managed).status_code == 400
    told = http.post(f"{SCHEMA}/tables", json=body).json()["metadata"]
    assert (told["table-type"], told["columns"], told["partition-columns"]) == ("EXTERNAL", columns_of(IDS), ["id"])
    assert told["properties"] == {"owner": "ada", "delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    older = http.get(f"/tables/{wanted}").json()
    assert (older["table_type"], older["comment"]) == ("EXTERNAL", "words")
    assert [column["name"] for column in older["columns"]] == ["id"]

    def report(*updates: dict[str, Any]) -> httpx.Response:
        requirements = [{"type": "assert-table-uuid", "uuid": told["table-uuid"]}]
        request = {"requirements": requirements, "updates": list(updates)}
        return http.post(f"{SCHEMA}/tables/{wanted.name}", json=request)

    changed = {"action": "set-properties", "updates": {"owner": "bob"}}
    version = {"action": "update-metadata-snapshot-version", "last-commit-version": 3, "last-commit-timestamp-ms": 6000}
    assert report(changed).status_code == 400
    assert (
        report({"action": "set-latest-backfilled-version", "latest-published-version": 1}, version).status_code == 400
    )
    assert report(changed, version).json()["metadata"]["properties"]["owner"] == "bob"
    late = {"action": "set-properties", "updates": {"owner": "eve"}}
    assert report(late, {**version, "last-commit-version": 2}).json()["metadata"]["properties"]["owner"] == "bob"
