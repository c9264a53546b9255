"""Catalogs that this process is connected to, as catalogs of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark_delta.catalog.connections import connected_catalog
from pyspark_delta.catalog.contract import Catalog, TableName
from pyspark_delta.catalog.names import resolve, resolve_or_create
from pyspark_delta.ddl.create import CreateMode
from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOperationError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.proxies import crossing
from pyspark_delta.spark.frames.tables import open_snapshot, read_options
from pyspark_delta.spark.session.identifiers import is_connected
from pyspark_delta.spark.sql.classic.catalogs import DeltaCatalogProxy, unsupported
from pyspark_delta.spark.sql.classic.creation import Destination
from pyspark_delta.spark.sql.classic.definitions import Declared
from pyspark_delta.spark.sql.classic.relations import CONNECTOR
from pyspark_delta.spark.sql.classic.travel import LATEST, Travel, parts_of


class ConnectedCatalog(DeltaCatalogProxy):
    """A catalog that this process is connected to, or that the session's settings name. Names have two more parts."""

    # ------------------------------------------------------------------------------------------ called by the JVM
    @crossing
    def listTables(self, namespace: Any) -> Any:
        names = self._list(namespace)
        of = self._jvm.type(f"{CONNECTOR}.Identifier").of
        return self._jvm.array([of(namespace, name.name) for name in names], f"{CONNECTOR}.Identifier")

    @crossing
    def listTableSummaries(self, namespace: Any) -> Any:
        of, summary = self._jvm.type(f"{CONNECTOR}.Identifier").of, self._jvm.type(f"{CONNECTOR}.TableSummary").of
        made = [summary(of(namespace, name.name), "EXTERNAL") for name in self._list(namespace)]
        return self._jvm.array(made, f"{CONNECTOR}.TableSummary")

    @crossing
    def listNamespaces(self, namespace: Any = None) -> Any:
        jvm = self._jvm
        schemas = self._schemas() if namespace is None or not len(namespace) else []
        return jvm.array([jvm.array((name,), "java.lang.String") for name in schemas], "java.lang.String[]")

    @crossing
    def namespaceExists(self, namespace: Any) -> bool:
        if len(namespace) != 1:
            return len(namespace) == 0
        return str(namespace[0]).casefold() in {name.casefold() for name in self._schemas()}

    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        return self._jvm.root.java.util.HashMap()

    @crossing
    def createNamespace(self, namespace: Any, metadata: Any) -> None:
        self._catalog().create_schema(self._name, _schema(namespace))

    @crossing
    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:
        if cascade:
            raise unsupported("DROP SCHEMA ... CASCADE", self._name)
        self._catalog().drop_schema(self._name, _schema(namespace))
        return True

    @crossing
    def renameTable(self, before: Any, after: Any) -> None:
        old, new = self._required_name(parts_of(before)), self._required_name(parts_of(after))
        self._catalog().rename_table(old, new)

    @crossing
    def dropTable(self, identifier: Any) -> bool:
        name = self._table_name(parts_of(identifier))
        if name is None:
            return False
        try:
            self._catalog().drop_table(name)
        except CatalogNameNotFoundError:
            return False
        return True

    def purgeTable(self, identifier: Any) -> bool:
        self._refuse("DROP TABLE ... PURGE")

    # -------------------------------------------------------------------------------------------------- details
    def _load(self, parts: Sequence[str], travel: Travel, *, writes: bool) -> Any:
        if len(parts) != 2:
            return None
        try:
            snapshot = self.open(parts, travel)
        except CatalogNameNotFoundError:
            return None
        return self._table(snapshot, (self._name, *parts), is_latest=travel.is_latest, writes=writes)

    def open(self, parts: Sequence[str], travel: Travel = LATEST) -> Snapshot:
        self._catalog()
        found = resolve(self._required_name(parts))
        options = read_options(self._session.spark, found.location, found.storage_options)
        options = travel.apply(replace(options, catalog_table=found.catalog_table))
        return open_snapshot(options, tail=found.tail)

    def _destination(self, parts: Sequence[str], made: Declared, mode: CreateMode) -> Destination:
        name = self._required_name(parts)
        if made.location is not None:
            raise InvalidOperationError(
                f"The catalog of '{name}' chooses the location of the table. Either leave the location "
                f"'{made.location}' out, or create the table there by its path and register it in the catalog.",
                error_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            )
        self._catalog()
        found = (resolve if mode is CreateMode.REPLACE else resolve_or_create)(name)
        return Destination(found.location, found.storage_options, found.catalog_table)

    def _exists(self, parts: Sequence[str]) -> bool:
        name = self._table_name(parts)
        if name is None:
            return False
        try:
            self._catalog().load_table(name)
        except CatalogNameNotFoundError:
            return False
        return True

    def _catalog(self) -> Catalog:
        """Return the catalog, connected first if only the session's settings name it. Raises CatalogError."""
        is_connected(self._session.spark, self._name)
        return connected_catalog(self._name)

    def _table_name(self, parts: Sequence[str]) -> TableName | None:
        return TableName(self._name, *parts) if len(parts) == 2 else None

    def _required_name(self, parts: Sequence[str]) -> TableName:
        name = self._table_name(parts)
        if name is None:
            text = ".".join(parts)
            raise InvalidOperationError(
                f"A table of the catalog '{self._name}' has a schema and a name, as in {self._name}.sales.orders, "
                f"found '{text}'."
            )
        return name

    def _list(self, namespace: Any) -> list[TableName]:
        return self._catalog().list_tables(self._name, _schema(namespace)) if len(namespace) else []

    def _schemas(self) -> list[str]:
        return self._catalog().list_schemas(self._name)


def _schema(namespace: Any) -> str:
    if len(namespace) != 1:
        name = ".".join(str(part) for part in namespace)
        raise InvalidOperationError(f"A schema of a connected catalog has a name of one part, found '{name}'.")
    return str(namespace[0])
