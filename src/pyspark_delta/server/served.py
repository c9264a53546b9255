"""What the server asks of the catalog that it serves, besides the contract of catalogs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, Self

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import Catalog, StagingTable, TableInfo, TableName
from pyspark_delta.storage.contract import TableFiles


class Description(Protocol):
    """All that a catalog keeps of a table. Times are milliseconds since the epoch."""

    @property
    def info(self) -> TableInfo: ...
    @property
    def protocol(self) -> ProtocolAction | None: ...
    @property
    def metadata(self) -> Metadata | None: ...
    @property
    def domains(self) -> tuple[DomainMetadata, ...]: ...
    @property
    def created_at(self) -> int: ...
    @property
    def updated_at(self) -> int: ...


class ServedCatalog(Catalog, Protocol):
    """A catalog that can say everything that the API tells of tables."""

    def serving(self) -> Self:
        """Return the catalog as a server uses it: links in local tables, which its clients may have made, are not followed."""
        ...

    def table_store(self, location: str) -> TableFiles:
        """Return the files of the table at a location."""
        ...

    def acting_as(self, principal: str) -> Self:
        """Return the catalog as a principal sees it."""
        ...

    def create_catalog(self, catalog: str) -> None:
        """Raises CatalogNameExistsError."""
        ...

    def drop_catalog(self, catalog: str) -> None:
        """Raises CatalogNameNotFoundError, InvalidProposalError for one with schemas."""
        ...

    def list_catalogs(self) -> list[str]:
        """Return the names of the catalogs, sorted."""
        ...

    def describe_table(self, name: TableName) -> Description:
        """Return all of a table. Raises CatalogNameNotFoundError."""
        ...

    def load_table_by_id(self, table_id: str) -> TableInfo:
        """Return the table of an id. Raises TableReplacedError."""
        ...

    def load_staging_table(self, table_id: str) -> StagingTable:
        """Return the staging table of an id. Raises InvalidProposalError, NotAuthorizedError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How the server behaves.

    `replay_is_conflict` answers a commit that was ratified before with a conflict, as Unity Catalog did up to 0.5.1.
    Bodies of requests have at most `max_body_bytes`, and come within `body_seconds`. There are at most
    `max_connections`; see `connections.limited_protocol` for `header_seconds` and `request_seconds`. Work is done by
    `threads`, of which one caller has at most half; a request that waits longer than `wait_seconds` for one is refused.
    With `vend_credentials` clients get credentials for the storage of tables, if the catalog has such that end; those
    that it was connected with are never given. Staging tables that have no name `clean_after` that long are removed;
    None leaves them.
    """

    replay_is_conflict: bool = False
    max_body_bytes: int = 4 * 1024 * 1024
    body_seconds: float = 30.0
    header_seconds: float = 10.0
    request_seconds: float = 300.0
    max_connections: int = 1000
    threads: int = 40
    wait_seconds: float = 10.0
    vend_credentials: bool = False
    clean_after: timedelta | None = None
