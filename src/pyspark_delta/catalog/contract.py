"""The contract of catalogs that manage Delta tables (Catalog Responsibilities; C460, C469-C472).

A catalog resolves names, and it alone decides which commits of a table count. It stores the location of a ratified
commit, or its content, until the commit is published. Code that is the same for every catalog - writing staged commits,
determining the outcome of a commit after a lost response, publishing - is in `catalog.managed_table` and
`commit.catalog`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.storage.credentials import Credentials


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """The three parts of a name, without quotes."""

    catalog: str
    schema: str
    name: str

    def __str__(self) -> str:
        return ".".join(_quoted(part) for part in (self.catalog, self.schema, self.name))

    @property
    def unquoted(self) -> str:
        """The name as DESCRIBE DETAIL shows it."""
        return ".".join((self.catalog, self.schema, self.name))


class CommitKind(Enum):
    """Where the content of a ratified commit is. Catalogs store the values."""

    STAGED = "STAGED"  # in `_delta_log/_staged_commits`
    INLINE = "INLINE"  # in the catalog
    PUBLISHED = "PUBLISHED"  # in `_delta_log`


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A commit that a catalog has ratified and still remembers.

    `timestamp` is its in-commit timestamp. A staged commit has the name of its file (one path segment under
    `_delta_log/_staged_commits`), its size in bytes and its modification time; an inline one has its content. Times are
    milliseconds since the epoch. `transaction_id` is its `commitInfo.txnId`, if the catalog remembers it.
    """

    version: int
    kind: CommitKind
    timestamp: int
    file_name: str | None = None
    size: int = 0
    modification_time: int = 0
    content: bytes | None = field(default=None, repr=False)
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True)
class LogTail:
    """The newest ratified version, and the ratified commits that the catalog remembers of a table (C472, C483).

    `commits` are consecutive, in ascending order. Unless the request was limited to a range, they end at
    `latest_version`, or are empty if every commit is published. `published_version` is the newest version that the
    catalog knows to be published; None if the catalog does not state it.
    """

    latest_version: int
    commits: tuple[RatifiedCommit, ...] = ()
    published_version: int | None = None


class Maintenance(Enum):
    """Operations on a managed table that its catalog must allow (C478). Catalogs store the values."""

    LOG_CLEANUP = "LOG_CLEANUP"
    VACUUM = "VACUUM"
    OPTIMIZE = "OPTIMIZE"


class Access(Enum):
    """The access that credentials for a table's storage give."""

    READ = "READ"
    READ_WRITE = "READ_WRITE"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table that a catalog resolved by name or id (C482).

    `location` is spelled as in `storage.contract`. `tail` is None if the catalog names the table but does not
    manage it. `etag` changes with the metadata that the catalog keeps; `properties` are the table properties it keeps.
    Clients refuse to make a commit that changes one of `required_properties`.
    """

    table_id: str
    name: TableName
    location: str
    etag: str = ""
    tail: LogTail | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    required_properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    allowed_maintenance: frozenset[Maintenance] = frozenset()

    @property
    def catalog_managed(self) -> bool:
        """True if the catalog decides which commits count."""
        return self.tail is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingTable:
    """The location and the requirements of a new table before it gets its name (C481).

    Required and suggested features are names of table features; a required property without a value (None) must be set
    to any value. Keys and values of properties have at most `longest_property` characters; None means no limit.
    """

    table_id: str
    name: TableName
    location: str
    required_features: frozenset[str] = frozenset()
    suggested_features: frozenset[str] = frozenset()
    required_properties: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    suggested_properties: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    longest_property: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """The description of a table that gets a name: one version, with its protocol, metadata and domains.

    `timestamp` is the in-commit timestamp of this version, in milliseconds since the epoch.
    """

    version: int
    timestamp: int
    protocol: ProtocolAction
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange:
    """The changes of a commit to protocol, metadata and domains; None for what it does not change.

    Removed domains have `removed` set.
    """

    protocol: ProtocolAction | None = None
    metadata: Metadata | None = None
    domains: tuple[DomainMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A commit file under `_delta_log/_staged_commits`: name, size in bytes, modification time in ms."""

    name: str
    size: int
    modification_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A commit that is proposed for a version: either staged (`file`) or inline (`content`).

    `timestamp` and `transaction_id` are those in its commitInfo. `published_version` is the version up to which commits
    are published, at most `version - 1`. `expected_etag`, if given, must still be the table's.
    """

    version: int
    timestamp: int
    transaction_id: str
    file: StagedFile | None = None
    content: bytes | None = field(default=None, repr=False)
    change: MetadataChange | None = None
    published_version: int | None = None
    expected_etag: str | None = None


@dataclass(frozen=True, slots=True)
class Ratification:
    """The ratified commit; `replayed` is True if an earlier identical request had ratified it."""

    commit: RatifiedCommit
    replayed: bool = False


class Capability(Enum):
    """What a catalog supports."""

    STAGED = "staged"  # ratifies staged commits
    INLINE = "inline"  # ratifies inline commits
    PUT_IF_ABSENT = "put-if-absent"  # ratifies and publishes in one step, by put-if-absent in `_delta_log`
    REGISTER = "register"  # names existing tables at any path, without managing them
    MIRROR = "mirror"  # keeps a copy of the metadata of registered tables: `report_change`
    SOFT_DROP = "soft drop"  # keeps the files of a dropped table until it is purged


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that was dropped and whose files are still there; `dropped_at` is in milliseconds since the epoch."""

    table_id: str
    name: TableName
    location: str
    dropped_at: int


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A staging table that never got its name; `created_at` is the time of the request, in ms since the epoch."""

    table_id: str
    name: TableName
    location: str
    created_at: int


class Catalog(Protocol):
    """A catalog. It is thread-safe; names are case-insensitive; every failure is a `CatalogError`.

    A catalog never repeats a request that changes something. If the outcome is unknown, it raises
    CatalogUnavailableError, and the caller determines the outcome.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of this catalog."""
        ...

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, catalog: str, schema: str) -> None:
        """Create a schema. Raises CatalogNameExistsError."""
        ...

    def list_schemas(self, catalog: str) -> list[str]:
        """Return the names of the schemas, sorted."""
        ...

    def drop_schema(self, catalog: str, schema: str) -> None:
        """Drop a schema. Raises CatalogNameNotFoundError, and InvalidProposalError for a schema with tables."""
        ...

    # --------------------------------------------------------------------------------------------------- tables
    def create_staging_table(self, name: TableName) -> StagingTable:
        """Return the location for a new table. The name stays free until `create_table`.

        Raises CatalogNameNotFoundError for the schema, CatalogNameExistsError for the table.
        """
        ...

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        """Give the table at a staging location its name. This ratifies its version 0, which is published there.

        A repeated request with the same staging table has the same result. Raises CatalogNameExistsError,
        InvalidProposalError.
        """
        ...

    def register_table(self, name: TableName, location: str, described: NewTable | None = None) -> TableInfo:
        """Give a name to a table at a path; no catalog manages this table. Raises CatalogNameExistsError.

        `described` is its latest version, for catalogs that keep a copy of its metadata (`MIRROR`).
        """
        ...

    def report_change(self, table: TableInfo, version: int, timestamp: int, change: MetadataChange) -> None:
        """Report what a commit to a registered table has changed; only for catalogs that `MIRROR`.

        `timestamp` is the time of the version, in milliseconds since the epoch. Does nothing if the catalog
        knows this version or a newer one. Raises TableReplacedError.
        """
        ...

    def load_table(self, name: TableName) -> TableInfo:
        """Resolve a name, with the log tail, in one consistent response. Raises CatalogNameNotFoundError."""
        ...

    def list_tables(self, catalog: str, schema: str) -> list[TableName]:
        """Return the tables of a schema, sorted. Raises CatalogNameNotFoundError for the schema."""
        ...

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Rename a table.

        Raises CatalogNameNotFoundError, CatalogNameExistsError, and InvalidProposalError for another catalog.
        """
        ...

    def drop_table(self, name: TableName) -> None:
        """Remove the name of a table without a commit (C481). The files stay if the catalog can `SOFT_DROP`."""
        ...

    def dropped_tables(self, before_ms: int) -> list[DroppedTable]:
        """Return the managed tables dropped before a time and not yet purged; oldest first."""
        ...

    def forget_dropped(self, table_id: str) -> None:
        """Forget a dropped table whose files are deleted. Its id is never used again."""
        ...

    def left_behind(self, before_ms: int) -> list[LeftBehind]:
        """Return the staging tables that were requested before a time and have no name yet; oldest first.

        Empty if the catalog does not remember staging tables, or removes them itself.
        """
        ...

    def drop_staging_table(self, table_id: str) -> bool:
        """Drop a staging table, so that it never gets a name; return False if it has received one.

        It is among `dropped_tables` until its files are deleted and it is forgotten.
        """
        ...

    # -------------------------------------------------------------------------------------------------- commits
    def ratify(self, table: TableInfo, proposal: Proposal) -> Ratification:
        """Make a proposal the commit of its version. Versions are consecutive, and each is ratified once (C469).

        The same proposal again (same file name or transaction id) is a replay, and changes nothing. Raises
        RatificationConflictError with the log tail if the version has another commit, StaleMetadataError if the etag
        has changed, TooManyUnpublishedError, TableReplacedError, InvalidProposalError, NotAuthorizedError, and
        CatalogUnavailableError if the outcome is unknown.
        """
        ...

    def log_tail(self, table: TableInfo, start: int | None = None, end: int | None = None) -> LogTail:
        """Return the latest version, and the remembered ratified commits of a range (both ends included).

        Raises TableReplacedError if the table no longer exists.
        """
        ...

    def report_published(self, table: TableInfo, version: int) -> None:
        """Report that every commit up to a version is published. The catalog may then forget these commits.

        Reporting a version again does nothing. Raises InvalidProposalError if a commit is not ratified, or if the
        catalog does not find its published file.
        """
        ...

    def storage_options(self, table: TableInfo, access: Access) -> Mapping[str, str]:
        """Return options for the table's storage, such as short-lived credentials.

        Empty if the user's own options must be used.
        """
        ...

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        """Return the storage options of a table or staging table, and the time when credentials among them expire."""
        ...


def _quoted(part: str) -> str:
    return part if part.isidentifier() else "`" + part.replace("`", "``") + "`"
