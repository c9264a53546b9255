"""The catalog that a server serves, which extends the contract of catalogs; the settings of the server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, Self

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.actions.model import Protocol as ProtocolAction
from pyspark_delta.catalog.contract import Catalog, StagingTable, TableInfo, TableName
from pyspark_delta.storage.contract import TableFiles


class Description(Protocol):
    """All that a catalog stores of a table. Times are milliseconds since the epoch."""

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
    """A catalog that also describes tables completely and acts for principals."""

    def serving(self) -> Self:
        """Return the catalog for use by a server.

        It follows no symbolic links in local tables, because clients may have made them.
        """
        ...

    def table_store(self, location: str) -> TableFiles:
        """Return the store for the files of the table at a location."""
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
        """Return the table with an id. Raises TableReplacedError."""
        ...

    def load_staging_table(self, table_id: str) -> StagingTable:
        """Return the staging table with an id. Raises InvalidProposalError, NotAuthorizedError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of the server.

    With `replay_is_conflict`, the replay of a commit is a conflict, as in Unity Catalog up to 0.5.1. The body of a
    request has at most `max_body_bytes` and must arrive within `body_seconds`. There are at most `max_connections`
    connections; `connections.limited_protocol` explains `header_seconds` and `request_seconds`. `threads` is the number
    of threads that execute requests; a caller uses at most half of them, and a request that waits for a thread longer
    than `wait_seconds` is refused. With `vend_credentials`, clients get credentials for the storage of tables if the
    catalog has credentials that expire; those that it was connected with are never given to clients. Staging tables
    without a name are removed after `clean_after`; None keeps them.
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
