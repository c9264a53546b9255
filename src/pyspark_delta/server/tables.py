"""Tables as the API describes them. Clients never get an inline commit: inline commits are published first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from pyspark_delta.catalog.contract import (
    CommitKind,
    LogTail,
    MetadataChange,
    Proposal,
    RatifiedCommit,
    StagedFile,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.failures import storage_failures
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.catalog.unity.column_info import columns_to_json
from pyspark_delta.catalog.unity.property_sync import (
    CLUSTERING,
    CLUSTERING_COLUMNS,
    HIGH_WATER_MARK,
    ROW_TRACKING,
    domains_to_json,
    own_properties,
    protocol_properties,
)
from pyspark_delta.catalog.unity.responses import commit_to_json, wire_location
from pyspark_delta.catalog.unity.type_json import columns_of
from pyspark_delta.errors import CatalogNameNotFoundError, DeltaError
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.server import delta_models, legacy_models
from pyspark_delta.server.failures import Failure, FailureKind, invalid
from pyspark_delta.server.models import Uniform
from pyspark_delta.server.names import check_staged_name
from pyspark_delta.server.operation import Call
from pyspark_delta.server.served import Description, ServedCatalog

NO_COLUMNS = '{"type":"struct","fields":[]}'


def described(call: Call[Any], name: TableName) -> Description:
    """Return the description of a table that the caller may see. Raises Failure, CatalogError."""
    call.require_reach(name.catalog, name.schema)
    return call.catalog.describe_table(name)


def described_by_id(call: Call[Any], table_id: str) -> Description:
    """Return the description of the table with an id that the caller may see. Raises Failure, CatalogError."""
    info = call.catalog.load_table_by_id(table_id)
    if not call.reaches(info.name.catalog, info.name.schema):
        raise Failure(FailureKind.NO_TABLE, "The catalog has no table with this id.")
    try:
        found = call.catalog.describe_table(info.name)
    except CatalogNameNotFoundError:
        found = None
    if found is None or found.info.table_id != table_id:
        raise Failure(FailureKind.NO_TABLE, "The catalog no longer has a table with this id.")
    return found


def staged_tail(catalog: ServedCatalog, info: TableInfo) -> LogTail | None:
    """Return the log tail with staged commits only. If any is inline, all are published, and the tail has none."""
    tail = info.tail
    if tail is None or all(commit.kind is CommitKind.STAGED for commit in tail.commits):
        return tail
    with storage_failures():
        ManagedTable(catalog, info).publish(catalog.table_store(info.location), tail)
    return replace(tail, commits=(), published_version=tail.latest_version)


def require_commits(info: TableInfo) -> None:
    """Raise Failure if no commit after the creation of the table could have been published."""
    if info.tail is not None and info.tail.latest_version == 0:
        raise invalid(f"No commit of {info.name} is ratified: its commit log is empty.")


def load_answer(catalog: ServedCatalog, description: Description) -> delta_models.Table:
    """Return a table in the form of the Delta API."""
    info, metadata = description.info, description.metadata
    tail = staged_tail(catalog, info)
    return delta_models.Table(
        metadata=delta_models.TableMetadata(
            etag=info.etag,
            table_type="EXTERNAL" if tail is None else "MANAGED",
            table_uuid=info.table_id,
            location=wire_location(info.location),
            created_time=description.created_at,
            updated_time=description.updated_at,
            columns=columns_of(NO_COLUMNS if metadata is None else metadata.schema_string),
            partition_columns=[] if metadata is None else list(metadata.partition_columns),
            properties=api_properties(description),
        ),
        commits=[] if tail is None else [delta_models.Commit(**_commit(commit)) for commit in reversed(tail.commits)],
        latest_table_version=msgspec.UNSET if tail is None else tail.latest_version,
    )


def legacy_answer(description: Description) -> legacy_models.LegacyTable:
    """Return a table in the form of the legacy endpoints (`TableInfo`)."""
    info, metadata = description.info, description.metadata
    comment = None if metadata is None else metadata.description
    return legacy_models.LegacyTable(
        name=info.name.name,
        catalog_name=info.name.catalog,
        schema_name=info.name.schema,
        table_type="MANAGED" if info.catalog_managed else "EXTERNAL",
        columns=[] if metadata is None else columns_to_json(metadata.schema_string, list(metadata.partition_columns)),
        storage_location=wire_location(info.location),
        properties=api_properties(description),
        created_at=description.created_at,
        updated_at=description.updated_at,
        table_id=info.table_id,
        comment=msgspec.UNSET if comment is None else comment,
    )


def legacy_commits(commits: Iterable[RatifiedCommit]) -> list[legacy_models.LegacyCommit]:
    """Return commits in the form of the legacy endpoints."""
    return [legacy_models.LegacyCommit(**_commit(commit)) for commit in commits]


def proposal_of(
    commit: delta_models.Commit | legacy_models.LegacyCommit,
    transaction_id: str,
    change: MetadataChange | None,
    published_version: int | None,
    expected_etag: str | None,
) -> Proposal:
    """Return the proposal of a staged commit. Raises Failure if its file name is not valid for its version."""
    check_staged_name(commit.file_name, commit.version)
    return Proposal(
        version=commit.version,
        timestamp=commit.timestamp,
        transaction_id=transaction_id,
        file=StagedFile(commit.file_name, commit.file_size, commit.file_modification_timestamp),
        change=change,
        published_version=published_version,
        expected_etag=expected_etag,
    )


def refuse_uniform(uniform: Uniform) -> None:
    """Raise Failure for a request with UniForm metadata."""
    if uniform is not None:
        raise invalid("The catalog does not store UniForm metadata.")


def api_properties(description: Description) -> dict[str, str]:
    """Return the properties of a table, with those that the API derives from its protocol and domains."""
    properties = dict(own_properties(description.info.properties))
    if description.protocol is not None:
        properties |= protocol_properties(description.protocol)
    domains = domains_to_json(description.domains)
    if CLUSTERING in domains:
        properties[CLUSTERING_COLUMNS] = msgspec.json.encode(domains[CLUSTERING]["clusteringColumns"]).decode()
    if ROW_TRACKING in domains:
        properties[HIGH_WATER_MARK] = str(domains[ROW_TRACKING]["rowIdHighWaterMark"])
    return properties


def check_schema(schema_string: str, partition_columns: Iterable[str]) -> None:
    """Raise Failure for an invalid schema, and for partition columns that are not in the schema."""
    try:
        schema = parse_schema(schema_string)
    except DeltaError as error:
        raise invalid(error.message) from None
    names = [field.name.casefold() for field in schema]
    if len(set(names)) != len(names):
        raise invalid("Two columns have the same name.")
    for column in partition_columns:
        if column.casefold() not in names:
            raise invalid(f"The partition column {column!a} is not among the columns.")


def _commit(commit: RatifiedCommit) -> dict[str, Any]:
    return commit_to_json(commit, "_")
