"""Requests and responses of the Delta API: JSON with hyphens in the names of its members."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from pyspark_delta.server.models import (
    AccessKind,
    HighWaterMark,
    Model,
    Name,
    NewName,
    Positive,
    TableType,
    Uniform,
    Whole,
)


class _Delta(Model, rename="kebab", forbid_unknown_fields=True):
    """An object of the Delta API. Unknown members are refused, as by Unity Catalog (Jackson's default)."""


class _Query(Model, rename="kebab"):
    """The query of a request. Unknown parameters are ignored, as by Unity Catalog."""


# ------------------------------------------------------------------------------------------------- parts of both
class Column(Model):
    """A field of the schema. Its type is a name, or an object that `catalog.unity.type_json` reads."""

    name: str
    type: str | dict[str, Any]
    nullable: bool
    metadata: dict[str, Any]


class Columns(Model):
    """The schema of a table."""

    type: Literal["struct"]
    fields: Annotated[list[Column], Meta(min_length=1)]


class Features(_Delta):
    """The table features of a protocol."""

    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Protocol(Features, kw_only=True):
    """The protocol of a table."""

    min_reader_version: Positive
    min_writer_version: Positive


class Commit(_Delta, omit_defaults=True):
    """A staged commit. Times are milliseconds since the epoch."""

    version: Positive
    timestamp: Positive
    file_name: str
    file_size: Positive
    file_modification_timestamp: Positive
    transaction_id: str | None = None


class Clustering(_Delta, rename="camel"):
    """The configuration of the domain `delta.clustering`."""

    clustering_columns: list[list[str]]


class RowTracking(_Delta, rename="camel"):
    """The configuration of the domain `delta.rowTracking`."""

    row_id_high_water_mark: HighWaterMark


class Domains(_Delta):
    """The metadata domains that the catalog keeps."""

    clustering: Clustering | None = field(name="delta.clustering", default=None)
    row_tracking: RowTracking | None = field(name="delta.rowTracking", default=None)


# ------------------------------------------------------------------------------------------------------- requests
class ConfigQuery(_Query):
    """The catalog, and the versions of the API that the client speaks, separated by commas."""

    catalog: Name
    protocol_versions: str


class CredentialsQuery(_Query):
    """The access that credentials are requested for."""

    operation: AccessKind


class CreateStagingTable(_Delta):
    """Request a location for a new table."""

    name: NewName


class CreateManagedTable(_Delta, tag_field="table-type", tag="MANAGED"):
    """Name a table that was written to its staging location."""

    name: NewName
    location: str
    columns: Columns
    protocol: Protocol
    properties: dict[str, str]
    last_commit_timestamp_ms: Whole
    partition_columns: list[str] | None = None
    comment: str | None = None
    domain_metadata: Domains | None = None
    uniform: Uniform = None


class RegisterTable(_Delta, tag_field="table-type", tag="EXTERNAL"):
    """Register a table at a path. If `columns` are given, the protocol and the time of the commit are required."""

    name: NewName
    location: str
    columns: Columns | None = None
    protocol: Protocol | None = None
    properties: dict[str, str] | None = None
    last_commit_timestamp_ms: Whole | None = None
    partition_columns: list[str] | None = None
    comment: str | None = None
    domain_metadata: Domains | None = None
    uniform: Uniform = None


CreateTable: TypeAlias = CreateManagedTable | RegisterTable


class AssertTableUuid(_Delta, tag_field="type", tag="assert-table-uuid"):
    """The table must have this id."""

    uuid: str


class AssertEtag(_Delta, tag_field="type", tag="assert-etag"):
    """The metadata of the table must not have changed."""

    etag: str


Requirement: TypeAlias = AssertTableUuid | AssertEtag


class _Update(_Delta, tag_field="action"):
    """One change of a table."""


class AddCommit(_Update, tag="add-commit"):
    """Propose a commit."""

    commit: Commit
    uniform: Uniform = None


class SetPublishedVersion(_Update, tag="set-latest-backfilled-version"):
    """Report the version up to which commits are published."""

    latest_published_version: Whole


class SetProperties(_Update, tag="set-properties"):
    """Set properties of the table."""

    updates: dict[str, str]


class RemoveProperties(_Update, tag="remove-properties"):
    """Remove properties of the table."""

    removals: list[str]


class SetColumns(_Update, tag="set-columns"):
    """Replace the schema."""

    columns: Columns


class SetPartitionColumns(_Update, tag="set-partition-columns"):
    """Replace the partition columns."""

    partition_columns: list[str]


class SetTableComment(_Update, tag="set-table-comment"):
    """Replace the description of the table."""

    comment: str


class SetProtocol(_Update, tag="set-protocol"):
    """Replace the protocol."""

    protocol: Protocol


class SetDomains(_Update, tag="set-domain-metadata"):
    """Set metadata domains."""

    updates: Domains


class RemoveDomains(_Update, tag="remove-domain-metadata"):
    """Remove metadata domains."""

    domains: list[Literal["delta.clustering", "delta.rowTracking"]]


class SetSnapshotVersion(_Update, tag="update-metadata-snapshot-version"):
    """Report the version of a registered table that the other updates describe."""

    last_commit_version: Whole
    last_commit_timestamp_ms: Whole


Update: TypeAlias = (
    AddCommit
    | SetPublishedVersion
    | SetProperties
    | RemoveProperties
    | SetColumns
    | SetPartitionColumns
    | SetTableComment
    | SetProtocol
    | SetDomains
    | RemoveDomains
    | SetSnapshotVersion
)


class UpdateTable(_Delta):
    """Change a table: requirements that must be met, and updates."""

    requirements: Annotated[list[Requirement], Meta(min_length=1)]
    updates: Annotated[list[Update], Meta(min_length=1)]


class RenameTable(_Delta):
    """Rename a table within its schema."""

    new_name: NewName


class Metrics(_Delta):
    """Metrics of a commit."""

    table_id: str
    report: dict[str, Any] | None = None


# ------------------------------------------------------------------------------------------------------ responses
class Config(_Delta):
    """The operations and the API version of the server."""

    endpoints: list[str]
    protocol_version: str


class Credential(_Delta):
    """Credentials for a location; `expiration_time_ms` is None if they do not expire, or there are none."""

    prefix: str
    operation: AccessKind
    config: dict[str, str]
    expiration_time_ms: Whole | None


class Credentials(_Delta):
    """Credentials for the storage of a table."""

    storage_credentials: list[Credential]


class StagingTable(Credentials):
    """A location for a new table, and the protocol and properties that the table needs."""

    table_id: str
    location: str
    required_protocol: Protocol
    suggested_protocol: Features
    required_properties: dict[str, str | None]
    suggested_properties: dict[str, str | None]
    table_type: Literal["MANAGED"] = "MANAGED"


class TableMetadata(_Delta):
    """The metadata of a table. Times are milliseconds since the epoch."""

    etag: str
    table_type: TableType
    table_uuid: str
    location: str
    created_time: Whole
    updated_time: Whole
    columns: dict[str, Any]
    partition_columns: list[str]
    properties: dict[str, str]


class Table(_Delta):
    """A table, and its commits that are not published, newest first.

    A registered table has no `latest_table_version`.
    """

    metadata: TableMetadata
    commits: list[Commit]
    latest_table_version: Whole | UnsetType = UNSET


class ErrorDetails(_Delta):
    """Why a request failed."""

    message: str
    type: str
    code: int


class Error(_Delta):
    """The response to a request that failed."""

    error: ErrorDetails
