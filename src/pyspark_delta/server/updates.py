"""The request that changes a table through the Delta API: requirements, and updates, one of each kind at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import MetadataChange, Proposal, StagedFile, TableInfo
from pyspark_delta.catalog.unity.property_sync import (
    CLUSTERING,
    MIRRORED_DOMAINS,
    ROW_TRACKING,
    TABLE_ID_PROPERTY,
    is_synthetic,
    own_properties,
)
from pyspark_delta.catalog.unity.type_json import schema_string_of
from pyspark_delta.features import Feature
from pyspark_delta.protocol.configuration import managed_names
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.fields import (
    invalid,
    listed,
    members,
    properties_in,
    staged_name,
    text,
    texts_in,
    whole,
)
from pyspark_delta.server.served import Description
from pyspark_delta.server.tables import NO_COLUMNS, check_schema

_METADATA = frozenset(
    {"set-properties", "remove-properties", "set-columns", "set-partition-columns", "set-table-comment"}
)
_DOMAINS = frozenset({"set-domain-metadata", "remove-domain-metadata"})
_PUBLISHED, _COMMIT, _PROTOCOL = "set-latest-backfilled-version", "add-commit", "set-protocol"
_SNAPSHOT = "update-metadata-snapshot-version"
ACTIONS = tuple(sorted({*_METADATA, *_DOMAINS, _PUBLISHED, _COMMIT, _PROTOCOL, _SNAPSHOT}))
_FEATURES = {CLUSTERING: Feature.CLUSTERING, ROW_TRACKING: Feature.ROW_TRACKING}
REQUIREMENTS = ("assert-table-uuid", "assert-etag")


@dataclass(frozen=True, slots=True)
class Request:
    """A request to change a table: which table and etag it is for, and its updates by their action."""

    table_id: str
    etag: str | None
    updates: Mapping[str, Mapping[str, Any]]

    @property
    def published_version(self) -> int | None:
        """The version up to which commits are published, by the request."""
        update = self.updates.get(_PUBLISHED)
        return None if update is None else whole(update, "latest-published-version")


def request_of(body: Any) -> Request:
    """Read a request. Raises Failure."""
    body = members(body, "The request")
    asserted = _by_kind(listed(body, "requirements"), "type", REQUIREMENTS, "requirement")
    updates = _by_kind(listed(body, "updates"), "action", ACTIONS, "update")
    if not updates:
        raise invalid("The request has no updates.")
    if "assert-table-uuid" not in asserted:
        raise invalid("The requirement 'assert-table-uuid' is missing.")
    etag = text(asserted["assert-etag"], "etag") if "assert-etag" in asserted else None
    return Request(text(asserted["assert-table-uuid"], "uuid"), etag, updates)


def check_requirements(request: Request, info: TableInfo) -> None:
    """Raise Failure if the table is another one, or has changed."""
    if request.table_id.lower() != info.table_id.lower():
        raise Failure(
            FailureKind.REQUIREMENT_FAILED, f"The table {info.name} is not the one with the id that is required."
        )
    if request.etag is not None and _COMMIT not in request.updates and request.etag != info.etag:
        raise Failure(FailureKind.REQUIREMENT_FAILED, f"The metadata of {info.name} have changed.")


def proposal_of(request: Request, description: Description) -> Proposal | None:
    """Return the commit that a request to a managed table proposes.

    Return None if it only reports published commits. Raises Failure.
    """
    if _SNAPSHOT in request.updates:
        raise invalid(f"'{_SNAPSHOT}' is for tables that the catalog does not manage.")
    update = request.updates.get(_COMMIT)
    if update is None:
        if request.updates.keys() - {_PUBLISHED}:
            raise invalid("What the log says, protocol and metadata, changes together with a commit: add 'add-commit'.")
        return None
    if update.get("uniform") is not None:
        raise invalid("The catalog does not keep UniForm metadata.")
    commit = members(update.get("commit"), "'commit'")
    version = whole(commit, "version", 1)
    return Proposal(
        version=version,
        timestamp=whole(commit, "timestamp", 1),
        transaction_id=text(commit, "transaction-id", optional=True) or "",
        file=StagedFile(
            staged_name(commit, "file-name", version),
            whole(commit, "file-size", 1),
            whole(commit, "file-modification-timestamp", 1),
        ),
        change=_change_of(request, description),
        published_version=request.published_version,
        expected_etag=request.etag,
    )


def reported_change(request: Request, description: Description) -> tuple[int, int, MetadataChange]:
    """Return version, time and metadata that a request reports for a table at a path. Raises Failure."""
    name, update = description.info.name, request.updates.get(_SNAPSHOT)
    if request.updates.keys() & {_COMMIT, _PUBLISHED}:
        raise invalid(f"The catalog does not manage the table {name}: it takes no commits.")
    if update is None:
        raise invalid(f"An update of the table {name} must say which version it is: add '{_SNAPSHOT}'.")
    change = _change_of(request, description, managed=False)
    version, timestamp = whole(update, "last-commit-version"), whole(update, "last-commit-timestamp-ms")
    return version, timestamp, change or MetadataChange()


def columns_in(value: Mapping[str, Any]) -> str:
    """Return the `schemaString` of a member `columns`. Raises Failure for a schema that Unity Catalog rejects."""
    columns = members(value.get("columns"), "'columns'")
    fields = listed(columns, "fields")
    if not fields:
        raise invalid("A table needs at least one column.")
    for field in fields:
        if isinstance(field, dict) and field.get("type") == "void":
            raise invalid("A column cannot have the type 'void'.")
        if not isinstance(field, dict) or any(key not in field for key in ("name", "type", "nullable", "metadata")):
            raise invalid("A column must have 'name', 'type', 'nullable' and 'metadata'.")
    return schema_string_of(columns)


def check_domains(protocol: ProtocolAction, domains: Iterable[DomainMetadata]) -> None:
    """Raise Failure for a domain whose feature the protocol does not list."""
    for domain in domains:
        feature = _FEATURES[domain.domain]
        if feature not in (protocol.writer_features or ()):
            raise invalid(f"The domain '{domain.domain}' needs the writer feature '{feature}'.")


def check_unmanaged(protocol: ProtocolAction) -> None:
    """Raise Failure for a table that a catalog manages: only its own catalog names it."""
    if managed_names(protocol):
        raise invalid("A table that a catalog manages cannot be registered.")


def protocol_of(value: Any, *, managed: bool = True) -> ProtocolAction:
    """Return a protocol of the API. If it is `managed`, raises Failure for a protocol that no managed table has."""
    value = members(value, "'protocol'")
    protocol = ProtocolAction(
        min_reader_version=whole(value, "min-reader-version", 1),
        min_writer_version=whole(value, "min-writer-version", 1),
        reader_features=frozenset(texts_in(value, "reader-features", optional=True)),
        writer_features=frozenset(texts_in(value, "writer-features", optional=True)),
    )
    readers, writers = protocol.reader_features or frozenset(), protocol.writer_features or frozenset()
    if extra := sorted(readers - writers):
        raise invalid(f"The reader features {extra} are not among the writer features.")
    if not managed:
        check_unmanaged(protocol)
        return replace(protocol, reader_features=readers or None, writer_features=writers or None)
    if protocol.min_reader_version < 3 or protocol.min_writer_version < 7:
        raise invalid("A managed table has reader version 3 and writer version 7 at least.")
    if Feature.CATALOG_MANAGED not in readers or not {Feature.CATALOG_MANAGED, Feature.IN_COMMIT_TIMESTAMP} <= writers:
        raise invalid("A managed table has the features catalogManaged (reader and writer) and inCommitTimestamp.")
    return protocol


def domains_of(value: Any) -> list[DomainMetadata]:
    """Return the domains of an object of the API. Raises Failure."""
    value = members(value, "The domain metadata")
    if unknown := sorted(value.keys() - set(MIRRORED_DOMAINS)):
        raise invalid(f"The catalog does not keep the domains {unknown}.")
    domains = []
    if value.get(CLUSTERING) is not None:
        columns = listed(members(value[CLUSTERING], f"'{CLUSTERING}'"), "clusteringColumns")
        if not all(isinstance(path, list) and all(isinstance(part, str) for part in path) for path in columns):
            raise invalid("'clusteringColumns' must be a list of lists of texts.")
        domains.append(_domain(CLUSTERING, {"clusteringColumns": columns}))
    if value.get(ROW_TRACKING) is not None:
        mark = whole(members(value[ROW_TRACKING], f"'{ROW_TRACKING}'"), "rowIdHighWaterMark", -1)
        domains.append(_domain(ROW_TRACKING, {"rowIdHighWaterMark": mark}))
    return domains


# ------------------------------------------------------------------------------------------------------- changes
def _change_of(request: Request, description: Description, *, managed: bool = True) -> MetadataChange | None:
    updates = request.updates
    domains: list[DomainMetadata] = []
    if "set-domain-metadata" in updates:
        domains = domains_of(updates["set-domain-metadata"].get("updates"))
        if not domains:
            raise invalid("'set-domain-metadata' sets no domain.")
    if "remove-domain-metadata" in updates:
        domains += _removed(updates["remove-domain-metadata"], {domain.domain for domain in domains})
    protocol = protocol_of(updates[_PROTOCOL].get("protocol"), managed=managed) if _PROTOCOL in updates else None
    metadata = _metadata(updates, description) if updates.keys() & _METADATA else None
    if protocol is None and metadata is None and not domains:
        return None
    return MetadataChange(protocol=protocol, metadata=metadata, domains=tuple(domains))


def _metadata(updates: Mapping[str, Mapping[str, Any]], description: Description) -> Metadata:
    info = description.info
    known = description.metadata or Metadata(id=info.table_id, schema_string=NO_COLUMNS)
    changed = replace(known, configuration=_properties(updates, info))
    if "set-columns" in updates:
        changed = replace(changed, schema_string=columns_in(updates["set-columns"]))
    if "set-partition-columns" in updates:
        columns = texts_in(updates["set-partition-columns"], "partition-columns")
        changed = replace(changed, partition_columns=tuple(columns))
    if "set-table-comment" in updates:
        changed = replace(changed, description=text(updates["set-table-comment"], "comment"))
    check_schema(changed.schema_string, changed.partition_columns)
    return changed


def _properties(updates: Mapping[str, Mapping[str, Any]], info: TableInfo) -> dict[str, str]:
    properties = dict(info.properties)
    to_set = properties_in(updates["set-properties"], "updates") if "set-properties" in updates else {}
    to_remove = texts_in(updates["remove-properties"], "removals") if "remove-properties" in updates else []
    if both := sorted(to_set.keys() & set(to_remove)):
        raise invalid(f"The properties {both} are set and removed at once.")
    if made := sorted(key for key in (*to_set, *to_remove) if is_synthetic(key)):
        raise invalid(f"The properties {made} are made by the catalog; they cannot be set or removed.")
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


def _removed(update: Mapping[str, Any], set_now: set[str]) -> list[DomainMetadata]:
    names = texts_in(update, "domains")
    if unknown := sorted(set(names) - set(MIRRORED_DOMAINS)):
        raise invalid(f"The catalog does not keep the domains {unknown}.")
    if both := sorted(set(names) & set_now):
        raise invalid(f"The domains {both} are set and removed at once.")
    return [DomainMetadata(domain=name, configuration="", removed=True) for name in sorted(set(names))]


def _domain(name: str, configuration: dict[str, Any]) -> DomainMetadata:
    return DomainMetadata(domain=name, configuration=orjson.dumps(configuration).decode())


def _by_kind(values: list[Any], key: str, known: tuple[str, ...], what: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for value in values:
        kind = text(members(value, f"A {what}"), key)
        if kind not in known:
            raise invalid(f"The {what} {kind[:60]!a} is not known; known are {', '.join(known)}.")
        if kind in found:
            raise invalid(f"There are two of the {what} '{kind}'.")
        found[kind] = value
    return found
