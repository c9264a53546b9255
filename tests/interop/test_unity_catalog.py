"""Unity Catalog's own server takes what the client sends, and the client understands what it answers."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from tests.interop.unity_catalog_server import UnityCatalogServer
from tests.served import IDS, create, first_version, publish, stage

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.catalog.contract import Access, Capability, MetadataChange, TableInfo, TableName
from pyspark_delta.catalog.unity import UnityCatalog
from pyspark_delta.catalog.unity.connection import Connection
from pyspark_delta.catalog.unity.delta_api import DeltaApi
from pyspark_delta.catalog.unity.legacy_api import LegacyApi
from pyspark_delta.errors import (
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    InvalidProposalError,
    RatificationConflictError,
    StaleMetadataError,
    TableReplacedError,
    TooManyUnpublishedError,
)


@pytest.fixture
def catalog(unity_catalog_server: UnityCatalogServer) -> UnityCatalog:
    return UnityCatalog.connect(unity_catalog_server.url, catalog="unity")


@pytest.fixture
def schema(catalog: UnityCatalog) -> str:
    name = f"s{uuid.uuid4().hex[:8]}"
    catalog.create_schema("unity", name)
    return name


def versions(catalog: UnityCatalog, table: TableInfo) -> list[int]:
    return [commit.version for commit in catalog.log_tail(table).commits]


def test_c469_c472_a_table_lives_in_unity_catalog(catalog: UnityCatalog, schema: str) -> None:
    assert isinstance(catalog._api, DeltaApi)
    assert catalog.capabilities == {Capability.STAGED, Capability.REGISTER, Capability.MIRROR}
    name = TableName("unity", schema, "t")
    staging = catalog.create_staging_table(name)
    assert {"catalogManaged", "inCommitTimestamp", "v2Checkpoint"} <= staging.required_features
    assert staging.required_properties["io.unitycatalog.tableId"] == staging.table_id
    with pytest.raises(CatalogNameNotFoundError):
        catalog.load_table(name)
    new = first_version(staging)
    table = catalog.create_table(staging, new)
    assert (table.table_id, table.location, table.name) == (staging.table_id, staging.location, name)
    assert table.properties == new.metadata.configuration
    assert catalog.create_table(staging, new) == table
    assert table.tail is not None
    assert (table.tail.latest_version, table.tail.commits) == (0, ())
    assert catalog.storage_options(table, Access.READ_WRITE) == {}
    catalog.report_published(table, 0)

    first = stage(table, 1)
    assert catalog.ratify(table, first).commit.version == 1
    catalog.ratify(table, first)  # a replay
    with pytest.raises(RatificationConflictError) as caught:
        catalog.ratify(table, stage(table, 1))
    assert [commit.file_name for commit in caught.value.tail.commits] == [first.file.name if first.file else None]
    with pytest.raises(InvalidProposalError):
        catalog.ratify(table, stage(table, 3))
    (commit,) = catalog.load_table(name).tail.commits  # type: ignore[union-attr]
    assert commit == replace(catalog.ratify(table, first).commit, transaction_id=None)

    second = stage(table, 2, published_version=1)
    publish(table, first)
    catalog.ratify(table, second)
    assert versions(catalog, table) == [2]
    publish(table, second)
    catalog.report_published(table, 2)
    catalog.report_published(table, 1)
    tail = catalog.log_tail(table)
    assert (tail.latest_version, tail.commits, tail.published_version) == (2, (), 2)

    for version in range(3, 13):
        catalog.ratify(table, stage(table, version))
    with pytest.raises(TooManyUnpublishedError):
        catalog.ratify(table, stage(table, 13))
    assert versions(catalog, table) == list(range(3, 13))


def test_metadata_are_kept_by_unity_catalog(catalog: UnityCatalog, schema: str) -> None:
    table = create(catalog, TableName("unity", schema, "t"))
    columns = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":'
        '{"type":"struct","fields":[{"name":"x","type":"decimal(10,2)","nullable":false,"metadata":{}}]},'
        '"containsNull":false},"valueContainsNull":true},"nullable":true,"metadata":{"comment":"words"}}]}'
    )
    more = {**table.properties, "mine": "1", "delta.appendOnly": "true"}
    metadata = Metadata(id="m", schema_string=columns, configuration=more, description="of the table")
    catalog.ratify(table, stage(table, 1, change=MetadataChange(metadata=metadata), expected_etag=table.etag))
    found = catalog.load_table(table.name)
    assert found.properties == more
    assert found.etag != table.etag
    with pytest.raises(StaleMetadataError):
        catalog.ratify(table, stage(table, 2, change=MetadataChange(metadata=metadata), expected_etag=table.etag))
    less = Metadata(id="m", schema_string=IDS, partition_columns=("id",), configuration=dict(table.properties))
    catalog.ratify(found, stage(table, 2, change=MetadataChange(metadata=less)))
    assert catalog.load_table(table.name).properties == table.properties
    assert versions(catalog, table) == [1, 2]
    domain = DomainMetadata(domain="mine", configuration="{}")
    catalog.ratify(table, stage(table, 3, change=MetadataChange(domains=(domain,))))


def test_names_in_unity_catalog(catalog: UnityCatalog, schema: str) -> None:
    assert schema in catalog.list_schemas("unity")
    with pytest.raises(CatalogNameExistsError):
        catalog.create_schema("unity", schema)
    table, new = create(catalog, TableName("unity", schema, "t")), TableName("unity", schema, "u")
    with pytest.raises(CatalogNameExistsError):
        create(catalog, table.name)
    catalog.rename_table(table.name, new)
    assert catalog.list_tables("unity", schema) == [new]
    assert catalog.ratify(table, stage(table, 1)).commit.version == 1  # it is found by its id
    assert catalog.log_tail(table).latest_version == 1
    with pytest.raises(InvalidProposalError):
        catalog.drop_schema("unity", schema)
    catalog.drop_table(new)
    for gone in (table.name, new):
        with pytest.raises(CatalogNameNotFoundError):
            catalog.drop_table(gone)
    with pytest.raises(TableReplacedError):
        catalog.log_tail(table)
    again = create(catalog, new)
    with pytest.raises(TableReplacedError):
        catalog.ratify(replace(table, name=new), stage(again, 1))
    catalog.drop_table(new)
    catalog.drop_schema("unity", schema)
    with pytest.raises(CatalogNameNotFoundError):
        catalog.list_tables("unity", schema)
    with pytest.raises(CatalogNameNotFoundError):
        UnityCatalog.connect(catalog._connection.url, catalog="nowhere")


def test_the_older_endpoints_of_unity_catalog(unity_catalog_server: UnityCatalogServer, schema: str) -> None:
    connection = Connection(unity_catalog_server.url)
    older = UnityCatalog(connection, LegacyApi(connection))
    newer = UnityCatalog.connect(unity_catalog_server.url, catalog="unity")
    name = TableName("unity", schema, "t")
    staging = newer.create_staging_table(name)  # it says what the table must be like
    table = older.create_table(staging, first_version(staging))
    assert (table.table_id, table.catalog_managed) == (staging.table_id, True)
    proposals = [stage(table, version) for version in (1, 2, 3)]
    for proposal in proposals:
        older.ratify(table, proposal)
    assert versions(older, table) == versions(newer, table) == [1, 2, 3]
    with pytest.raises(RatificationConflictError):
        older.ratify(table, stage(table, 2))
    assert older.ratify(table, proposals[2]).commit.version == 3
    changed = {**table.properties, "mine": "1"}
    metadata = Metadata(id="m", schema_string=IDS, configuration=changed)
    older.ratify(table, stage(table, 4, change=MetadataChange(metadata=metadata)))
    assert older.load_table(name).properties == newer.load_table(name).properties == changed
    publish(table, proposals[0])
    older.report_published(table, 1)
    assert versions(older, table) == [2, 3, 4]
    assert older.storage_options(table, Access.READ) == {}
    older.drop_table(name)
    with pytest.raises(CatalogNameNotFoundError):
        older.load_table(name)
