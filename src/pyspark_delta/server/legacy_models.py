"""Requests and responses of Unity Catalog's own endpoints: catalogs, schemas, and tables before the Delta API."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from pyspark_delta.server.models import AccessKind, Model, Name, NewName, Positive, TableType, Uniform, Whole


# ------------------------------------------------------------------------------------------- catalogs and schemas
class PageQuery(Model):
    """A page of a list. If `max_results` is 0, the server chooses the size."""

    max_results: Annotated[int, Meta(ge=0, le=999_999_999)] = 0
    page_token: str = ""


class SchemasQuery(PageQuery, kw_only=True):
    """The schemas to list."""

    catalog_name: Name


class TablesQuery(SchemasQuery, kw_only=True):
    """The tables to list."""

    schema_name: Name


class DropQuery(Model):
    """The query of a drop. `force` is ignored: only empty schemas are dropped."""

    force: str = ""


class CreateCatalog(Model):
    """Create a catalog."""

    name: NewName


class Catalog(Model):
    """A catalog."""

    name: str
    comment: str | None
    properties: dict[str, str]


class CreateSchema(Model):
    """Create a schema."""

    name: NewName
    catalog_name: Name


class Schema(Model):
    """A schema."""

    name: str
    catalog_name: str
    full_name: str
    comment: str | None
    properties: dict[str, str]


class _Page(Model):
    next_page_token: str | None


class Catalogs(_Page):
    """A page of catalogs."""

    catalogs: list[Catalog]


class Schemas(_Page):
    """A page of schemas."""

    schemas: list[Schema]


# --------------------------------------------------------------------------------------------------------- tables
class LegacyColumn(Model):
    """The members of a column (`ColumnInfo`) that `catalog.unity.column_info` reads."""

    name: str
    type_json: str
    position: Annotated[int, Meta(ge=0)] | None = None
    nullable: bool | None = None
    partition_index: Annotated[int, Meta(ge=0)] | None = None


class CreateLegacyStagingTable(CreateSchema):
    """Request a location for a new table."""

    schema_name: Name


class LegacyStagingTable(Model):
    """A location for a new table."""

    name: str
    catalog_name: str
    schema_name: str
    id: str
    staging_location: str


class CreateLegacyManagedTable(CreateLegacyStagingTable, tag_field="table_type", tag="MANAGED"):
    """Name a table that was written to its staging location."""

    data_source_format: Literal["DELTA"]
    storage_location: str
    properties: dict[str, str] | None = None


class RegisterLegacyTable(CreateLegacyStagingTable, tag_field="table_type", tag="EXTERNAL"):
    """Register a table at a path. If `columns` are given, the catalog stores a description of the table."""

    data_source_format: Literal["DELTA"]
    storage_location: str
    columns: list[LegacyColumn] | None = None
    properties: dict[str, str] | None = None
    comment: str | None = None


CreateLegacyTable: TypeAlias = CreateLegacyManagedTable | RegisterLegacyTable


class LegacyTable(Model):
    """A table (`TableInfo`). Times are milliseconds since the epoch."""

    name: str
    catalog_name: str
    schema_name: str
    table_type: TableType
    columns: list[dict[str, Any]]
    storage_location: str
    properties: dict[str, str]
    created_at: Whole
    updated_at: Whole
    table_id: str
    data_source_format: Literal["DELTA"] = "DELTA"
    comment: str | UnsetType = UNSET


class LegacyTables(_Page):
    """A page of tables."""

    tables: list[LegacyTable]


# -------------------------------------------------------------------------------------------------------- commits
class LegacyCommit(Model):
    """A staged commit. Times are milliseconds since the epoch."""

    version: Positive
    timestamp: Positive
    file_name: str
    file_size: Positive
    file_modification_timestamp: Positive


class _Address(Model):
    """A table by its id. `table_uri` must be its location."""

    table_id: str
    table_uri: str


class GetLegacyCommits(_Address):
    """Request the unpublished commits of a range of versions, both ends included."""

    start_version: Whole
    end_version: Whole | None = None


class LegacyCommits(Model):
    """Unpublished commits, and the latest version."""

    commits: list[LegacyCommit]
    latest_table_version: Whole


class LegacyProperties(Model):
    """The properties of a table after a commit."""

    properties: dict[str, str] | None = None


class LegacySchema(Model):
    """The schema of a table after a commit."""

    columns: list[LegacyColumn]


class LegacyMetadata(Model):
    """The changes of metadata by a commit."""

    description: str | None = None
    properties: LegacyProperties | None = None
    schema: LegacySchema | None = None


class CommitLegacyTable(_Address):
    """Propose a commit, or report the version up to which commits are published."""

    commit_info: LegacyCommit | None = None
    latest_backfilled_version: Whole | None = None
    metadata: LegacyMetadata | None = None
    uniform: Uniform = None


# ---------------------------------------------------------------------------------------------------- credentials
class LegacyCredentialsRequest(Model):
    """Request credentials for the storage of a table."""

    table_id: str
    operation: AccessKind


class LegacyCredentials(Model):
    """Credentials for the storage of a table; None for the kinds that it does not need."""

    aws_temp_credentials: dict[str, str] | None
    azure_user_delegation_sas: dict[str, str] | None
    gcp_oauth_token: dict[str, str] | None
    expiration_time: Whole | None
    url: str


class LegacyError(Model):
    """The response to a request that failed."""

    error_code: str
    message: str
    details: list[str]
