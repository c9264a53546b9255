"""Requests that change a table through the Delta API: requirements and updates, at most one of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import msgspec

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import MetadataChange, Proposal, TableInfo
from pyspark_delta.catalog.unity.property_sync import (
    CLUSTERING,
    ROW_TRACKING,
    TABLE_ID_PROPERTY,
    is_synthetic,
    own_properties,
)
from pyspark_delta.catalog.unity.type_json import schema_string_of
from pyspark_delta.features import Feature
from pyspark_delta.protocol.configuration import managed_names
from pyspark_delta.server.delta_models import (
    AddCommit,
    AssertEtag,
    AssertTableUuid,
    Columns,
    Domains,
    Protocol,
    RemoveDomains,
    RemoveProperties,
    SetColumns,
    SetDomains,
    SetPartitionColumns,
    SetProperties,
    SetProtocol,
    SetPublishedVersion,
    SetSnapshotVersion,
    SetTableComment,
    Update,
    UpdateTable,
)
from pyspark_delta.server.failures import Failure, FailureKind, invalid
from pyspark_delta.server.served import Description
from pyspark_delta.server.tables import NO_COLUMNS, check_schema, proposal_of, refuse_uniform

U = TypeVar("U", bound=msgspec.Struct)
_METADATA = frozenset({SetProperties, RemoveProperties, SetColumns, SetPartitionColumns, SetTableComment})
_FEATURES = {CLUSTERING: Feature.CLUSTERING, ROW_TRACKING: Feature.ROW_TRACKING}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to change a table: the required table id and etag, and the updates by their kind."""

    table_id: str
    etag: str | None
    updates: Mapping[type, Update]

    def update(self, kind: type[U]) -> U | None:
        """Return the update of a kind, if there is one."""
        return cast("U | None", self.updates.get(kind))

    @property
    def published_version(self) -> int | None:
        """The version up to which commits are published, if the request reports it."""
        update = self.update(SetPublishedVersion)
        return None if update is None else update.latest_published_version


def request_of(body: UpdateTable) -> Request:
    """Read a request. Raises Failure."""
    asserted, updates = _by_kind(body.requirements, "requirement"), _by_kind(body.updates, "update")
    table, etag = asserted.get(AssertTableUuid), asserted.get(AssertEtag)
    if not isinstance(table, AssertTableUuid):
        raise invalid("The requirement 'assert-table-uuid' is missing.")
    return Request(table.uuid, etag.etag if isinstance(etag, AssertEtag) else None, updates)


def check_requirements(request: Request, info: TableInfo) -> None:
    """Raise Failure if the table is another one, or has changed."""
    if request.table_id.lower() != info.table_id.lower():
        raise Failure(FailureKind.REQUIREMENT_FAILED, f"The table {info.name} does not have the required id.")
    if request.etag is not None and AddCommit not in request.updates and request.etag != info.etag:
        raise Failure(FailureKind.REQUIREMENT_FAILED, f"The metadata of {info.name} have changed.")


def requested_proposal(request: Request, description: Description) -> Proposal | None:
    """Return the commit that a request to a managed table proposes; None if it only reports published commits.

    Raises Failure.
    """
    if SetSnapshotVersion in request.updates:
        raise invalid(f"'{_action(SetSnapshotVersion)}' is for tables that the catalog does not manage.")
    update = request.update(AddCommit)
    if update is None:
        if request.updates.keys() - {SetPublishedVersion}:
            raise invalid("Protocol and metadata of a managed table change only with a commit: add 'add-commit'.")
        return None
    refuse_uniform(update.uniform)
    change, identity = _change_of(request, description), update.commit.transaction_id or ""
    return proposal_of(update.commit, identity, change, request.published_version, request.etag)


def reported_change(request: Request, description: Description) -> tuple[int, int, MetadataChange]:
    """Return the version, the time and the changes that a request reports for a registered table.

    The time is in milliseconds since the epoch. Raises Failure.
    """
    name, update = description.info.name, request.update(SetSnapshotVersion)
    if request.updates.keys() & {AddCommit, SetPublishedVersion}:
        raise invalid(f"The catalog does not manage the table {name}, so it accepts no commits to it.")
    if update is None:
        raise invalid(f"An update of the table {name} must state its version: add '{_action(SetSnapshotVersion)}'.")
    change = _change_of(request, description, managed=False)
    return update.last_commit_version, update.last_commit_timestamp_ms, change or MetadataChange()


def schema_string_in(columns: Columns) -> str:
    """Return the `schemaString` of columns. Raises Failure for a schema that Unity Catalog rejects."""
    if any(column.type == "void" for column in columns.fields):
        raise invalid("A column cannot have the type 'void'.")
    return schema_string_of(msgspec.to_builtins(columns))


def check_domains(protocol: ProtocolAction, domains: Iterable[DomainMetadata]) -> None:
    """Raise Failure for a domain whose feature the protocol does not list."""
    for domain in domains:
        feature = _FEATURES[domain.domain]
        if feature not in (protocol.writer_features or ()):
            raise invalid(f"The domain '{domain.domain}' needs the writer feature '{feature}'.")


def check_unmanaged(protocol: ProtocolAction) -> None:
    """Raise Failure for a table that a catalog manages. Only that catalog can name the table."""
    if managed_names(protocol):
        raise invalid("A table that a catalog manages cannot be registered.")


def protocol_of(given: Protocol, *, managed: bool = True) -> ProtocolAction:
    """Return a protocol of the API. With `managed`, raises Failure for a protocol that a managed table cannot have."""
    protocol = ProtocolAction(
        min_reader_version=given.min_reader_version,
        min_writer_version=given.min_writer_version,
        reader_features=frozenset(given.reader_features or ()),
        writer_features=frozenset(given.writer_features or ()),
    )
    readers, writers = protocol.reader_features or frozenset(), protocol.writer_features or frozenset()
    if extra := sorted(readers - writers):
        raise invalid(f"The reader features {extra} are not among the writer features.")
    if not managed:
        check_unmanaged(protocol)
        return replace(protocol, reader_features=readers or None, writer_features=writers or None)
    if protocol.min_reader_version < 3 or protocol.min_writer_version < 7:
        raise invalid("A managed table has at least reader version 3 and writer version 7.")
    if Feature.CATALOG_MANAGED not in readers or not {Feature.CATALOG_MANAGED, Feature.IN_COMMIT_TIMESTAMP} <= writers:
        raise invalid("A managed table has the features catalogManaged (reader and writer) and inCommitTimestamp.")
    return protocol


def domains_of(given: Domains) -> list[DomainMetadata]:
    """Return the domains of an object of the API."""
    domains = {CLUSTERING: given.clustering, ROW_TRACKING: given.row_tracking}
    return [
        DomainMetadata(domain=name, configuration=msgspec.json.encode(configuration).decode())
        for name, configuration in domains.items()
        if configuration is not None
    ]


# ------------------------------------------------------------------------------------------------------- changes
def _change_of(request: Request, description: Description, *, managed: bool = True) -> MetadataChange | None:
    to_set, to_remove = request.update(SetDomains), request.update(RemoveDomains)
    domains = [] if to_set is None else domains_of(to_set.updates)
    if to_set is not None and not domains:
        raise invalid("'set-domain-metadata' sets no domain.")
    if to_remove is not None:
        domains += _removed(to_remove, {domain.domain for domain in domains})
    protocol_update = request.update(SetProtocol)
    protocol = None if protocol_update is None else protocol_of(protocol_update.protocol, managed=managed)
    metadata = _metadata(request, description) if request.updates.keys() & _METADATA else None
    if protocol is None and metadata is None and not domains:
        return None
    return MetadataChange(protocol=protocol, metadata=metadata, domains=tuple(domains))


def _metadata(request: Request, description: Description) -> Metadata:
    info = description.info
    known = description.metadata or Metadata(id=info.table_id, schema_string=NO_COLUMNS)
    changed = replace(known, configuration=_properties(request, info))
    if (columns := request.update(SetColumns)) is not None:
        changed = replace(changed, schema_string=schema_string_in(columns.columns))
    if (partitions := request.update(SetPartitionColumns)) is not None:
        changed = replace(changed, partition_columns=tuple(partitions.partition_columns))
    if (comment := request.update(SetTableComment)) is not None:
        changed = replace(changed, description=comment.comment)
    check_schema(changed.schema_string, changed.partition_columns)
    return changed


def _properties(request: Request, info: TableInfo) -> dict[str, str]:
    properties, setting, removing = (
        dict(info.properties),
        request.update(SetProperties),
        request.update(RemoveProperties),
    )
    to_set, to_remove = {} if setting is None else setting.updates, [] if removing is None else removing.removals
    if both := sorted(to_set.keys() & set(to_remove)):
        raise invalid(f"The properties {both} are both set and removed.")
    if made := sorted(key for key in (*to_set, *to_remove) if is_synthetic(key)):
        raise invalid(f"The catalog derives the properties {made}; they cannot be set or removed.")
    check_table_id(to_set, info.table_id)
    if TABLE_ID_PROPERTY in to_remove:
        raise invalid(f"The property '{TABLE_ID_PROPERTY}' cannot be removed.")
    properties |= to_set
    for key in to_remove:
        properties.pop(key, None)
    return own_properties(properties)


def check_table_id(properties: Mapping[str, str], table_id: str) -> None:
    """Raise Failure if properties name another table."""
    if properties.get(TABLE_ID_PROPERTY, table_id).lower() != table_id.lower():
        raise invalid(f"The property '{TABLE_ID_PROPERTY}' is not the id of the table, {table_id}.")


def _removed(update: RemoveDomains, set_now: set[str]) -> list[DomainMetadata]:
    if both := sorted(set_now.intersection(update.domains)):
        raise invalid(f"The domains {both} are both set and removed.")
    return [DomainMetadata(domain=name, configuration="", removed=True) for name in sorted(set(update.domains))]


def _by_kind(values: Iterable[U], what: str) -> dict[type, U]:
    found: dict[type, U] = {}
    for value in values:
        if type(value) in found:
            raise invalid(f"The request has the {what} '{_action(type(value))}' twice.")
        found[type(value)] = value
    return found


def _action(kind: type[msgspec.Struct]) -> str:
    """Return the name of a requirement or an update in the API."""
    return str(kind.__struct_config__.tag)
