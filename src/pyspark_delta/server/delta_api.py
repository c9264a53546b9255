"""The operations of the Delta API v1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark_delta.actions.model import Metadata
from pyspark_delta.catalog.contract import NewTable, StagingTable, TableInfo, TableName
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity.delta_api import TRANSACTION_IDS_HEADER
from pyspark_delta.catalog.unity.legacy_api import REPLAYED_HEADER
from pyspark_delta.catalog.unity.property_sync import TABLE_ID_PROPERTY, own_properties
from pyspark_delta.catalog.unity.responses import wire_location
from pyspark_delta.errors import InvalidProposalError, NotAuthorizedError
from pyspark_delta.features import find_feature
from pyspark_delta.protocol.feature import FeatureKind
from pyspark_delta.server import schemas
from pyspark_delta.server.credentials import access_of, credentials_answer
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.fields import (
    invalid,
    is_uuid,
    members,
    name_part,
    new_name,
    properties_in,
    table_id,
    table_name,
    text,
    texts_in,
    whole,
)
from pyspark_delta.server.namespaces import require_catalog
from pyspark_delta.server.operation import NO_CONTENT, Call, Operation, Reply
from pyspark_delta.server.tables import check_schema, described, load_answer, require_commits
from pyspark_delta.server.updates import (
    check_domains,
    check_requirements,
    check_table_id,
    columns_in,
    domains_of,
    proposal_of,
    protocol_of,
    reported_change,
    request_of,
)
from pyspark_delta.storage.paths import normalize_location

VERSION = "1.0"
_SCHEMA = "/delta/v1/catalogs/{catalog}/schemas/{schema}"
_TABLE = f"{_SCHEMA}/tables/{{table}}"


def _config(call: Call) -> Reply:
    require_catalog(call, name_part(call.query.get("catalog"), "'catalog'"))
    if "protocol-versions" not in call.query:
        raise invalid("'protocol-versions' must be given, such as 1.0.")
    versions = call.query["protocol-versions"].split(",")
    if not any(version.strip().partition(".")[0] == "1" for version in versions):
        raise invalid(f"The server speaks version {VERSION} of the API only.")
    prefix = "/delta"
    endpoints = [f"{o.method} {o.path.removeprefix(prefix)}" for o in OPERATIONS if "/config" not in o.path]
    headers = {TRANSACTION_IDS_HEADER: "true"}
    return Reply(body={"endpoints": endpoints, "protocol-version": VERSION}, headers=headers)


def _create_staging_table(call: Call) -> Reply:
    body = members(call.body, "The request")
    name = _new_name(call, body)
    require_catalog(call, name.catalog)
    return Reply(body=_staging_answer(call, call.catalog.create_staging_table(name)))


def _new_name(call: Call, body: Any) -> TableName:
    """Return the name for a table. Raises Failure."""
    name = table_name(call.path["catalog"], call.path["schema"], new_name(body.get("name"), "'name'"))
    call.require_reach(name.catalog, name.schema)
    return name


def _staging_answer(call: Call, staging: StagingTable) -> dict[str, Any]:
    readers, writers = _by_kind(staging.required_features)
    suggested_readers, suggested_writers = _by_kind(staging.suggested_features)
    info = TableInfo(table_id=staging.table_id, name=staging.name, location=staging.location)
    access = access_of(call, "READ_WRITE")
    return {
        "table-id": staging.table_id,
        "table-type": "MANAGED",
        "location": wire_location(staging.location),
        **credentials_answer(call, info, access),
        "required-protocol": {
            "min-reader-version": 3,
            "min-writer-version": 7,
            "reader-features": readers,
            "writer-features": writers,
        },
        "suggested-protocol": {"reader-features": suggested_readers, "writer-features": suggested_writers},
        "required-properties": {**staging.required_properties, TABLE_ID_PROPERTY: staging.table_id},
        "suggested-properties": dict(staging.suggested_properties),
    }


def _by_kind(features: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the features for readers, and all features."""
    writers = sorted(features)
    found = {name: find_feature(name) for name in writers}
    readers = [name for name, known in found.items() if known is not None and known.kind is FeatureKind.READER_WRITER]
    return readers, writers


def _staging_credentials(call: Call) -> Reply:
    if not is_uuid(call.path["table_id"]):
        raise invalid("The id of a staging table must be a UUID.")
    staging = _staging(call, call.path["table_id"])
    info = TableInfo(table_id=staging.table_id, name=staging.name, location=staging.location)
    return Reply(body=credentials_answer(call, info, access_of(call, "READ_WRITE")))


def _staging(call: Call, wanted: str) -> StagingTable:
    try:
        staging = call.catalog.load_staging_table(table_id(wanted))
    except (InvalidProposalError, NotAuthorizedError):
        staging = None
    if staging is None or not call.reaches(staging.name.catalog, staging.name.schema):
        raise Failure(FailureKind.NO_TABLE, "The catalog has no staging table with this id.")
    return staging


def _create_table(call: Call) -> Reply:
    body = members(call.body, "The request")
    name = _new_name(call, body)
    location = normalize_location(text(body, "location"))
    match body.get("table-type"):
        case "MANAGED":
            call.catalog.create_table(*_new_table(name, location, body))
        case "EXTERNAL":
            call.require_scope(Scope.ADMIN)  # a client that may name any location could request credentials for it
            new = None if body.get("columns") is None else _described(name, body, managed=False)
            call.catalog.register_table(name, location, new)
        case _:
            raise invalid("'table-type' must be MANAGED or EXTERNAL.")
    return Reply(body=load_answer(call.catalog, described(call, name)))


def _new_table(name: TableName, location: str, body: Any) -> tuple[StagingTable, NewTable]:
    if body.get("uniform") is not None:
        raise invalid("The catalog does not keep UniForm metadata.")
    properties = properties_in(body, "properties")
    wanted = table_id(properties.get(TABLE_ID_PROPERTY) or location.rpartition("/")[2])
    check_table_id(properties, wanted)
    staging = StagingTable(table_id=wanted, name=name, location=location)
    return staging, _described(name, body, managed=True)


def _described(name: TableName, body: Any, *, managed: bool) -> NewTable:
    """Return the description of a table in a request. Raises Failure."""
    properties = own_properties(properties_in(body, "properties", optional=not managed))
    columns = columns_in(body)
    partitions = tuple(texts_in(body, "partition-columns", optional=True))
    check_schema(columns, partitions)
    metadata = Metadata(
        id=properties.get(TABLE_ID_PROPERTY, str(name)),
        schema_string=columns,
        partition_columns=partitions,
        configuration=properties,
        description=text(body, "comment", optional=True),
    )
    protocol = protocol_of(body.get("protocol"), managed=managed)
    domains = [] if body.get("domain-metadata") is None else domains_of(body["domain-metadata"])
    check_domains(protocol, domains)
    return NewTable(
        version=0,
        timestamp=whole(body, "last-commit-timestamp-ms"),
        protocol=protocol,
        metadata=metadata,
        domains=tuple(domains),
    )


def _named(call: Call) -> TableName:
    return table_name(call.path["catalog"], call.path["schema"], call.path["table"])


def _load_table(call: Call) -> Reply:
    return Reply(body=load_answer(call.catalog, described(call, _named(call))))


def _exists(call: Call) -> Reply:
    described(call, _named(call))
    return NO_CONTENT


def _update_table(call: Call) -> Reply:
    name, request = _named(call), request_of(call.body)
    description = described(call, name)
    check_requirements(request, description.info)
    if not description.info.catalog_managed:
        call.catalog.report_change(description.info, *reported_change(request, description))
        return Reply(body=load_answer(call.catalog, described(call, name)))
    proposal = proposal_of(request, description)
    headers = {}
    if proposal is not None:
        ratification = call.catalog.ratify(description.info, proposal)
        if ratification.replayed:
            if call.settings.replay_is_conflict:
                raise Failure(FailureKind.VERSION_TAKEN, f"Version {proposal.version} of {name} is ratified already.")
            headers = {REPLAYED_HEADER: "true"}
    elif (published := request.published_version) is not None:
        require_commits(description.info)
        call.catalog.report_published(description.info, published)
    return Reply(body=load_answer(call.catalog, described(call, name)), headers=headers)


def _drop_table(call: Call) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    call.catalog.drop_table(name)
    return NO_CONTENT


def _rename_table(call: Call) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    renamed = new_name(members(call.body, "The request").get("new-name"), "'new-name'")
    call.catalog.rename_table(name, table_name(name.catalog, name.schema, renamed))
    return NO_CONTENT


def _credentials(call: Call) -> Reply:
    access = access_of(call, call.query.get("operation"))
    return Reply(body=credentials_answer(call, described(call, _named(call)).info, access))


def _metrics(call: Call) -> Reply:
    """Accept metrics and discard them."""
    info, body = described(call, _named(call)).info, members(call.body, "The request")
    if text(body, "table-id").lower() != info.table_id.lower():
        raise invalid("'table-id' is not the id of the table.")
    return NO_CONTENT


OPERATIONS = (
    Operation(
        method="GET",
        path="/delta/v1/config",
        summary="The operations that the server has",
        scope=Scope.READ,
        work=_config,
        answers=schemas.CONFIG,
        query={"catalog": (schemas.NAME, True), "protocol-versions": (schemas.TEXT, True)},
    ),
    Operation(
        method="POST",
        path=f"{_SCHEMA}/staging-tables",
        summary="Get a place for a new table",
        scope=Scope.WRITE,
        work=_create_staging_table,
        takes=schemas.CREATE_STAGING_TABLE,
        answers=schemas.STAGING_TABLE,
        failures=(400, 401, 403, 404, 409),
    ),
    Operation(
        method="GET",
        path="/delta/v1/staging-tables/{table_id}/credentials",
        summary="Get credentials for the place of a new table",
        scope=Scope.WRITE,
        work=_staging_credentials,
        answers=schemas.CREDENTIALS,
    ),
    Operation(
        method="POST",
        path=f"{_SCHEMA}/tables",
        summary="Give a new table its name, or register one that the catalog does not manage",
        scope=Scope.WRITE,
        work=_create_table,
        takes=schemas.CREATE_TABLE,
        answers=schemas.TABLE,
        failures=(400, 401, 403, 404, 409),
    ),
    Operation(
        method="GET",
        path=_TABLE,
        summary="Load a table",
        scope=Scope.READ,
        work=_load_table,
        answers=schemas.TABLE,
    ),
    Operation(
        method="HEAD",
        path=_TABLE,
        summary="Ask whether there is a table",
        scope=Scope.READ,
        work=_exists,
    ),
    Operation(
        method="POST",
        path=_TABLE,
        summary="Commit to a table, or say what of it is published",
        scope=Scope.WRITE,
        work=_update_table,
        takes=schemas.UPDATE_TABLE,
        answers=schemas.TABLE,
        failures=(400, 401, 403, 404, 409, 429),
    ),
    Operation(
        method="DELETE",
        path=_TABLE,
        summary="Drop a table",
        scope=Scope.WRITE,
        work=_drop_table,
    ),
    Operation(
        method="POST",
        path=f"{_TABLE}/rename",
        summary="Rename a table within its schema",
        scope=Scope.WRITE,
        work=_rename_table,
        takes=schemas.RENAME_TABLE,
        failures=(400, 401, 403, 404, 409),
    ),
    Operation(
        method="GET",
        path=f"{_TABLE}/credentials",
        summary="Get credentials for the storage of a table",
        scope=None,
        work=_credentials,
        answers=schemas.CREDENTIALS,
        query={"operation": ({"type": "string", "enum": ["READ", "READ_WRITE"]}, True)},
    ),
    Operation(
        method="POST",
        path=f"{_TABLE}/metrics",
        summary="Report metrics of a commit",
        scope=Scope.WRITE,
        work=_metrics,
        takes=schemas.METRICS,
    ),
)
