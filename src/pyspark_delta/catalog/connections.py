"""The catalogs that this process is connected to, by name, and the tables opened through them.

Everything that opens a table gets its location and its storage options. Two keys among the options say that a catalog
manages the table. So snapshots, transactions and statements that pass the options on also pass on the catalog. The
catalog itself, with its credentials, stays here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pyspark_delta.catalog.contract import Access, Catalog, StagingTable, TableInfo
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.errors import CatalogError, MissingDependencyError, NotAuthorizedError
from pyspark_delta.storage.credentials import (
    CREDENTIALS_KEY,
    Credentials,
    CredentialSource,
    register_source,
    reset_sources,
)
from pyspark_delta.storage.paths import split

CATALOG_KEY = "pyspark_delta.catalog"
"""The storage option that names the catalog of a table."""

TABLE_KEY = "pyspark_delta.catalog.table"
"""The storage option that holds the id of a table in its catalog."""

_lock = threading.Lock()
_catalogs: dict[str, Catalog] = {}
_storage_options: dict[str, dict[str, str]] = {}
_connections: dict[str, int] = {}  # the number of times a name was connected
_tables: dict[tuple[str, str], TableInfo | StagingTable] = {}


def connect(
    url: str,
    name: str,
    *,
    token: str | Callable[[], str] | None = None,
    storage_root: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Catalog:
    """Connect this process to the catalog at a URL, under a name; see `catalogs.connect_catalog`.

    Raises CatalogError for a URL of an unknown kind, and MissingDependencyError for a package that the kind needs.
    """
    catalog = _make(url, name, token, storage_root, dict(storage_options or {}))
    attach_catalog(name, catalog, storage_options)
    return catalog


def disconnect_catalog(name: str = "main") -> None:
    """Remove a catalog from this process. It is no error if there is none of that name."""
    with _lock:
        reset_sources(f"{name.casefold()} ")
        _catalogs.pop(name.casefold(), None)


def attach_catalog(name: str, catalog: Catalog, storage_options: Mapping[str, str] | None = None) -> None:
    """Connect to a catalog object: an implementation of the contract by the user."""
    with _lock:
        reset_sources(f"{name.casefold()} ")
        _connections[name.casefold()] = _connections.get(name.casefold(), 0) + 1
        _catalogs[name.casefold()] = catalog
        _storage_options[name.casefold()] = dict(storage_options or {})


def storage_options_of(name: str) -> Mapping[str, str]:
    """Return the storage options that the catalog of a name was connected with."""
    with _lock:
        return dict(_storage_options.get(name.casefold(), {}))


def find_catalog(name: str) -> Catalog | None:
    """Return the catalog of a name; None if this process is not connected to it."""
    with _lock:
        return _catalogs.get(name.casefold())


def connected_catalog(name: str) -> Catalog:
    """Return the catalog of a name. Raises CatalogError if this process is not connected to it."""
    found = find_catalog(name)
    if found is None:
        with _lock:
            known = ", ".join(sorted(_catalogs)) or "none"
        raise CatalogError(
            f"This process is not connected to a catalog '{name}' (connected: {known}). "
            f"Call pyspark_delta.connect_catalog(url, name='{name}') first.",
            catalog=name,
        )
    return found


# ---------------------------------------------------------------------------------------------- tables and options
def table_options(catalog: str, table: TableInfo | StagingTable) -> dict[str, str]:
    """Return the storage options of a table of a connected catalog, or of a staging table.

    They name the source of its credentials, which asks the catalog when a store needs them.
    """
    connected_catalog(catalog)
    with _lock:
        _tables[catalog.casefold(), table.table_id] = table
        source = f"{_source_prefix(catalog)}{table.table_id}"
    options = {**storage_options_of(catalog), CATALOG_KEY: catalog, TABLE_KEY: table.table_id}
    if split(table.location)[0] != "file":
        register_source(source, lambda: CredentialSource(lambda: _credentials(catalog, table.table_id)))
        options[CREDENTIALS_KEY] = source
    return options


def _credentials(catalog: str, table_id: str) -> Credentials:
    """Return credentials for as much access as the caller has.

    A caller with read access only finds out when writing.
    """
    owner = connected_catalog(catalog)
    with _lock:
        table = _tables[catalog.casefold(), table_id]  # which may have received its name since
    try:
        return owner.credentials(table, Access.READ_WRITE)
    except NotAuthorizedError:
        return owner.credentials(table, Access.READ)


def _source_prefix(catalog: str) -> str:
    """Return the prefix of sources that use the current connection. Another connection has other rights."""
    return f"{catalog.casefold()} {_connections.get(catalog.casefold(), 0)} "


def known_table(options: Mapping[str, str] | None) -> tuple[Catalog, TableInfo | StagingTable] | None:
    """Return the catalog and the table that storage options name; None if they name none.

    Raises CatalogError if the catalog is no longer connected, or if another process opened the table.
    """
    if not options or CATALOG_KEY not in options:
        return None
    name, table_id = options[CATALOG_KEY], options.get(TABLE_KEY, "")
    catalog = connected_catalog(name)
    with _lock:
        table = _tables.get((name.casefold(), table_id))
    if table is None:
        raise CatalogError(
            f"The table '{table_id}' of the catalog '{name}' was not opened by this process. Open it by its name.",
            catalog=name,
        )
    return catalog, table


def managed_table(options: Mapping[str, str] | None) -> ManagedTable | None:
    """Return the managed table that storage options name; None for a table that is opened by its path alone.

    Raises CatalogError as `known_table`.
    """
    found = known_table(options)
    if found is None or not isinstance(found[1], TableInfo) or not found[1].catalog_managed:
        return None
    return ManagedTable(found[0], found[1])


def remember_table(catalog: str, table: TableInfo) -> None:
    """Replace what this process remembers of a table by what its catalog says now."""
    with _lock:
        _tables[catalog.casefold(), table.table_id] = table


def _make(
    url: str, name: str, token: str | Callable[[], str] | None, storage_root: str | None, options: dict[str, str]
) -> Catalog:
    scheme = url.partition(":")[0].lower()
    try:
        match scheme:
            case "sqlite" | "postgresql" | "postgresql+psycopg":
                from pyspark_delta.catalog.sql import SqlCatalog

                return SqlCatalog.connect(url, storage_root=storage_root, storage_options=options)
            case "file" | "s3" | "s3a" | "gs" | "abfss" | "abfs" | "memory":
                from pyspark_delta.catalog.filesystem import FilesystemCatalog

                return FilesystemCatalog(url, storage_root=storage_root, storage_options=options)
            case "http" | "https":
                from pyspark_delta.catalog.unity import UnityCatalog

                return UnityCatalog.connect(url, catalog=name, token=token, storage_options=options)
    except ModuleNotFoundError as error:
        extra = "postgresql" if scheme.startswith("postgresql") else "catalog"
        raise MissingDependencyError(
            f"A catalog at '{scheme}:' needs the package '{error.name}': pip install 'pyspark-delta[{extra}]'.",
            package=error.name,
        ) from None
    raise CatalogError(
        f"No kind of catalog is known for '{scheme}:'. Use sqlite:///file.db, postgresql://host/database, "
        "file:///directory, or https://host/api/2.1/unity-catalog.",
    )
