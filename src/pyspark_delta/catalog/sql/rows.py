"""Rows of the catalog's tables as values of the contract, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, select

from pyspark_delta.actions.decode import Fields, decode_metadata, decode_protocol
from pyspark_delta.actions.encode import metadata_to_json, protocol_to_json
from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import (
    CommitKind,
    LogTail,
    Maintenance,
    MetadataChange,
    RatifiedCommit,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.sql.tables import ACTIVE, commits, tables

_LARGEST = 2**63 - 1
_COMMIT_COLUMNS = tuple(
    commits.c[name].label(f"commit_{name}")
    for name in ("version", "kind", "timestamp", "file_name", "size", "modification_time", "content", "transaction_id")
)
_INFO_COLUMNS = tuple(
    tables.c[name]
    for name in (
        "table_id",
        "catalog",
        "schema_name",
        "name",
        "location",
        "state",
        "managed",
        "allowed_maintenance",
        "latest_version",
        "latest_timestamp",
        "published_version",
        "metadata_number",
        "properties",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """All that the catalog stores of a table. `protocol` and `metadata` are None for a table registered without them.

    Times are milliseconds since the epoch. `timestamp` is that of the latest version that the catalog knows, if any.
    """

    info: TableInfo
    protocol: ProtocolAction | None
    metadata: Metadata | None
    domains: tuple[DomainMetadata, ...]
    created_by: str
    created_at: int
    updated_at: int
    timestamp: int | None


# ------------------------------------------------------------------------------------------------------- reading
def unpublished(start: int | None = None, end: int | None = None) -> ColumnElement[bool]:
    """Return the condition that joins tables with their unpublished commits of a range (both ends included)."""
    conditions = [commits.c.table_id == tables.c.table_id, commits.c.version > tables.c.published_version]
    if start is not None:
        conditions.append(commits.c.version >= max(min(start, _LARGEST), 0))
    if end is not None:
        conditions.append(commits.c.version <= max(min(end, _LARGEST), 0))
    return and_(*conditions)


def select_tables(
    condition: ColumnElement[bool], joined: ColumnElement[bool], more: Iterable[ColumnElement[Any]] = ()
) -> Select[Any]:
    """Return a query of tables with a name and their commits: one row per commit, at least one per table."""
    return (
        select(*_INFO_COLUMNS, *more, *_COMMIT_COLUMNS)
        .select_from(tables.outerjoin(commits, joined))
        .where(tables.c.state == ACTIVE, condition)
        .order_by(commits.c.version)
    )


def info_of(rows: Sequence[Row[Any]]) -> TableInfo:
    """Return the table of the rows of `select_tables` for one table."""
    first = rows[0]
    allowed = frozenset(Maintenance(word) for word in first.allowed_maintenance.split())
    return TableInfo(
        table_id=first.table_id,
        name=TableName(first.catalog, first.schema_name, first.name),
        location=first.location,
        etag=etag_of(first.metadata_number),
        tail=tail_of(rows) if first.managed else None,
        properties=json.loads(first.properties or "{}"),
        allowed_maintenance=allowed,
    )


def tail_of(rows: Sequence[Row[Any]]) -> LogTail:
    """Return the log tail of the rows of `select_tables` for one table."""
    first = rows[0]
    found = tuple(commit_of(row) for row in rows if row.commit_version is not None)
    return LogTail(first.latest_version, found, first.published_version)


def commit_of(row: Row[Any]) -> RatifiedCommit:
    """Return the commit of a row of `select_tables`."""
    return RatifiedCommit(
        version=row.commit_version,
        kind=CommitKind(row.commit_kind),
        timestamp=row.commit_timestamp,
        file_name=row.commit_file_name,
        size=row.commit_size,
        modification_time=row.commit_modification_time,
        content=row.commit_content,
        transaction_id=row.commit_transaction_id,
    )


DESCRIPTION_COLUMNS = (
    tables.c.protocol,
    tables.c.metadata,
    tables.c.domains,
    tables.c.created_by,
    tables.c.created_ms,
    tables.c.updated_ms,
)
"""The additional columns for `description_of`."""


def description_of(rows: Sequence[Row[Any]]) -> TableDescription:
    """Return the table of the rows of `select_tables` with `DESCRIPTION_COLUMNS`."""
    first, info = rows[0], info_of(rows)
    metadata = None
    if first.metadata is not None:
        metadata = decode_metadata(Fields(json.loads(first.metadata), "metadata", info.location))
        metadata = replace(metadata, configuration=dict(info.properties))
    return TableDescription(
        info=info,
        protocol=None
        if first.protocol is None
        else decode_protocol(Fields(json.loads(first.protocol), "protocol", info.location)),
        metadata=metadata,
        domains=tuple(
            DomainMetadata(domain=domain, configuration=configuration)
            for domain, configuration in sorted(json.loads(first.domains or "{}").items())
        ),
        created_by=first.created_by,
        created_at=first.created_ms,
        updated_at=first.updated_ms,
        timestamp=first.latest_timestamp,
    )


# ------------------------------------------------------------------------------------------------------- writing
def etag_of(metadata_number: int) -> str:
    """Return the etag of the metadata with a number."""
    return f"etag-{metadata_number}"


def metadata_number_of(etag: str) -> int:
    """Return the number in an etag; -1, which no metadata has, for text that is not an etag."""
    digits = etag.removeprefix("etag-")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else -1


def protocol_value(protocol: ProtocolAction) -> dict[str, Any]:
    """Return the columns for a protocol."""
    return {"protocol": json.dumps(protocol_to_json(protocol))}


def metadata_values(metadata: Metadata) -> dict[str, Any]:
    """Return the columns for metadata. The properties have their own, because they are read more often."""
    return {
        "metadata": json.dumps(metadata_to_json(replace(metadata, configuration={}))),
        "properties": json.dumps(dict(metadata.configuration)),
    }


def domains_value(known: str | None, domains: Iterable[DomainMetadata]) -> dict[str, Any]:
    """Return the column for domains: its current value `known`, updated with `domains`."""
    merged: dict[str, str] = json.loads(known or "{}")
    for domain in domains:
        if domain.removed:
            merged.pop(domain.domain, None)
        else:
            merged[domain.domain] = domain.configuration
    return {"domains": json.dumps(merged)}


def change_values(domains: str | None, change: MetadataChange) -> dict[str, Any]:
    """Return the columns for what a commit changes; `domains` is the current value of the column."""
    values: dict[str, Any] = {}
    if change.protocol is not None:
        values |= protocol_value(change.protocol)
    if change.metadata is not None:
        values |= metadata_values(change.metadata)
    if change.domains:
        values |= domains_value(domains, change.domains)
    return values


def commit_values(table_id: str, commit: RatifiedCommit, principal: str, now: int) -> Mapping[str, Any]:
    """Return the row of a commit."""
    return {
        "table_id": table_id,
        "version": commit.version,
        "kind": commit.kind.value,
        "timestamp": commit.timestamp,
        "file_name": commit.file_name,
        "size": commit.size,
        "modification_time": commit.modification_time,
        "content": commit.content,
        "transaction_id": commit.transaction_id,
        "principal": principal,
        "committed_ms": now,
    }
