"""The catalogs that this process is connected to, by name: the only registry of live catalogs.

A connection lasts until its name is disconnected or connected again, or the process ends. A `CatalogTable` names a
connection and a table in its catalog. Another process connects from this value if the connection needs no token, no
storage options and no secret in its URL; otherwise that process must call `connect_catalog` itself.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from pyspark_delta.catalog.contract import Access, Catalog, StagingTable, TableInfo, TableName
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.errors import CatalogError, MissingDependencyError, NotAuthorizedError
from pyspark_delta.protocol.catalog_table import CatalogReference, CatalogTable
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.credentials import (
    CREDENTIALS_KEY,
    Credentials,
    CredentialSource,
    register_source,
    reset_sources,
)
from pyspark_delta.storage.paths import split


@dataclass(frozen=True, eq=False)
class _Connection:
    """A live catalog, and the tables opened through its name as it last returned them, by table id.

    `key` distinguishes the credentials of this connection from those of the next one, which may have other rights.
    """

    reference: CatalogReference
    catalog: Catalog
    storage_options: Mapping[str, str] = field(repr=False)
    tables: dict[str, TableInfo | StagingTable]
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


_lock = threading.Lock()
_connections: dict[str, _Connection | None] = {}  # by name, casefolded; None once the user has disconnected
_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Call a function after each connection and disconnection."""
    with _lock:
        if listener not in _listeners:
            _listeners.append(listener)


def connected_names() -> list[str]:
    """Return the names of the connected catalogs, as users gave them, sorted."""
    with _lock:
        return sorted(found.reference.name for found in _connections.values() if found is not None)


def connect(
    url: str,
    name: str,
    *,
    token: str | Callable[[], str] | None = None,
    storage_root: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Catalog:
    """Connect this process to the catalog at a URL, under a name; see `catalogs.connect_catalog`.

    Raises CatalogError if the scheme of the URL is unknown, MissingDependencyError if a required package is missing.
    """
    catalog = _make(url, name, token, storage_root, dict(storage_options or {}))
    reference = CatalogReference(name)
    if token is None and not storage_options and not _may_hold_secret(url):
        reference = CatalogReference(name, url, storage_root)
    _put(reference, catalog, storage_options)
    return catalog


def attach_catalog(name: str, catalog: Catalog, storage_options: Mapping[str, str] | None = None) -> None:
    """Connect this process to a catalog object, which implements `contract.Catalog`."""
    _put(CatalogReference(name), catalog, storage_options)


def disconnect_catalog(name: str = "main") -> None:
    """Disconnect this process from a catalog. Does nothing if no catalog has this name."""
    with _lock:
        reset_sources(f"{name.casefold()} ")
        _connections[name.casefold()] = None
    _notify()


def _put(reference: CatalogReference, catalog: Catalog, storage_options: Mapping[str, str] | None) -> None:
    key = reference.name.casefold()
    with _lock:
        reset_sources(f"{key} ")
        before = _connections.get(key)
        tables = {} if before is None else before.tables  # a staging table cannot be loaded by name
        _connections[key] = _Connection(reference, catalog, dict(storage_options or {}), tables)
    _notify()


def _notify() -> None:
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener()


def _may_hold_secret(url: str) -> bool:
    parts = urlsplit(url)
    is_token = bool(parts.username) and parts.scheme in ("http", "https")  # some servers take a token as the user
    return is_token or bool(parts.password or parts.query)


def _find(name: str) -> _Connection | None:
    with _lock:
        return _connections.get(name.casefold())


def _connected(name: str) -> _Connection:
    found = _find(name)
    if found is None:
        known = ", ".join(connected_names()) or "none"
        raise CatalogError(
            f"This process is not connected to a catalog '{name}' (connected: {known}). "
            f"Call pyspark_delta.connect_catalog(url, name='{name}') first.",
            catalog=name,
        )
    return found


def storage_options_of(name: str) -> Mapping[str, str]:
    """Return the storage options that a catalog was connected with; empty if this process is not connected to it."""
    found = _find(name)
    return {} if found is None else dict(found.storage_options)


def find_catalog(name: str) -> Catalog | None:
    """Return the catalog of a name; None if this process is not connected to it."""
    found = _find(name)
    return None if found is None else found.catalog


def connected_catalog(name: str) -> Catalog:
    """Return the catalog of a name. Raises CatalogError if this process is not connected to it."""
    return _connected(name).catalog


# ------------------------------------------------------------------------------------------------------ tables
def catalog_table(catalog: str, table: TableInfo | StagingTable) -> CatalogTable:
    """Return the `CatalogTable` for a table or staging table of a connected catalog, and remember its state.

    Raises CatalogError if this process is not connected to the catalog.
    """
    connection = _connected(catalog)
    connection.tables[table.table_id] = table
    return CatalogTable(connection.reference, table.table_id, table.name.schema, table.name.name)


def table_options(table: CatalogTable, location: str) -> dict[str, str]:
    """Return the storage options of a table of a connected catalog, whose location is `location`.

    For a table that is not local, they name a source of credentials, which asks the catalog when a store needs them.
    Raises CatalogError if this process is not connected to the catalog.
    """
    connection = _connected(table.catalog.name)
    options = dict(connection.storage_options)
    if split(location)[0] != "file":
        source = f"{table.catalog.name.casefold()} {connection.key} {table.table_id}"
        register_source(source, lambda: CredentialSource(lambda: _credentials(table)))
        options[CREDENTIALS_KEY] = source
    return options


def _credentials(table: CatalogTable) -> Credentials:
    """Return credentials for reading and writing, or for reading if the caller has no more access.

    With credentials for reading, a write fails at the store.
    """
    found = known_table(table)  # a staging table may have been named since
    assert found is not None
    catalog, info = found
    try:
        return catalog.credentials(info, Access.READ_WRITE)
    except NotAuthorizedError:
        return catalog.credentials(info, Access.READ)


def known_table(table: CatalogTable | None) -> tuple[Catalog, TableInfo | StagingTable] | None:
    """Return the catalog of a table, and the table as the catalog last returned it; None if `table` is None.

    A process that has never been connected to a catalog of this name connects from the value. Raises CatalogError if
    the value is not sufficient, if the catalog was disconnected, or if the name now belongs to another table.
    """
    if table is None:
        return None
    connection = _opened(table.catalog)
    info = connection.tables.get(table.table_id)
    if info is None:
        info = _load(connection.catalog, table)
        connection.tables[table.table_id] = info
    return connection.catalog, info


def _opened(reference: CatalogReference) -> _Connection:
    with _lock:
        is_new = reference.name.casefold() not in _connections
    if is_new and reference.url is not None:
        connect(reference.url, reference.name, storage_root=reference.storage_root)
    return _connected(reference.name)


def _load(catalog: Catalog, table: CatalogTable) -> TableInfo:
    name = TableName(table.catalog.name, table.schema, table.name)
    info = catalog.load_table(name)
    if info.table_id != table.table_id:
        raise CatalogError(
            f"The table '{table.table_id}' was opened as {name}, but this name now belongs to another table, "
            f"'{info.table_id}'. Open the table again by its current name.",
            catalog=table.catalog.name,
        )
    return replace(info, location=normalize_location(info.location))


def managed_table(table: CatalogTable | None) -> ManagedTable | None:
    """Return the managed table; None if the table is opened by its path, or if its catalog does not manage it.

    Raises the errors of `known_table`.
    """
    found = known_table(table)
    if found is None or not isinstance(found[1], TableInfo) or not found[1].catalog_managed:
        return None
    return ManagedTable(found[0], found[1])


def remember_table(catalog: str, table: TableInfo) -> None:
    """Replace the remembered state of a table. Raises CatalogError if this process is not connected to the catalog."""
    _connected(catalog).tables[table.table_id] = table


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
        f"A catalog cannot be at a URL with the scheme '{scheme}:'. Use sqlite:///file.db, postgresql://host/database, "
        "file:///directory, or https://host/api/2.1/unity-catalog.",
    )
