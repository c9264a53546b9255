"""The operations of the Delta API v1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

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
from pyspark_delta.server import delta_models
from pyspark_delta.server.credentials import access_of, credentials_answer
from pyspark_delta.server.delta_models import (
    Config,
    ConfigQuery,
    CreateManagedTable,
    CreateStagingTable,
    CreateTable,
    Credentials,
    CredentialsQuery,
    Features,
    Metrics,
    Protocol,
    RegisterTable,
    RenameTable,
    Table,
    UpdateTable,
)
from pyspark_delta.server.failures import Failure, FailureKind, invalid
from pyspark_delta.server.names import is_uuid, name_part, table_id, table_name
from pyspark_delta.server.namespaces import require_catalog
from pyspark_delta.server.operation import NO_CONTENT, Call, Operation, Reply
from pyspark_delta.server.tables import check_schema, described, load_answer, refuse_uniform, require_commits
from pyspark_delta.server.updates import (
    check_domains,
    check_requirements,
    check_table_id,
    domains_of,
    protocol_of,
    reported_change,
    request_of,
    requested_proposal,
    schema_string_in,
)
from pyspark_delta.storage.paths import normalize_location

VERSION = "1.0"
_SCHEMA = "/delta/v1/catalogs/{catalog}/schemas/{schema}"
_TABLE = f"{_SCHEMA}/tables/{{table}}"


def _config(call: Call[ConfigQuery]) -> Reply:
    query = call.request()
    require_catalog(call, name_part(query.catalog, "'catalog'"))
    versions = query.protocol_versions.split(",")
    if not any(version.strip().partition(".")[0] == "1" for version in versions):
        raise invalid(f"The server supports version {VERSION} of the API only.")
    prefix = "/delta"
    endpoints = [f"{o.method} {o.path.removeprefix(prefix)}" for o in OPERATIONS if "/config" not in o.path]
    headers = {TRANSACTION_IDS_HEADER: "true"}
    return Reply(body=Config(endpoints=endpoints, protocol_version=VERSION), headers=headers)


def _create_staging_table(call: Call[CreateStagingTable]) -> Reply:
    name = _new_name(call, call.request())
    require_catalog(call, name.catalog)
    return Reply(body=_staging_answer(call, call.catalog.create_staging_table(name)))


def _new_name(call: Call[Any], request: CreateStagingTable | CreateTable) -> TableName:
    """Return the name for a new table. Raises Failure."""
    name = table_name(call.path["catalog"], call.path["schema"], request.name)
    call.require_reach(name.catalog, name.schema)
    return name


def _staging_answer(call: Call[Any], staging: StagingTable) -> delta_models.StagingTable:
    readers, writers = _by_kind(staging.required_features)
    suggested_readers, suggested_writers = _by_kind(staging.suggested_features)
    info = TableInfo(table_id=staging.table_id, name=staging.name, location=staging.location)
    return delta_models.StagingTable(
        table_id=staging.table_id,
        location=wire_location(staging.location),
        storage_credentials=credentials_answer(call, info, access_of(call, "READ_WRITE")),
        required_protocol=Protocol(
            min_reader_version=3, min_writer_version=7, reader_features=readers, writer_features=writers
        ),
        suggested_protocol=Features(reader_features=suggested_readers, writer_features=suggested_writers),
        required_properties={**staging.required_properties, TABLE_ID_PROPERTY: staging.table_id},
        suggested_properties=dict(staging.suggested_properties),
    )


def _by_kind(features: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the features for readers, and all features."""
    writers = sorted(features)
    found = {name: find_feature(name) for name in writers}
    readers = [name for name, known in found.items() if known is not None and known.kind is FeatureKind.READER_WRITER]
    return readers, writers


def _staging_credentials(call: Call[Any]) -> Reply:
    if not is_uuid(call.path["table_id"]):
        raise invalid("The id of a staging table must be a UUID.")
    staging = _staging(call, call.path["table_id"])
    info = TableInfo(table_id=staging.table_id, name=staging.name, location=staging.location)
    return Reply(body=Credentials(storage_credentials=credentials_answer(call, info, access_of(call, "READ_WRITE"))))


def _staging(call: Call[Any], wanted: str) -> StagingTable:
    try:
        staging = call.catalog.load_staging_table(table_id(wanted))
    except (InvalidProposalError, NotAuthorizedError):
        staging = None
    if staging is None or not call.reaches(staging.name.catalog, staging.name.schema):
        raise Failure(FailureKind.NO_TABLE, "The catalog has no staging table with this id.")
    return staging


def _create_table(call: Call[CreateTable]) -> Reply:
    request = call.request()
    name = _new_name(call, request)
    location = normalize_location(request.location)
    refuse_uniform(request.uniform)
    if isinstance(request, RegisterTable):
        call.require_scope(Scope.ADMIN)  # a client that may name any location could request credentials for it
        call.catalog.register_table(name, location, _registered(name, request))
    else:
        wanted = table_id(request.properties.get(TABLE_ID_PROPERTY) or location.rpartition("/")[2])
        check_table_id(request.properties, wanted)
        staging = StagingTable(table_id=wanted, name=name, location=location)
        call.catalog.create_table(staging, _described(name, request))
    return Reply(body=load_answer(call.catalog, described(call, name)))


def _registered(name: TableName, request: RegisterTable) -> NewTable | None:
    """Return the description of a registered table in a request; None if the request has no columns."""
    if request.columns is None:
        return None
    if request.protocol is None or request.last_commit_timestamp_ms is None:
        raise invalid("A table with 'columns' needs 'protocol' and 'last-commit-timestamp-ms' too.")
    whole = {**msgspec.structs.asdict(request), "properties": request.properties or {}}
    return _described(name, CreateManagedTable(**whole), managed=False)


def _described(name: TableName, request: CreateManagedTable, *, managed: bool = True) -> NewTable:
    """Return the description of a new table in a request. Raises Failure."""
    properties = own_properties(request.properties)
    columns, partitions = schema_string_in(request.columns), tuple(request.partition_columns or ())
    check_schema(columns, partitions)
    metadata = Metadata(
        id=properties.get(TABLE_ID_PROPERTY, str(name)),
        schema_string=columns,
        partition_columns=partitions,
        configuration=properties,
        description=request.comment,
    )
    protocol = protocol_of(request.protocol, managed=managed)
    domains = [] if request.domain_metadata is None else domains_of(request.domain_metadata)
    check_domains(protocol, domains)
    return NewTable(
        version=0,
        timestamp=request.last_commit_timestamp_ms,
        protocol=protocol,
        metadata=metadata,
        domains=tuple(domains),
    )


def _named(call: Call[Any]) -> TableName:
    return table_name(call.path["catalog"], call.path["schema"], call.path["table"])


def _load_table(call: Call[Any]) -> Reply:
    return Reply(body=load_answer(call.catalog, described(call, _named(call))))


def _exists(call: Call[Any]) -> Reply:
    described(call, _named(call))
    return NO_CONTENT


def _update_table(call: Call[UpdateTable]) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    request = request_of(call.request())
    description = described(call, name)
    check_requirements(request, description.info)
    if not description.info.catalog_managed:
        call.catalog.report_change(description.info, *reported_change(request, description))
        return Reply(body=load_answer(call.catalog, described(call, name)))
    proposal = requested_proposal(request, description)
    headers = {}
    if proposal is not None:
        ratification = call.catalog.ratify(description.info, proposal)
        if ratification.replayed:
            if call.settings.replay_is_conflict:
                raise Failure(FailureKind.VERSION_TAKEN, f"Version {proposal.version} of {name} is already ratified.")
            headers = {REPLAYED_HEADER: "true"}
    elif (published := request.published_version) is not None:
        require_commits(description.info)
        call.catalog.report_published(description.info, published)
    return Reply(body=load_answer(call.catalog, described(call, name)), headers=headers)


def _drop_table(call: Call[Any]) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    call.catalog.drop_table(name)
    return NO_CONTENT


def _rename_table(call: Call[RenameTable]) -> Reply:
    name = _named(call)
    call.require_reach(name.catalog, name.schema)
    call.catalog.rename_table(name, table_name(name.catalog, name.schema, call.request().new_name))
    return NO_CONTENT


def _credentials(call: Call[CredentialsQuery]) -> Reply:
    name = _named(call)
    access, info = access_of(call, call.request().operation), described(call, name).info
    return Reply(body=Credentials(storage_credentials=credentials_answer(call, info, access)))


def _metrics(call: Call[Metrics]) -> Reply:
    """Accept metrics and discard them."""
    info = described(call, _named(call)).info
    if call.request().table_id.lower() != info.table_id.lower():
        raise invalid("'table-id' is not the id of the table.")
    return NO_CONTENT


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "/delta/v1/config",
        "List the operations of the server",
        _config,
        Scope.READ,
        query=ConfigQuery,
        answers=Config,
    ),
    Operation(
        "POST",
        f"{_SCHEMA}/staging-tables",
        "Get a location for a new table",
        _create_staging_table,
        Scope.WRITE,
        CreateStagingTable,
        answers=delta_models.StagingTable,
        may_conflict=True,
    ),
    Operation(
        "GET",
        "/delta/v1/staging-tables/{table_id}/credentials",
        "Get credentials for the location of a new table",
        _staging_credentials,
        Scope.WRITE,
        answers=Credentials,
    ),
    Operation(
        "POST",
        f"{_SCHEMA}/tables",
        "Name a new table, or register one that the catalog does not manage",
        _create_table,
        Scope.WRITE,
        CreateTable,
        answers=Table,
        may_conflict=True,
    ),
    Operation("GET", _TABLE, "Load a table", _load_table, Scope.READ, answers=Table),
    Operation("HEAD", _TABLE, "Check whether a table exists", _exists, Scope.READ),
    Operation(
        "POST",
        _TABLE,
        "Commit to a table, or report published commits",
        _update_table,
        Scope.WRITE,
        UpdateTable,
        answers=Table,
        may_conflict=True,
    ),
    Operation("DELETE", _TABLE, "Drop a table", _drop_table, Scope.WRITE),
    Operation(
        "POST",
        f"{_TABLE}/rename",
        "Rename a table within its schema",
        _rename_table,
        Scope.WRITE,
        RenameTable,
        may_conflict=True,
    ),
    Operation(
        "GET",
        f"{_TABLE}/credentials",
        "Get credentials for the storage of a table",
        _credentials,
        None,
        query=CredentialsQuery,
        answers=Credentials,
    ),
    Operation("POST", f"{_TABLE}/metrics", "Report metrics of a commit", _metrics, Scope.WRITE, Metrics),
)
