"""A catalog in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from pyspark_delta.catalog.contract import Access, Capability, StagingTable, TableInfo
from pyspark_delta.catalog.sql.commits import Commits
from pyspark_delta.catalog.sql.database import Database
from pyspark_delta.catalog.sql.names import TableNames
from pyspark_delta.catalog.sql.part import Settings
from pyspark_delta.catalog.sql.tokens import Tokens
from pyspark_delta.errors import CatalogError
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.credentials import Credentials
from pyspark_delta.storage.paths import join


class SqlCatalog(TableNames, Commits):
    """A `Catalog` over a database. Commits are staged files, or small ones inline.

    A database holds any number of catalogs; the first part of a table's name is its catalog.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        super().__init__(database, settings)

    @classmethod
    def connect(
        cls,
        url: str,
        storage_root: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        max_unpublished: int = 10,
        verify_files: bool = True,
    ) -> SqlCatalog:
        """Connect to `sqlite:///file.db` or `postgresql://user@host/database`.

        On PostgreSQL, this creates missing database tables. On SQLite, creating the first schema creates the file;
        until then, reading the catalog raises CatalogError.

        New Delta tables are created below `storage_root`, by default `tables` next to the SQLite file;
        `storage_options` give access to it. A table has at most `max_unpublished` unpublished commits. With
        `verify_files`, the catalog checks that the files in requests exist.

        Raises CatalogError for an invalid URL, and if a `storage_root` is needed but missing; CatalogUnavailableError
        if the database does not answer.
        """
        database = Database.connect(url)
        try:
            root = _root(database, storage_root)
        except CatalogError:
            database.close()
            raise
        settings = Settings(
            storage_root=root,
            storage_options=dict(storage_options or {}),
            max_unpublished=max_unpublished,
            verify_files=verify_files,
        )
        return cls(database, settings)

    def create(self) -> None:
        """Create the SQLite file and missing database tables, as the first schema does. Raises CatalogError."""
        self._database.create()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Staged and inline commits, registering of tables with copies of their metadata, soft drops."""
        kinds = {Capability.STAGED, Capability.INLINE, Capability.REGISTER, Capability.MIRROR, Capability.SOFT_DROP}
        return frozenset(kinds)

    @property
    def tokens(self) -> Tokens:
        """The tokens of users who use this catalog through a server."""
        return Tokens(self._database, self._settings.clock)

    def acting_as(self, principal: str) -> SqlCatalog:
        """Return this catalog for a principal: staging tables are private to it, and commits record it."""
        return SqlCatalog(self._database, replace(self._settings, principal=principal))

    def serving(self) -> SqlCatalog:
        """Return this catalog for a server, whose clients may lack the rights of its process.

        It follows no symbolic links in local tables.
        """
        return SqlCatalog(self._database, replace(self._settings, follow_links=False))

    def storage_options(self, table: TableInfo, access: Access) -> Mapping[str, str]:
        """Return the options that the catalog was connected with."""
        return dict(self._settings.storage_options)

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        """Return the same options; they do not expire."""
        return Credentials(dict(self._settings.storage_options))

    def close(self) -> None:
        """Close idle connections. The catalog opens new ones if it is used again."""
        self._database.close()

    def __repr__(self) -> str:
        return f"SqlCatalog({self._database!r})"


def _root(database: Database, storage_root: str | None) -> str:
    if storage_root is not None:
        return normalize_location(storage_root)
    if database.sqlite_file is None:
        raise CatalogError(
            f"The catalog in {database!r} needs a storage_root: the directory or bucket for new tables, which every "
            "user of the catalog can access."
        )
    return join(os.path.dirname(database.sqlite_file), "tables")
