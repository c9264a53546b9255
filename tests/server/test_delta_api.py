"""The server's own rules: what a request may say, and that clients of the API never see an inline commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.served import IDS, UNUSED, Served, content_of, create, first_version, publish, stage

from pyspark_delta.actions.model import Metadata
from pyspark_delta.catalog.contract import CommitKind, MetadataChange, Proposal, TableInfo, TableName
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.unity.responses import commit_of_proposal, commit_to_json
from pyspark_delta.catalog.unity.type_json import columns_of
from pyspark_delta.errors import (
    CatalogNameExistsError,
    InvalidProposalError,
    RatificationConflictError,
    TooManyUnpublishedError,
)
from pyspark_delta.server.served import ServerSettings
from pyspark_delta.storage import store_for

SCHEMA = "/delta/v1/catalogs/main/schemas/s"


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


def path(table: TableInfo) -> str:
    return f"{SCHEMA}/tables/{table.name.name}"


def update(table: TableInfo, *updates: dict[str, Any], etag: str | None = None) -> dict[str, Any]:
    requirements = [{"type": "assert-table-uuid", "uuid": table.table_id}]
    if etag is not None:
        requirements.append({"type": "assert-etag", "etag": etag})
    return {"requirements": requirements, "updates": list(updates)}


def add_commit(proposal: Proposal) -> dict[str, Any]:
    return {"action": "add-commit", "commit": commit_to_json(commit_of_proposal(proposal), "-")}


def inline(version: int) -> Proposal:
    identity = str(uuid.uuid4())
    content = content_of(version, identity, 1000 + version)
    return Proposal(version=version, timestamp=1000 + version, transaction_id=identity, content=content)


# --------------------------------------------------------------------------------------------------------- answers
def test_the_server_says_what_it_has(http: httpx.Client) -> None:
    answer = http.get("/delta/v1/config", params={"catalog": "main", "protocol-versions": "1.3,2.0"}).json()
    assert answer["protocol-version"] == "1.0"
    assert "POST /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}" in answer["endpoints"]
    assert http.get("/delta/v1/config", params={"catalog": "main", "protocol-versions": "2.0"}).status_code == 400


def test_a_table_is_told_as_the_api_wants_it(http: httpx.Client, table: TableInfo) -> None:
    answer = http.get(path(table)).json()
    metadata = answer["metadata"]
    assert (answer["commits"], answer["latest-table-version"]) == ([], 0)
    assert metadata["columns"] == columns_of(IDS)
    assert metadata["location"] == f"file://{table.location}"
    assert metadata["properties"]["delta.feature.catalogManaged"] == "supported"
    assert metadata["properties"]["io.unitycatalog.tableId"] == metadata["table-uuid"] == table.table_id
    assert http.head(path(table)).status_code == 204
    assert http.head(path(table) + "x").status_code == 404


def test_c471_commits_come_newest_first_and_a_conflict_is_told(
    http: httpx.Client, served: Served, table: TableInfo
) -> None:
    proposals = [stage(table, version) for version in (1, 2)]
    for proposal in proposals:
        answer = http.post(path(table), json=update(table, add_commit(proposal)))
        assert answer.json()["latest-table-version"] == proposal.version
    assert [commit["version"] for commit in answer.json()["commits"]] == [2, 1]
    again = http.post(path(table), json=update(table, add_commit(proposals[0])))
    assert (again.status_code, again.headers["x-commit-replayed"]) == (200, "true")
    conflict = http.post(path(table), json=update(table, add_commit(stage(table, 1))))
    assert (conflict.status_code, conflict.json()["error"]["type"]) == (409, "CommitVersionConflictException")
    early = http.post(path(table), json=update(table, add_commit(stage(table, 4))))
    assert early.status_code == 400


def test_c470_inline_commits_are_published_before_a_client_of_the_api_is_answered(
    http: httpx.Client, served: Served, table: TableInfo
) -> None:
    info = served.catalog.load_table(table.name)
    served.catalog.ratify(info, inline(1))
    served.catalog.ratify(info, stage(table, 2))
    served.catalog.ratify(info, inline(3))
    assert [c.kind for c in served.catalog.log_tail(info).commits] == [
        CommitKind.INLINE,
        CommitKind.STAGED,
        CommitKind.INLINE,
    ]
    answer = http.get(path(table)).json()
    assert (answer["commits"], answer["latest-table-version"]) == ([], 3)
    store = store_for(table.location)
    assert [store.status(published_path(table.location, version)).size > 0 for version in (1, 2, 3)] == [True] * 3
    tail = served.client().log_tail(table)
    assert (tail.latest_version, tail.commits) == (3, ())
    served.catalog.ratify(info, inline(4))
    older = http.request(
        "GET",
        "/delta/preview/commits",
        json={"table_id": table.table_id, "table_uri": f"file://{table.location}", "start_version": 0},
    )
    assert older.json() == {"commits": [], "latest_table_version": 4}


def test_a_replay_may_be_a_conflict(tmp_path: Path) -> None:
    with Served(tmp_path, settings=ServerSettings(replay_is_conflict=True), max_unpublished=2) as served:
        served.catalog.create_schema("main", "s")
        client = served.client()
        table = create(client, name())
        first = stage(table, 1)
        client.ratify(table, first)
        with httpx.Client(headers={"Authorization": f"Bearer {served.token()}"}, verify=UNUSED) as http:
            again = http.post(served.url + path(table), json=update(table, add_commit(first)))
            assert again.status_code == 409
        client.ratify(table, stage(table, 2))
        with pytest.raises(TooManyUnpublishedError):
            client.ratify(table, stage(table, 3))
        publish(table, first)
        client.ratify(table, stage(table, 3, published_version=1))
        tail = client.log_tail(table)
        assert [commit.version for commit in tail.commits] == [2, 3]


# ------------------------------------------------------------------------------------------------------- metadata
def test_metadata_change_with_the_commit(http: httpx.Client, served: Served, table: TableInfo) -> None:
    client = served.client()
    known = client.load_table(table.name)
    schema = IDS.replace('"id"', '"other"')
    properties = {key: value for key, value in known.properties.items() if key != "delta.enableDeletionVectors"}
    metadata = Metadata(
        id="m",
        schema_string=schema,
        partition_columns=("other",),
        configuration={**properties, "mine": "1"},
        description="words",
    )
    client.ratify(known, stage(table, 1, change=MetadataChange(metadata=metadata), expected_etag=known.etag))
    found = client.load_table(table.name)
    assert found.etag != known.etag
    assert found.properties == {**properties, "mine": "1"}
    told = http.get(path(table)).json()["metadata"]
    assert (told["columns"], told["partition-columns"]) == (columns_of(schema), ["other"])
    less = MetadataChange(metadata=Metadata(id="m", schema_string=schema, configuration=properties))
    client.ratify(found, stage(table, 2, change=less))
    assert client.load_table(table.name).properties == properties
    assert served.catalog.describe_table(table.name).metadata.description == "words"


COMMENT = {"action": "set-table-comment", "comment": "x"}
PROTOCOL = {"min-reader-version": 3, "min-writer-version": 7, "reader-features": [], "writer-features": []}


@pytest.mark.parametrize(
    "updates",
    [
        [COMMENT],  # what the log says changes with a commit
        ["commit", COMMENT, COMMENT],
        ["commit", {"action": "fly"}],
        ["commit", {"action": "set-properties", "updates": {"a": 1}}],
        ["commit", {"action": "set-properties", "updates": {"delta.feature.x": "supported"}}],
        ["commit", {"action": "set-properties", "updates": {"io.unitycatalog.tableId": "another"}}],
        ["commit", {"action": "remove-properties", "removals": ["io.unitycatalog.tableId"]}],
        [
            "commit",
            {"action": "set-properties", "updates": {"a": "1"}},
            {"action": "remove-properties", "removals": ["a"]},
        ],
        ["commit", {"action": "set-columns", "columns": {"type": "struct", "fields": [{"name": "a"}]}}],
        ["commit", {"action": "set-columns", "columns": {"type": "struct", "fields": [{"name": "a", "type": "no"}]}}],
        ["commit", {"action": "set-partition-columns", "partition-columns": ["nothing"]}],
        ["commit", {"action": "set-protocol", "protocol": PROTOCOL}],
        ["commit", {"action": "set-protocol", "protocol": {**PROTOCOL, "reader-features": ["catalogManaged"]}}],
        ["commit", {"action": "set-domain-metadata", "updates": {"mine": {}}}],
        ["commit", {"action": "set-domain-metadata", "updates": {}}],
        ["commit", {"action": "set-domain-metadata", "updates": {"delta.clustering": {"clusteringColumns": "a"}}}],
        ["commit", {"action": "remove-domain-metadata", "domains": ["mine"]}],
        ["commit", {"action": "set-latest-backfilled-version", "latest-published-version": 1}],
        [{"action": "set-latest-backfilled-version", "latest-published-version": 7}],
        [{"action": "update-metadata-snapshot-version", "last-commit-version": 1, "last-commit-timestamp-ms": 1}],
        [],
    ],
)
def test_updates_that_cannot_be_are_refused_whole(
    http: httpx.Client, served: Served, table: TableInfo, updates: list[Any]
) -> None:
    commit = add_commit(stage(table, 1))
    before = served.state()
    body = update(table, *(commit if given == "commit" else given for given in updates))
    answer = http.post(path(table), json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "InvalidParameterValueException")
    assert served.state() == before


def test_requirements_are_kept(http: httpx.Client, table: TableInfo) -> None:
    commit = add_commit(stage(table, 1))
    other = update(table, commit)
    other["requirements"][0]["uuid"] = str(uuid.uuid4())
    for body in (other, update(table, commit, etag="another")):
        answer = http.post(path(table), json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (409, "UpdateRequirementConflictException")
    assert http.post(path(table), json={"requirements": [], "updates": [commit]}).status_code == 400


def test_a_new_table_must_be_what_was_staged(http: httpx.Client, served: Served) -> None:
    client, wanted = served.client(), name()
    staging = client.create_staging_table(wanted)
    new = first_version(staging)
    body = {
        "name": wanted.name,
        "location": f"file://{staging.location}",
        "table-type": "MANAGED",
        "columns": columns_of(IDS),
        "protocol": {
            "min-reader-version": 3,
            "min-writer-version": 7,
            "reader-features": sorted(new.protocol.reader_features or ()),
            "writer-features": sorted(new.protocol.writer_features or ()),
        },
        "properties": dict(new.metadata.configuration),
        "last-commit-timestamp-ms": new.timestamp,
    }
    before = served.state()
    for changed in (
        {"location": f"file://{staging.location}x"},
        {"location": "nowhere://x/y"},
        {"name": "another"},
        {"table-type": "VIEW"},
        {"columns": {"type": "array"}},
        {"protocol": PROTOCOL},
        {"properties": {**body["properties"], "io.unitycatalog.tableId": str(uuid.uuid4())}},
        {"partition-columns": ["nothing"]},
        {"last-commit-timestamp-ms": "now"},
        {"uniform": {"iceberg": {}}},
        {"domain-metadata": {"delta.rowTracking": {"rowIdHighWaterMark": "x"}}},
    ):
        answer = http.post(f"{SCHEMA}/tables", json={**body, **changed})
        assert answer.status_code == 400, (changed, answer.text)
    assert served.state() == before
    assert http.post(f"{SCHEMA}/tables", json=body).json()["metadata"]["table-uuid"] == staging.table_id
    again = served.client().create_staging_table
    with pytest.raises(CatalogNameExistsError):
        again(wanted)


def test_a_table_is_renamed_and_metrics_are_taken(http: httpx.Client, served: Served, table: TableInfo) -> None:
    client, new = served.client(), name()
    report = {"table-id": table.table_id, "report": {"commit-report": {"num-files-added": 1}}}
    assert http.post(f"{path(table)}/metrics", json=report).status_code == 204
    assert http.post(f"{path(table)}/metrics", json={"table-id": "another"}).status_code == 400
    client.rename_table(table.name, new)
    assert client.log_tail(table).latest_version == 0  # found by its id
    client.ratify(table, stage(table, 1))
    with pytest.raises(InvalidProposalError):
        client.rename_table(new, TableName("main", "other", "x"))


def test_what_there_is_not_is_told_in_json(http: httpx.Client) -> None:
    for method, where, status in [
        ("GET", "/nothing", 404),
        ("PATCH", "/schemas/main.s", 405),
        ("GET", f"{SCHEMA}/tables/x/y/z", 404),
        ("GET", f"{SCHEMA}/tables/missing", 404),
        ("GET", "/delta/v1/catalogs/main/schemas/missing/tables/t", 404),
        ("GET", "/schemas/main.missing", 404),
        ("GET", "/catalogs/missing", 404),
    ]:
        answer = http.request(method, where)
        assert answer.status_code == status, where
        assert isinstance(answer.json(), dict)


def test_lists_come_in_pages(served: Served) -> None:
    client = served.client()
    client.create_schema("main", "many")
    wanted = sorted(f"t{number:03d}" for number in range(57))
    for number in wanted:
        staging = served.catalog.create_staging_table(TableName("main", "many", number))
        served.catalog.create_table(staging, first_version(staging))
    assert [table.name for table in client.list_tables("main", "many")] == wanted
    with pytest.raises(InvalidProposalError):
        client.drop_schema("main", "many")


def test_a_conflict_of_the_client_is_that_of_the_contract(served: Served, table: TableInfo) -> None:
    client = served.client()
    client.ratify(table, stage(table, 1))
    with pytest.raises(RatificationConflictError) as caught:
        client.ratify(table, stage(table, 1))
    assert caught.value.tail.latest_version == 1
