"""Entries of Spark's session catalog, as its `CatalogTable`: finding them, and writing those of Delta tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark_delta.errors import CatalogError, DeltaError, InvalidOperationError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.sessions import FORMATS
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.proxies import java_exception
from pyspark_delta.spark.sql.classic.relations import CATALYST, Description, catalog_table
from pyspark_delta.storage import normalize_location

SESSION_CATALOG = "spark_catalog"
_SESSION_CATALOG = "org.apache.spark.sql.catalyst.catalog.SessionCatalog"
_PROVIDERS = tuple(f"some({name})" for name in FORMATS)
_MISSING = ("NoSuchTableException", "NoSuchNamespaceException", "NoSuchDatabaseException")


def entry_identifier(jvm: Jvm, schema: str, name: str) -> Any:
    """Return a name as Spark's `TableIdentifier`."""

    def make() -> Any:
        some = jvm.type("scala.Option").apply
        return jvm.type(f"{CATALYST}.TableIdentifier")(name, some(schema), some(SESSION_CATALOG))

    return jvm.once(("identifier", schema, name), make)


def find_entry(jvm: Jvm, catalog: Any, schema: str, name: str) -> Any:
    """Return the entry of a table or a permanent view; None if there is none. `catalog` is that of version 1."""
    try:
        with probing():
            return catalog.getTableMetadata(entry_identifier(jvm, schema, name))
    except Exception as error:
        java = java_exception(error)
        if java is not None and str(java.getClass().getSimpleName()) in _MISSING:
            return None
        raise


def is_delta_entry(entry: Any) -> bool:
    """Return True if an entry is that of a Delta table."""
    return str(entry.provider().toString()).lower() in _PROVIDERS


def is_external_entry(entry: Any) -> bool:
    """Return True if Spark keeps the files of a table when the table is dropped."""
    return str(entry.tableType().name()) == "EXTERNAL"


def entry_location(jvm: Jvm, entry: Any) -> str:
    """Return the location of a table. Raises InvalidOperationError if it has none."""
    found = entry.storage().locationUri()
    if not found.isDefined():
        name = entry.identifier().unquotedString()
        raise InvalidOperationError(f"The table '{name}' of the session catalog has no location.")
    return location_of_uri(jvm, found.get())


def location_of_uri(jvm: Jvm, uri: Any) -> str:
    """Return a location that Spark's catalog has as a `java.net.URI`."""
    return normalize_location(uri_text(jvm, uri))


def uri_text(jvm: Jvm, uri: Any) -> str:
    """Return the text of a `java.net.URI` as users write it, without escapes."""
    return str(jvm.static(f"{CATALYST}.catalog.CatalogUtils", "URIToString")(uri))


def unregistered(name: str, location: str, error: Exception, *, is_external: bool) -> CatalogError:
    """Return the error about a Delta table that has no entry: the table itself is written."""
    reason = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
    place = f" LOCATION '{location}'" if is_external else ""
    return CatalogError(
        f"The table at '{location}' is written, but Spark's catalog does not have its name {name}: {reason} Do not "
        f"write the rows again. Give the table its name with CREATE TABLE {name} USING delta{place}.",
        table=name,
        path=location,
    )


def write_entry(jvm: Jvm, catalog: Any, identifier: Any, snapshot: Snapshot, *, is_external: bool) -> None:
    """Make the entry of a name that of a Delta table, with a copy of what the log declares."""
    described = replace(Description.of(snapshot, ()), partition_columns=())
    before = catalog.getTableMetadata(identifier) if catalog.tableExists(identifier) else None
    entry = catalog_table(jvm, described, identifier, is_external=is_external, before=before)
    if before is None:
        catalog.createTable(entry, False, False)
        return
    catalog.alterTable(entry)
    _write_schema(jvm, catalog, identifier, entry.schema())  # Hive's catalog keeps the old schema otherwise


def _write_schema(jvm: Jvm, catalog: Any, identifier: Any, schema: Any) -> None:
    if jvm.has_method(_SESSION_CATALOG, "alterTableSchema"):
        catalog.alterTableSchema(identifier, schema)
        return
    # Before Spark 4.1, the session catalog refuses a schema without columns that the old one has.
    name = identifier.database().get(), identifier.table()
    catalog.externalCatalog().alterTableDataSchema(*name, schema)
