"""The legacy operations on tables, from before the Delta API: tables by full name, commits by the id of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from pyspark_delta.actions.model import Metadata
from pyspark_delta.catalog.contract import MetadataChange, NewTable, StagingTable, TableName
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity.column_info import schema_of_columns
from pyspark_delta.catalog.unity.legacy_api import REPLAYED_HEADER
from pyspark_delta.catalog.unity.property_sync import TABLE_ID_PROPERTY, own_properties, protocol_of_properties
from pyspark_delta.catalog.unity.responses import wire_location
from pyspark_delta.errors import CatalogNameNotFoundError
from pyspark_delta.server.credentials import access_of, legacy_credentials_answer
from pyspark_delta.server.failures import Failure, FailureKind, invalid
from pyspark_delta.server.first_commit import first_commit
from pyspark_delta.server.legacy_models import (
    CommitLegacyTable,
    CreateLegacyStagingTable,
    CreateLegacyTable,
    GetLegacyCommits,
    LegacyCommits,
    LegacyCredentials,
    LegacyCredentialsRequest,
    LegacyMetadata,
    LegacyStagingTable,
    LegacyTable,
    LegacyTables,
    RegisterLegacyTable,
    TablesQuery,
)
from pyspark_delta.server.names import full_name, table_id, table_name
from pyspark_delta.server.namespaces import require_catalog
from pyspark_delta.server.operation import DONE, Call, Operation, Reply
from pyspark_delta.server.pages import page_of
from pyspark_delta.server.served import Description
from pyspark_delta.server.tables import (
    check_schema,
    described,
    described_by_id,
    legacy_answer,
    legacy_commits,
    proposal_of,
    refuse_uniform,
    require_commits,
    staged_tail,
)
from pyspark_delta.server.updates import check_table_id, check_unmanaged
from pyspark_delta.storage.paths import normalize_location

_COMMITS_IN_ANSWER = 10


def _new_name(call: Call[Any], request: CreateLegacyStagingTable) -> TableName:
    """Return the name for a new table. Raises Failure."""
    name = table_name(request.catalog_name, request.schema_name, request.name)
    call.require_reach(name.catalog, name.schema)
    return name


def _named(call: Call[Any]) -> TableName:
    return TableName(*full_name(call.path["full_name"], 3))


# -------------------------------------------------------------------------------------------------------- tables
def _create_staging_table(call: Call[CreateLegacyStagingTable]) -> Reply:
    name = _new_name(call, call.request())
    require_catalog(call, name.catalog)
    staging = call.catalog.create_staging_table(name)
    return Reply(
        body=LegacyStagingTable(
            name=name.name,
            catalog_name=name.catalog,
            schema_name=name.schema,
            id=staging.table_id,
            staging_location=wire_location(staging.location),
        )
    )


def _create_table(call: Call[CreateLegacyTable]) -> Reply:
    request = call.request()
    name = _new_name(call, request)
    location = normalize_location(request.storage_location)
    if isinstance(request, RegisterLegacyTable):
        call.require_scope(Scope.ADMIN)  # a client that may name any location could request credentials for it
        call.catalog.register_table(name, location, _described(request, name))
    else:
        wanted = table_id((request.properties or {}).get(TABLE_ID_PROPERTY) or location.rpartition("/")[2])
        if call.catalog.load_staging_table(wanted).location != location:
            raise invalid("'storage_location' is not the location of the staging table.")
        staging = StagingTable(table_id=wanted, name=name, location=location)
        call.catalog.create_table(staging, first_commit(call, staging))
    return Reply(body=legacy_answer(described(call, name)))


def _described(request: RegisterLegacyTable, name: TableName) -> NewTable | None:
    """Return the description of a registered table in a request; None if the request has no columns."""
    if not request.columns:
        return None
    properties = request.properties or {}
    columns, partitions = schema_of_columns(msgspec.to_builtins(request.columns))
    check_schema(columns, partitions)
    metadata = Metadata(
        id=str(name),
        schema_string=columns,
        partition_columns=partitions,
        configuration=own_properties(properties),
        description=request.comment,
    )
    protocol = protocol_of_properties(properties)
    check_unmanaged(protocol)
    return NewTable(version=0, timestamp=0, protocol=protocol, metadata=metadata)


def _list_tables(call: Call[TablesQuery]) -> Reply:
    query = call.request()
    name = table_name(query.catalog_name, query.schema_name, "any")
    call.require_reach(name.catalog, name.schema)
    names, rest = page_of(query, call.catalog.list_tables(name.catalog, name.schema), lambda table: table.name)
    tables = [legacy_answer(found) for found in _descriptions(call, names)]
    return Reply(body=LegacyTables(tables=tables, next_page_token=rest))


def _descriptions(call: Call[Any], names: list[TableName]) -> list[Description]:
    found = []
    for name in names:
        try:
            found.append(described(call, name))
        except CatalogNameNotFoundError:  # dropped since it was listed
            continue
    return found


def _load_table(call: Call[Any]) -> Reply:
    return Reply(body=legacy_answer(described(call, _named(call))))


def _drop_table(call: Call[Any]) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    call.catalog.drop_table(name)
    return DONE


# ------------------------------------------------------------------------------------------------------- commits
def _addressed(call: Call[Any], request: GetLegacyCommits | CommitLegacyTable) -> Description:
    description = described_by_id(call, table_id(request.table_id))
    if normalize_location(request.table_uri) != description.info.location:
        raise invalid("'table_uri' is not the location of the table.")
    if not description.info.catalog_managed:
        raise invalid("The catalog does not manage this table.")
    return description


def _get_commits(call: Call[GetLegacyCommits]) -> Reply:
    request = call.request()
    description = _addressed(call, request)
    start, end = request.start_version, request.end_version
    if end is not None and end < start:
        raise invalid("'end_version' is before 'start_version'.")
    tail = staged_tail(call.catalog, description.info)
    assert tail is not None
    chosen = [c for c in tail.commits if c.version >= start and (end is None or c.version <= end)]
    commits = legacy_commits(chosen[:_COMMITS_IN_ANSWER])
    return Reply(body=LegacyCommits(commits=commits, latest_table_version=tail.latest_version))


def _commit(call: Call[CommitLegacyTable]) -> Reply:
    request = call.request()
    description, published = _addressed(call, request), request.latest_backfilled_version
    if request.commit_info is None:
        if published is None:
            raise invalid("The request has neither 'commit_info' nor 'latest_backfilled_version'.")
        require_commits(description.info)
        call.catalog.report_published(description.info, published)
        return DONE
    refuse_uniform(request.uniform)
    change = None if request.metadata is None else _change(request.metadata, description)
    proposal = proposal_of(request.commit_info, "", change, published, None)
    ratification = call.catalog.ratify(description.info, proposal)
    if ratification.replayed and call.settings.replay_is_conflict:
        raise Failure(FailureKind.VERSION_TAKEN, f"Version {proposal.version} is already ratified.")
    return replace(DONE, headers={REPLAYED_HEADER: "true"}) if ratification.replayed else DONE


def _change(metadata: LegacyMetadata, description: Description) -> MetadataChange | None:
    """Return the changes of metadata by a commit. Its properties replace all existing ones."""
    info = description.info
    changed = known = description.metadata or Metadata(id=info.table_id, schema_string="")
    if metadata.properties is not None:
        properties = metadata.properties.properties or {}
        if TABLE_ID_PROPERTY in info.properties and TABLE_ID_PROPERTY not in properties:
            raise invalid(f"The property '{TABLE_ID_PROPERTY}' cannot be removed.")
        check_table_id(properties, info.table_id)
        changed = replace(changed, configuration=own_properties(properties))
    if metadata.schema is not None:
        columns, partitions = schema_of_columns(msgspec.to_builtins(metadata.schema.columns))
        changed = replace(changed, schema_string=columns, partition_columns=partitions)
    if metadata.description is not None:
        changed = replace(changed, description=metadata.description)
    if changed is known:
        return None
    check_schema(changed.schema_string, changed.partition_columns)
    return MetadataChange(metadata=changed)


def _credentials(call: Call[LegacyCredentialsRequest]) -> Reply:
    request = call.request()
    access = access_of(call, request.operation)
    info = described_by_id(call, table_id(request.table_id)).info
    return Reply(body=legacy_credentials_answer(call, info, access))


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "POST",
        "/staging-tables",
        "Get a location for a new table",
        _create_staging_table,
        Scope.WRITE,
        CreateLegacyStagingTable,
        answers=LegacyStagingTable,
        may_conflict=True,
    ),
    Operation(
        "POST",
        "/tables",
        "Name a new table, or register one that the catalog does not manage",
        _create_table,
        Scope.WRITE,
        CreateLegacyTable,
        answers=LegacyTable,
        may_conflict=True,
    ),
    Operation(
        "GET",
        "/tables",
        "List the tables of a schema",
        _list_tables,
        Scope.READ,
        query=TablesQuery,
        answers=LegacyTables,
    ),
    Operation("GET", "/tables/{full_name}", "Load a table", _load_table, Scope.READ, answers=LegacyTable),
    Operation("DELETE", "/tables/{full_name}", "Drop a table", _drop_table, Scope.WRITE, answers=str),
    Operation(
        "GET",
        "/delta/preview/commits",
        "List the unpublished commits of a table; the request is in the body",
        _get_commits,
        Scope.READ,
        GetLegacyCommits,
        answers=LegacyCommits,
    ),
    Operation(
        "POST",
        "/delta/preview/commits",
        "Commit to a table, or report published commits",
        _commit,
        Scope.WRITE,
        CommitLegacyTable,
        answers=str,
        may_conflict=True,
    ),
    Operation(
        "POST",
        "/temporary-table-credentials",
        "Get credentials for the storage of a table",
        _credentials,
        None,
        LegacyCredentialsRequest,
        answers=LegacyCredentials,
    ),
)
