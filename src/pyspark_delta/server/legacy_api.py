"""The operations on tables before the Delta API: tables by full name, and commits by the id of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark_delta.actions.model import Metadata
from pyspark_delta.catalog.contract import MetadataChange, NewTable, Proposal, StagedFile, StagingTable, TableName
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity.columns import schema_of_columns
from pyspark_delta.catalog.unity.legacy_api import REPLAYED_HEADER
from pyspark_delta.catalog.unity.property_sync import TABLE_ID_PROPERTY, own_properties, protocol_of_properties
from pyspark_delta.catalog.unity.responses import wire_location
from pyspark_delta.errors import CatalogNameNotFoundError
from pyspark_delta.server import schemas
from pyspark_delta.server.credentials import access_of, legacy_credentials_answer
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.fields import (
    full_name,
    invalid,
    members,
    new_name,
    properties_in,
    staged_name,
    table_id,
    table_name,
    text,
    whole,
)
from pyspark_delta.server.first_commit import first_commit
from pyspark_delta.server.namespaces import require_catalog
from pyspark_delta.server.operation import DONE, Call, Operation, Reply
from pyspark_delta.server.pages import PAGE_QUERY, page_of
from pyspark_delta.server.served import Description
from pyspark_delta.server.tables import (
    check_schema,
    described,
    described_by_id,
    legacy_answer,
    legacy_commits,
    require_commits,
    staged_tail,
)
from pyspark_delta.server.updates import check_table_id, check_unmanaged
from pyspark_delta.storage.paths import normalize_location

_COMMITS_IN_ANSWER = 10


def _name_in(body: Any) -> TableName:
    return table_name(body.get("catalog_name"), body.get("schema_name"), new_name(body.get("name"), "'name'"))


def _named(call: Call) -> TableName:
    return TableName(*full_name(call.path["full_name"], 3))


# -------------------------------------------------------------------------------------------------------- tables
def _create_staging_table(call: Call) -> Reply:
    name = _name_in(members(call.body, "The request"))
    call.require_reach(name.catalog, name.schema)
    require_catalog(call, name.catalog)
    staging = call.catalog.create_staging_table(name)
    return Reply(
        body={
            "name": name.name,
            "catalog_name": name.catalog,
            "schema_name": name.schema,
            "id": staging.table_id,
            "staging_location": wire_location(staging.location),
        }
    )


def _create_table(call: Call) -> Reply:
    body = members(call.body, "The request")
    name = _name_in(body)
    call.require_reach(name.catalog, name.schema)
    if body.get("data_source_format") != "DELTA":
        raise invalid("The catalog holds Delta tables only: 'data_source_format' must be DELTA.")
    location = normalize_location(text(body, "storage_location"))
    match body.get("table_type"):
        case "MANAGED":
            properties = properties_in(body, "properties", optional=True)
            wanted = table_id(properties.get(TABLE_ID_PROPERTY) or location.rpartition("/")[2])
            staging = call.catalog.load_staging_table(wanted)
            if staging.location != location:
                raise invalid("'storage_location' is not that of the staging table.")
            staging = StagingTable(table_id=wanted, name=name, location=location)
            call.catalog.create_table(staging, first_commit(call, staging))
        case "EXTERNAL":
            call.require_scope(Scope.ADMIN)  # a client that may name any location could request credentials for it
            call.catalog.register_table(name, location, _described(body, name))
        case _:
            raise invalid("'table_type' must be MANAGED or EXTERNAL.")
    return Reply(body=legacy_answer(described(call, name)))


def _described(body: Any, name: TableName) -> NewTable | None:
    """Return the description of a table at a path in a request; None if it names no columns."""
    if not body.get("columns"):
        return None
    properties = properties_in(body, "properties", optional=True)
    columns, partitions = schema_of_columns(body["columns"])
    check_schema(columns, partitions)
    metadata = Metadata(
        id=str(name),
        schema_string=columns,
        partition_columns=partitions,
        configuration=own_properties(properties),
        description=text(body, "comment", optional=True),
    )
    protocol = protocol_of_properties(properties)
    check_unmanaged(protocol)
    return NewTable(version=0, timestamp=0, protocol=protocol, metadata=metadata)


def _list_tables(call: Call) -> Reply:
    name = table_name(call.query.get("catalog_name"), call.query.get("schema_name"), "any")
    call.require_reach(name.catalog, name.schema)
    names, rest = page_of(call, call.catalog.list_tables(name.catalog, name.schema), lambda table: table.name)
    return Reply(body={"tables": [legacy_answer(found) for found in _descriptions(call, names)], **rest})


def _descriptions(call: Call, names: list[TableName]) -> list[Description]:
    found = []
    for name in names:
        try:
            found.append(described(call, name))
        except CatalogNameNotFoundError:  # dropped since it was listed
            continue
    return found


def _load_table(call: Call) -> Reply:
    return Reply(body=legacy_answer(described(call, _named(call))))


def _drop_table(call: Call) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    call.catalog.drop_table(name)
    return DONE


# ------------------------------------------------------------------------------------------------------- commits
def _addressed(call: Call) -> Description:
    body = members(call.body, "The request")
    description = described_by_id(call, table_id(body.get("table_id")))
    if normalize_location(text(body, "table_uri")) != description.info.location:
        raise invalid("'table_uri' is not the location of the table.")
    if not description.info.catalog_managed:
        raise invalid("The catalog does not manage this table.")
    return description


def _get_commits(call: Call) -> Reply:
    description = _addressed(call)
    start = whole(call.body, "start_version")
    end = whole(call.body, "end_version", optional=True)
    if end is not None and end < start:
        raise invalid("'end_version' is before 'start_version'.")
    tail = staged_tail(call.catalog, description.info)
    assert tail is not None
    chosen = [c for c in tail.commits if c.version >= start and (end is None or c.version <= end)]
    answer = {"commits": legacy_commits(chosen[:_COMMITS_IN_ANSWER]), "latest_table_version": tail.latest_version}
    return Reply(body=answer)


def _commit(call: Call) -> Reply:
    description = _addressed(call)
    published = whole(call.body, "latest_backfilled_version", optional=True)
    if call.body.get("commit_info") is None:
        if published is None:
            raise invalid("The request has neither 'commit_info' nor 'latest_backfilled_version'.")
        require_commits(description.info)
        call.catalog.report_published(description.info, published)
        return DONE
    proposal = _proposal(call.body, description, published)
    ratification = call.catalog.ratify(description.info, proposal)
    if ratification.replayed and call.settings.replay_is_conflict:
        raise Failure(FailureKind.VERSION_TAKEN, f"Version {proposal.version} is ratified already.")
    return replace(DONE, headers={REPLAYED_HEADER: "true"}) if ratification.replayed else DONE


def _proposal(body: Any, description: Description, published: int | None) -> Proposal:
    if body.get("uniform") is not None:
        raise invalid("The catalog does not keep UniForm metadata.")
    commit = members(body["commit_info"], "'commit_info'")
    version = whole(commit, "version", 1)
    metadata = body.get("metadata")
    return Proposal(
        version=version,
        timestamp=whole(commit, "timestamp", 1),
        transaction_id="",
        file=StagedFile(
            staged_name(commit, "file_name", version),
            whole(commit, "file_size", 1),
            whole(commit, "file_modification_timestamp", 1),
        ),
        change=None if metadata is None else _change(members(metadata, "'metadata'"), description),
        published_version=published,
    )


def _change(body: Any, description: Description) -> MetadataChange | None:
    """Return what a commit changes in the metadata; the properties replace all existing ones."""
    info = description.info
    changed = known = description.metadata or Metadata(id=info.table_id, schema_string="")
    if body.get("properties") is not None:
        properties = properties_in(members(body["properties"], "'properties'"), "properties", optional=True)
        if TABLE_ID_PROPERTY in info.properties and TABLE_ID_PROPERTY not in properties:
            raise invalid(f"The property '{TABLE_ID_PROPERTY}' cannot be removed.")
        check_table_id(properties, info.table_id)
        changed = replace(changed, configuration=own_properties(properties))
    if body.get("schema") is not None:
        columns, partitions = schema_of_columns(members(body["schema"], "'schema'").get("columns"))
        changed = replace(changed, schema_string=columns, partition_columns=partitions)
    if body.get("description") is not None:
        changed = replace(changed, description=text(body, "description"))
    if changed is known:
        return None
    check_schema(changed.schema_string, changed.partition_columns)
    return MetadataChange(metadata=changed)


def _credentials(call: Call) -> Reply:
    body = members(call.body, "The request")
    access = access_of(call, body.get("operation"))
    info = described_by_id(call, table_id(body.get("table_id"))).info
    return Reply(body=legacy_credentials_answer(call, info, access))


OPERATIONS = (
    Operation(
        method="POST",
        path="/staging-tables",
        summary="Get a place for a new table",
        scope=Scope.WRITE,
        work=_create_staging_table,
        takes=schemas.LEGACY_NAMED_TABLE,
        answers=schemas.LEGACY_STAGING_TABLE,
        failures=(400, 401, 403, 404, 409),
    ),
    Operation(
        method="POST",
        path="/tables",
        summary="Give a new table its name, or register one that the catalog does not manage",
        scope=Scope.WRITE,
        work=_create_table,
        takes=schemas.LEGACY_CREATE_TABLE,
        answers=schemas.LEGACY_TABLE,
        failures=(400, 401, 403, 404, 409),
    ),
    Operation(
        method="GET",
        path="/tables",
        summary="List the tables of a schema",
        scope=Scope.READ,
        work=_list_tables,
        answers=schemas.page("tables", schemas.LEGACY_TABLE),
        query={"catalog_name": (schemas.NAME, True), "schema_name": (schemas.NAME, True), **PAGE_QUERY},
    ),
    Operation(
        method="GET",
        path="/tables/{full_name}",
        summary="Load a table",
        scope=Scope.READ,
        work=_load_table,
        answers=schemas.LEGACY_TABLE,
    ),
    Operation(
        method="DELETE",
        path="/tables/{full_name}",
        summary="Drop a table",
        scope=Scope.WRITE,
        work=_drop_table,
        says_done=True,
    ),
    Operation(
        method="GET",
        path="/delta/preview/commits",
        summary="List the commits of a table that are not published; the request is in the body",
        scope=Scope.READ,
        work=_get_commits,
        takes=schemas.LEGACY_GET_COMMITS,
        answers=schemas.LEGACY_COMMITS,
    ),
    Operation(
        method="POST",
        path="/delta/preview/commits",
        summary="Commit to a table, or say what of it is published",
        scope=Scope.WRITE,
        work=_commit,
        takes=schemas.LEGACY_COMMIT_REQUEST,
        says_done=True,
        failures=(400, 401, 403, 404, 409, 429),
    ),
    Operation(
        method="POST",
        path="/temporary-table-credentials",
        summary="Get credentials for the storage of a table",
        scope=None,
        work=_credentials,
        takes=schemas.LEGACY_CREDENTIALS_REQUEST,
        answers=schemas.OBJECT,
    ),
)
