"""The official client of Unity Catalog drives the server through the older endpoints."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx
import pytest
from tests.served import IDS, Served, first_version, publish, stage
from unitycatalog.client import ApiClient, ApiException, Configuration
from unitycatalog.client.api import CatalogsApi, DeltaCommitsApi, SchemasApi, TablesApi, TemporaryCredentialsApi
from unitycatalog.client.models import (
    ColumnInfo,
    CreateCatalog,
    CreateSchema,
    CreateStagingTable,
    CreateTable,
    DataSourceFormat,
    DeltaCommit,
    DeltaCommitInfo,
    DeltaCommitMetadataProperties,
    DeltaGetCommits,
    DeltaGetCommitsResponse,
    DeltaMetadata,
    GenerateTemporaryTableCredential,
    TableOperation,
    TableType,
)

from pyspark_delta.catalog.contract import Proposal, StagingTable, TableInfo, TableName
from pyspark_delta.catalog.unity.column_info import columns_to_json

COLUMNS = [ColumnInfo.from_dict(column) for column in columns_to_json(IDS, [])]


def test_the_official_client_makes_reads_commits_and_drops(served: Served) -> None:
    asyncio.run(_drive(served))


async def _drive(served: Served) -> None:
    configuration = Configuration(host=served.url)
    async with ApiClient(configuration) as client:
        client.set_default_header("Authorization", f"Bearer {served.token()}")
        catalog = f"c{uuid.uuid4().hex[:8]}"
        await _namespaces(client, catalog)
        table = await _create(client, TableName(catalog, "s", "t"))
        await _commit(client, table)
        await _change_metadata(client, table)
        await _drop(client, table)


async def _namespaces(client: ApiClient, catalog: str) -> None:
    catalogs, schemas = CatalogsApi(client), SchemasApi(client)
    assert (await catalogs.create_catalog(CreateCatalog(name=catalog))).name == catalog
    assert (await catalogs.get_catalog(catalog)).name == catalog
    assert catalog in [found.name for found in (await catalogs.list_catalogs()).catalogs or ()]
    await _refused(400, catalogs.create_catalog(CreateCatalog(name=catalog)))
    made = await schemas.create_schema(CreateSchema(name="s", catalog_name=catalog))
    assert made.full_name == f"{catalog}.s"
    assert (await schemas.get_schema(f"{catalog}.s")).name == "s"
    assert [found.name for found in (await schemas.list_schemas(catalog)).schemas or ()] == ["s"]


async def _create(client: ApiClient, name: TableName) -> TableInfo:
    tables = TablesApi(client)
    request = CreateStagingTable(name=name.name, catalog_name=name.catalog, schema_name=name.schema)
    staged = await tables.create_staging_table(request)
    assert staged.id
    assert staged.staging_location
    location = staged.staging_location.removeprefix("file://")
    required: dict[str, str | None] = {
        "delta.enableInCommitTimestamps": "true",
        "io.unitycatalog.tableId": staged.id,
    }
    staging = StagingTable(table_id=staged.id, name=name, location=location, required_properties=required)
    new = first_version(staging)
    create = CreateTable(
        name=name.name,
        catalog_name=name.catalog,
        schema_name=name.schema,
        table_type=TableType.MANAGED,
        data_source_format=DataSourceFormat.DELTA,
        columns=COLUMNS,
        storage_location=staged.staging_location,
        properties=dict(new.metadata.configuration),
    )
    made = await tables.create_table(create)
    assert (made.table_id, made.table_type) == (staged.id, TableType.MANAGED)
    found = await tables.get_table(str(name))
    assert found == made
    assert found.columns
    assert [(column.name, column.type_name) for column in found.columns] == [("id", "LONG")]
    assert found.properties
    assert found.properties["delta.feature.catalogManaged"] == "supported"
    listed = await tables.list_tables(name.catalog, name.schema)
    assert [table.table_id for table in listed.tables or ()] == [staged.id]
    given = await TemporaryCredentialsApi(client).generate_temporary_table_credentials(
        GenerateTemporaryTableCredential(table_id=staged.id, operation=TableOperation.READ_WRITE)
    )
    assert given.aws_temp_credentials is None
    return TableInfo(table_id=staged.id, name=name, location=location)


def _info(proposal: Proposal) -> DeltaCommitInfo:
    assert proposal.file is not None
    return DeltaCommitInfo(
        version=proposal.version,
        timestamp=proposal.timestamp,
        file_name=proposal.file.name,
        file_size=proposal.file.size,
        file_modification_timestamp=proposal.file.modification_time,
    )


async def _commit(client: ApiClient, table: TableInfo) -> None:
    commits = DeltaCommitsApi(client)
    address: dict[str, Any] = {"table_id": table.table_id, "table_uri": f"file://{table.location}"}
    proposals = [stage(table, version) for version in (1, 2)]
    for proposal in proposals:
        await commits.commit(DeltaCommit(**address, commit_info=_info(proposal)))
    found = _commits(client, DeltaGetCommits(**address, start_version=0))
    assert found.latest_table_version == 2
    assert sorted(found.commits, key=lambda commit: commit.version) == [_info(proposal) for proposal in proposals]
    some = _commits(client, DeltaGetCommits(**address, start_version=2, end_version=2))
    assert [commit.version for commit in some.commits] == [2]
    await _refused(409, commits.commit(DeltaCommit(**address, commit_info=_info(stage(table, 2)))))
    await _refused(400, commits.commit(DeltaCommit(**address, commit_info=_info(stage(table, 7)))))
    await _refused(400, commits.commit(DeltaCommit(**address, latest_backfilled_version=2)))
    for proposal in proposals:
        publish(table, proposal)
    await commits.commit(DeltaCommit(**address, latest_backfilled_version=2))
    assert _commits(client, DeltaGetCommits(**address, start_version=0)).commits == []
    await _refused(400, commits.get_commits(DeltaGetCommits(**address, start_version=0)))  # sent without its body


def _commits(client: ApiClient, request: DeltaGetCommits) -> DeltaGetCommitsResponse:
    """The client does not send the bodies of its GET requests, so this one goes out by other means."""
    url = f"{client.configuration.host}/delta/preview/commits"
    headers = {**client.default_headers, "Content-Type": "application/json"}
    answer = httpx.request("GET", url, content=request.to_json(), headers=headers)
    found = DeltaGetCommitsResponse.from_json(answer.text)
    assert found is not None
    return found


async def _change_metadata(client: ApiClient, table: TableInfo) -> None:
    commits, tables = DeltaCommitsApi(client), TablesApi(client)
    known = (await tables.get_table(str(table.name))).properties or {}
    changed = DeltaMetadata(
        description="words", properties=DeltaCommitMetadataProperties(properties={**known, "mine": "1"})
    )
    address: dict[str, Any] = {"table_id": table.table_id, "table_uri": f"file://{table.location}"}
    await commits.commit(DeltaCommit(**address, commit_info=_info(stage(table, 3)), metadata=changed))
    found = await tables.get_table(str(table.name))
    assert (found.comment, found.properties) == ("words", {**known, "mine": "1"})


async def _drop(client: ApiClient, table: TableInfo) -> None:
    tables, schemas, catalogs = TablesApi(client), SchemasApi(client), CatalogsApi(client)
    await _refused(400, schemas.delete_schema(f"{table.name.catalog}.s"))
    await tables.delete_table(str(table.name))
    await _refused(404, tables.get_table(str(table.name)))
    await schemas.delete_schema(f"{table.name.catalog}.s")
    await catalogs.delete_catalog(table.name.catalog)
    await _refused(404, catalogs.get_catalog(table.name.catalog))


async def _refused(status: int, call: Any) -> None:
    with pytest.raises(ApiException) as caught:
        await call
    assert caught.value.status == status
