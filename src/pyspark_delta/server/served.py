"""What the server needs from its catalog in addition to the contract of catalogs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, Self

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import Catalog, StagingTable, TableInfo, TableName
from pyspark_delta.storage.contract import TableFiles


class Description(Protocol):
    """The complete description of a table in a catalog. Times are milliseconds since the epoch."""

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
    """A catalog that can describe tables completely, as the API does."""

    def serving(self) -> Self:
        """Return the catalog for use by a server.

        It follows no links in local tables, which clients may have made.
        """
        ...

    def table_store(self, location: str) -> TableFiles:
        """Return the files of the table at a location."""
        ...

    def acting_as(self, principal: str) -> Self:
        """Return the catalog as a principal sees it."""
        ...

    def create_catalog(self, catalog: str) -> None:
        """Create a catalog. Raises CatalogNameExistsError."""
        ...

    def drop_catalog(self, catalog: str) -> None:
        """Drop a catalog. Raises CatalogNameNotFoundError, and InvalidProposalError for a catalog with schemas."""
        ...

    def list_catalogs(self) -> list[str]:
        """Return the names of the catalogs, sorted."""
        ...

    def describe_table(self, name: TableName) -> Description:
        """Return the complete description of a table. Raises CatalogNameNotFoundError."""
        ...

    def load_table_by_id(self, table_id: str) -> TableInfo:
        """Return the table of an id. Raises TableReplacedError."""
        ...

    def load_staging_table(self, table_id: str) -> StagingTable:
        """Return the staging table of an id. Raises InvalidProposalError, NotAuthorizedError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of the server.

    With `replay_is_conflict`, a commit that was ratified before is a conflict, as in Unity Catalog up to 0.5.1. Bodies
    of requests have at most `max_body_bytes`, and must arrive within `body_seconds`. There are at most
    `max_connections`; see `connections.limited_protocol` for `header_seconds` and `request_seconds`. `threads` run the
    work; a caller uses at most half of them, and a request that waits longer than `wait_seconds` for one is refused.
    With `vend_credentials` clients get credentials for the storage of tables, if the catalog has some that expire;
    those that it was connected with are never given. Staging tables without a name are removed after `clean_after`;
    None keeps them.
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
