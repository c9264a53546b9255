"""The catalogs that a process is connected to, for users: schemas, and tables by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from os import PathLike

from pyspark_delta.catalog import connections
from pyspark_delta.catalog.cleaning import remove_left_behind
from pyspark_delta.catalog.contract import Catalog, LeftBehind, NewTable, TableInfo, TableName
from pyspark_delta.catalog.filesystem import FilesystemCatalog
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.catalog.names import load_table, parse_table_name
from pyspark_delta.commit.repair import Repair, repair_table
from pyspark_delta.errors import CatalogNameExistsError, InvalidOperationError, InvalidOptionError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import normalize_location, store_for
from pyspark_delta.table import Table

_DAY = timedelta(days=1)


class DeltaCatalog:
    """A catalog under the name by which this process is connected to it.

    Names of tables are `schema.table`, or `catalog.schema.table` with the name of this catalog.

    >>> catalog = connect_catalog("sqlite:///warehouse.db")      # doctest: +SKIP
    >>> catalog.create_schema("sales")                           # doctest: +SKIP
    >>> catalog.table("sales.orders").scan().to_arrow()          # doctest: +SKIP
    """

    def __init__(self, name: str, catalog: Catalog) -> None:
        self.name = name
        self.catalog = catalog

    def __repr__(self) -> str:
        return f"DeltaCatalog({self.name!r}, {self.catalog!r})"

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, schema: str, *, if_not_exists: bool = False) -> None:
        """Create a schema. Raises CatalogNameExistsError, unless `if_not_exists`."""
        try:
            self.catalog.create_schema(self.name, schema)
        except CatalogNameExistsError:
            if not if_not_exists:
                raise

    def schemas(self) -> list[str]:
        """Return the names of the schemas."""
        return self.catalog.list_schemas(self.name)

    def drop_schema(self, schema: str) -> None:
        """Drop a schema without tables. Raises CatalogNameNotFoundError, InvalidProposalError for one with tables."""
        self.catalog.drop_schema(self.name, schema)

    # --------------------------------------------------------------------------------------------------- tables
    def tables(self, schema: str) -> list[str]:
        """Return the full names of the tables of a schema. Raises CatalogNameNotFoundError."""
        return [str(name) for name in self.catalog.list_tables(self.name, schema)]

    def table(self, name: str, *, version: int | None = None, timestamp: str | datetime | int | None = None) -> Table:
        """Open a table, without Spark; arguments and errors as in `Table.open`, and CatalogNameNotFoundError."""
        return Table.for_name(str(self._name(name)), version=version, timestamp=timestamp)

    def register(self, name: str, location: str | PathLike[str]) -> None:
        """Register a table at a path that no catalog manages; it stays unmanaged. Raises CatalogNameExistsError.

        The catalog stores its columns, properties and protocol, and is updated by commits that access the table by its
        name.

        Raises TableNotFoundError if there is no table, and PathAccessError for one that a catalog manages.
        """
        table = Table.open(location)
        self.catalog.register_table(self._name(name), table.location, _described(table.snapshot))

    def rename(self, name: str, new: str) -> None:
        """Rename a table. Raises CatalogNameNotFoundError, CatalogNameExistsError."""
        self.catalog.rename_table(self._name(name), self._name(new))

    def drop(self, name: str) -> None:
        """Drop a table. The catalog may keep its files until `purge` (C481)."""
        self.catalog.drop_table(self._name(name))

    def purge(self, older_than: timedelta = 7 * _DAY) -> list[str]:
        """Delete the files of managed tables that were dropped longer ago than that; return their names.

        A file-based catalog deletes only files below its storage root, whatever its own entries name. An interrupted
        purge can be repeated. It cannot be undone.
        """
        purged = []
        for table in self.catalog.dropped_tables(_now() - older_than // timedelta(milliseconds=1)):
            location = normalize_location(table.location)
            store_for(location, self.storage_options).delete_directory(location)
            self.catalog.forget_dropped(table.table_id)
            clear_cache(location)
            purged.append(str(table.name))
        if isinstance(self.catalog, FilesystemCatalog):
            self.catalog.remove_leftovers()
        return purged

    def clean(self, older_than: timedelta = 7 * _DAY, *, apply: bool = False) -> list[LeftBehind]:
        """Return the tables whose creation began longer ago than that and never finished; with `apply`, remove them.

        Data written to them is deleted. A file-based catalog does not record such tables, and a server cleans
        up itself: the result is then empty.
        """
        before = _now() - older_than // timedelta(milliseconds=1)
        if apply:
            return remove_left_behind(self.catalog, before)
        return self.catalog.left_behind(before)

    def publish(self, name: str) -> int | None:
        """Publish the commits of a managed table that only the catalog has; return the newest published version.

        Commits are published automatically; this is for commits whose writers crashed before. Returns None if the
        catalog has nothing to publish. Raises PublishedMismatchError.
        """
        info = load_table(self._name(name))
        if not info.catalog_managed:
            return None
        options = self._options(info)
        return ManagedTable(self.catalog, info).publish(store_for(info.location, options), info.tail)

    def repair(self, name: str, *, apply: bool = False) -> Repair:
        """Find published commits of a managed table that the catalog lacks, and with `apply` restore them.

        This happens when the database of a catalog is restored from an older backup: until the repair, the lost
        versions cannot be read, and nothing can be committed. Without `apply` nothing is changed.

        Raises InvalidOperationError for a table that the catalog does not manage, and PublishedMismatchError, before
        anything is changed, if catalog and log contradict each other: that needs a manual decision.
        """
        info = load_table(self._name(name))
        if not info.catalog_managed:
            raise InvalidOperationError(
                f"The catalog does not manage {info.name}, so that there is nothing of it to repair: its log alone "
                "says which commits count."
            )
        options = self._options(info)
        done = repair_table(ManagedTable(self.catalog, info), store_for(info.location, options), apply=apply)
        if done.applied:
            clear_cache(info.location)
        return done

    @property
    def storage_options(self) -> Mapping[str, str]:
        """The storage options that the catalog was connected with."""
        return connections.storage_options_of(self.name)

    def _options(self, table: TableInfo) -> Mapping[str, str]:
        return connections.table_options(connections.catalog_table(self.name, table), table.location)

    def _name(self, text: str) -> TableName:
        full = parse_table_name(text) or parse_table_name(f"`{self.name.replace('`', '``')}`.{text}")
        if full is None or full.catalog.casefold() != self.name.casefold():
            raise InvalidOptionError(
                f"'{text}' is not the name of a table in the catalog '{self.name}': give schema.table.", name=text
            )
        return full


def connect_catalog(
    url: str,
    name: str = "main",
    *,
    token: str | Callable[[], str] | None = None,
    storage_root: str | PathLike[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DeltaCatalog:
    """Connect this process to a catalog; from now on `name.schema.table` names its tables, in Spark too.

    `url` determines the kind:

    - `sqlite:///path/to/catalog.db`, `postgresql://user@host/database`: a catalog in a database;
    - `file:///path/to/directory`, `s3://bucket/path`: a catalog of files, on any store with put-if-absent;
    - `https://host/api/2.1/unity-catalog`: a server with Unity Catalog's API. `name` is the name of the catalog there;
      `token` a bearer token, or a function that returns one on request.

    `storage_root` is the location of new tables of a catalog in a database or of files, by default the directory
    `tables` beside it. `storage_options` are options of the store for all tables. Connecting again with the same name
    replaces the catalog.

    Raises CatalogError for a URL of another kind, MissingDependencyError for a missing package.
    """
    catalog = connections.connect(
        url,
        name,
        token=token,
        storage_root=None if storage_root is None else normalize_location(storage_root),
        storage_options=storage_options,
    )
    return DeltaCatalog(name, catalog)


def _described(snapshot: Snapshot) -> NewTable:
    return NewTable(
        version=snapshot.version,
        timestamp=snapshot.timestamp,
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        domains=tuple(snapshot.domains().values()),
    )


def _now() -> int:
    return int(time.time() * 1000)
