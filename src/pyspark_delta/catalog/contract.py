"""The contract of catalogs: what one that manages Delta tables must offer (Catalog Responsibilities; C460, C469-C472).

A catalog resolves names, and is the only one to say which commits of a table count. It stores where a ratified commit
lies, or its content, until the commit is published. What is the same for every catalog - writing staged commits,
finding out about lost answers, publishing - is not here: see `catalog.managed_table` and `commit.catalog`.
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


class CommitKind(Enum):
    """Where a ratified commit can be read; the values are the words that catalogs store."""

    STAGED = "STAGED"  # in `_delta_log/_staged_commits`
    INLINE = "INLINE"  # in the catalog
    PUBLISHED = "PUBLISHED"  # in `_delta_log`


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A commit that a catalog has ratified, and still remembers.

    `timestamp` is its in-commit timestamp. A staged commit has the name of its file (one path segment under
    `_delta_log/_staged_commits`), its size in bytes and its modification time; an inline one its content. Times are
    milliseconds since the epoch. `transaction_id` is its `commitInfo.txnId`, where the catalog remembers it.
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

    `commits` ascend without a gap; unless the question was limited to a range, they end at `latest_version`, or are
    empty if every commit is published. `published_version` is the newest version that the catalog knows to be
    published; None if it does not say.
    """

    latest_version: int
    commits: tuple[RatifiedCommit, ...] = ()
    published_version: int | None = None


class Maintenance(Enum):
    """What nobody may do to a managed table unless its catalog allows it (C478); the values are stored by catalogs."""

    LOG_CLEANUP = "LOG_CLEANUP"
    VACUUM = "VACUUM"
    OPTIMIZE = "OPTIMIZE"


class Access(Enum):
    """What credentials for a table's storage are asked for."""

    READ = "READ"
    READ_WRITE = "READ_WRITE"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """What a catalog says of a table that it resolved by name or id (C482).

    `location` is spelled as in `storage.contract`. `tail` is None for a table that the catalog names and does not
    manage. `etag` changes with the metadata that the catalog keeps; `properties` are the table properties it keeps.
    A commit that changes one of `required_properties` is refused before it is made.
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
    """Where a new table may be written, and what it must be like, before it gets its name (C481).

    Required and suggested features are names of table features; a required property without a value (None) must be
    set, to whatever value. Keys and values of properties have at most `longest_property` characters; None is no limit.
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
    """What a catalog is told of a table that gets its name: protocol and metadata of its version.

    `timestamp` is the in-commit timestamp of that version, in milliseconds since the epoch.
    """

    version: int
    timestamp: int
    protocol: ProtocolAction
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange:
    """What a commit changes of that: the actions in it. Domains that are removed have `removed` set."""

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

    `timestamp` and `transaction_id` are those in its commitInfo. `published_version` tells the catalog up to where
    commits are published, at most `version - 1`. `expected_etag`, where given, must still be the table's.
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
    """The proposal is ratified, now or (`replayed`) by an earlier request that was the same."""

    commit: RatifiedCommit
    replayed: bool = False


class Capability(Enum):
    """What catalogs differ in."""

    STAGED = "staged"  # ratifies staged commits
    INLINE = "inline"  # ratifies inline commits
    PUT_IF_ABSENT = "put-if-absent"  # ratifies and publishes in one step, by put-if-absent in `_delta_log`
    REGISTER = "register"  # takes in tables that are at a path already, without managing them
    MIRROR = "mirror"  # keeps a copy of the metadata of registered tables: `report_change`
    SOFT_DROP = "soft drop"  # a dropped table keeps its files until it is purged


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that was dropped and whose files are still there; `dropped_at` is in milliseconds since the epoch."""

    table_id: str
    name: TableName
    location: str
    dropped_at: int


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A staging table that never got its name; `created_at` is when it was asked for, in ms since the epoch."""

    table_id: str
    name: TableName
    location: str
    created_at: int


class Catalog(Protocol):
    """One catalog. Every failure is a `CatalogError`; thread-safe; names are compared without regard to case.

    Requests that change something are never repeated by a catalog on its own: `CatalogUnavailableError` says that the
    outcome is unknown, and its caller finds out.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this catalog can do."""
        ...

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, catalog: str, schema: str) -> None:
        """Raises CatalogNameExistsError."""
        ...

    def list_schemas(self, catalog: str) -> list[str]:
        """Return the names of the schemas, sorted."""
        ...

    def drop_schema(self, catalog: str, schema: str) -> None:
        """Raises CatalogNameNotFoundError, InvalidProposalError for one with tables."""
        ...

    # --------------------------------------------------------------------------------------------------- tables
    def create_staging_table(self, name: TableName) -> StagingTable:
        """Where the new table may be written. The name stays free until `create_table`.

        Raises CatalogNameNotFoundError for the schema, CatalogNameExistsError for the table.
        """
        ...

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        """Give the table at a staging location its name; its version 0 is published there, and ratified by this.

        Asking again with the same staging table is answered as the first time. Raises CatalogNameExistsError,
        InvalidProposalError.
        """
        ...

    def register_table(self, name: TableName, location: str, described: NewTable | None = None) -> TableInfo:
        """Give a name to a table at a path, which no catalog manages. Raises CatalogNameExistsError.

        `described` is its latest version, for catalogs that keep a copy of it (`MIRROR`).
        """
        ...

    def report_change(self, table: TableInfo, version: int, timestamp: int, change: MetadataChange) -> None:
        """Tell what a commit to a registered table has changed; asked only of catalogs that `MIRROR`.

        `timestamp` is the time of the version, in milliseconds since the epoch. A version that is not newer than what
        the catalog has already changes nothing. Raises TableReplacedError.
        """
        ...

    def load_table(self, name: TableName) -> TableInfo:
        """Resolve a name; with the log tail, in one consistent answer. Raises CatalogNameNotFoundError."""
        ...

    def list_tables(self, catalog: str, schema: str) -> list[TableName]:
        """Return the tables of a schema, sorted. Raises CatalogNameNotFoundError for the schema."""
        ...

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Raises CatalogNameNotFoundError, CatalogNameExistsError, InvalidProposalError for another catalog."""
        ...

    def drop_table(self, name: TableName) -> None:
        """Take the name away; no commit is made (C481). The files stay where the catalog can `SOFT_DROP`."""
        ...

    def dropped_tables(self, before_ms: int) -> list[DroppedTable]:
        """Return the managed tables that were dropped before a time, and are not purged yet; oldest first."""
        ...

    def forget_dropped(self, table_id: str) -> None:
        """The files of a dropped table are gone: forget it. Its id is never given again."""
        ...

    def left_behind(self, before_ms: int) -> list[LeftBehind]:
        """Return the staging tables that were asked for before a time and have no name yet; oldest first.

        Empty if the catalog does not remember staging tables, or cleans up itself.
        """
        ...

    def drop_staging_table(self, table_id: str) -> bool:
        """Let a staging table be a dropped one, so that it never gets a name; False if it got one meanwhile.

        It is among `dropped_tables` from then on, until its files are gone and it is forgotten.
        """
        ...

    # -------------------------------------------------------------------------------------------------- commits
    def ratify(self, table: TableInfo, proposal: Proposal) -> Ratification:
        """Make a proposal the commit of its version: only after the version before, and only once (C469).

        The same proposal again (by file name or transaction id) is a replay, and changes nothing. Raises
        RatificationConflictError with the log tail where the version is another's, TooManyUnpublishedError,
        StaleMetadataError for an etag, TableReplacedError, InvalidProposalError, NotAuthorizedError, and
        CatalogUnavailableError if the outcome is unknown.
        """
        ...

    def log_tail(self, table: TableInfo, start: int | None = None, end: int | None = None) -> LogTail:
        """Return the latest version, and the ratified commits the catalog remembers, of a range (both ends included).

        Raises TableReplacedError if the table is gone.
        """
        ...

    def report_published(self, table: TableInfo, version: int) -> None:
        """Every commit up to a version is published: the catalog may forget them. Known ones are no error.

        Raises InvalidProposalError for what is not ratified, or where the catalog finds no published file.
        """
        ...

    def storage_options(self, table: TableInfo, access: Access) -> Mapping[str, str]:
        """Return options for the table's storage, such as short-lived credentials; empty if one's own have to do."""
        ...

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        """The same, with the time at which credentials among them end; for a staging table too."""
        ...


def _quoted(part: str) -> str:
    return part if part.isidentifier() else "`" + part.replace("`", "``") + "`"
