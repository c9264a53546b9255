"""Spark's session catalog with Delta tables: a proxy in front of it, which takes calls for Delta tables.

The catalog keeps the name, the format and the location of a table; schema and properties are in the log. For commands
of Spark that read the catalog's entry, it has a copy of them from the time when the table was created or replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from pyspark_delta.ddl.create import CreateMode
from pyspark_delta.errors import CatalogNameExistsError, InvalidOperationError, SchemaMismatchError, TableNotFoundError
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.spark.conf.sessions import FORMATS, is_delta
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, crossing, forwarding
from pyspark_delta.spark.frames.schemas import differences, to_spark
from pyspark_delta.spark.frames.tables import open_snapshot, read_options
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.sql.classic.catalogs import capabilities
from pyspark_delta.spark.sql.classic.changes import apply_changes
from pyspark_delta.spark.sql.classic.creation import Creation, Destination, writable
from pyspark_delta.spark.sql.classic.definitions import Declared, provider_of, quoted_path
from pyspark_delta.spark.sql.classic.entries import (
    SESSION_CATALOG,
    entry_identifier,
    entry_location,
    find_entry,
    is_delta_entry,
    is_external_entry,
    location_of_uri,
    unregistered,
    write_entry,
)
from pyspark_delta.spark.sql.classic.relations import CONNECTOR, Relations
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.travel import LATEST, Travel, context_of, parts_of
from pyspark_delta.spark.sql.transactions import alteration_of, staged
from pyspark_delta.storage import normalize_location


class SessionCatalogProxy(Creation, JavaProxy):
    """A proxy of Spark's session catalog. What it does not do itself, Spark's catalog does."""

    def __init__(self, session: SessionReference, before: Any, relations: Relations) -> None:
        super().__init__(session.jvm)
        self._session = session
        self._before = before
        self._relations = relations
        found = [str(one.getName()) for one in before.getClass().getInterfaces()]
        kept = tuple(name for name in found if name.startswith(CONNECTOR))

        class Java:
            implements: ClassVar[tuple[str, ...]] = (Creation.INTERFACE, f"{CONNECTOR}.CatalogExtension", *kept)

        self.Java = Java  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """Return a method of Spark's catalog."""
        if name.startswith("_"):
            raise AttributeError(name)
        return forwarding(getattr(self._before, name))

    # ------------------------------------------------------------------------------------------ called by the JVM
    def name(self) -> str:
        return SESSION_CATALOG

    def setDelegateCatalog(self, catalog: Any) -> None:
        return None

    def capabilities(self) -> Any:
        return capabilities(self._jvm)

    def loadTable(self, identifier: Any, *context: Any) -> Any:
        """Return a table; None, which Spark takes for a table that does not exist."""
        parts = parts_of(identifier)
        entry = self._entry(parts)
        if entry is None or not is_delta_entry(entry):
            return self._load_other(entry, identifier, context)
        travel, writes = context_of(context[0] if context else None)
        # Spark before 4.2 loads a table for a query as it does for a command; DROP goes on without the table.
        is_query = bool(context) or not self._jvm.has_class(f"{CONNECTOR}.TableContext")
        return self._load_delta(parts, entry, travel, writes=writes, is_query=is_query)

    @crossing
    def createTable(self, identifier: Any, *info: Any) -> Any:
        if not self._is_delta(info):
            return self._before.createTable(identifier, *info)
        parts, made = parts_of(identifier), self._declared(info)
        destination = self._destination(parts, made, CreateMode.CREATE)
        existing = self._existing(destination.location)
        if existing is None:
            self._create(destination, made, CreateMode.CREATE)
        else:
            check_declared(existing, made)
            destination.register()
        return None

    @crossing
    def stageCreate(self, identifier: Any, *info: Any) -> Any:
        if self._is_delta(info):
            return self._stage(identifier, info, CreateMode.CREATE)
        return self._before.createTable(identifier, *info)

    @crossing
    def stageReplace(self, identifier: Any, *info: Any) -> Any:
        if self._is_delta(info):
            return self._stage(identifier, info, CreateMode.REPLACE)
        return self._replace_other(identifier, info)

    @crossing
    def stageCreateOrReplace(self, identifier: Any, *info: Any) -> Any:
        if self._is_delta(info):
            return self._stage(identifier, info, CreateMode.CREATE_OR_REPLACE)
        return self._replace_other(identifier, info)

    @crossing
    def alterTable(self, identifier: Any, changes: Any) -> Any:
        parts = parts_of(identifier)
        entry = self._entry(parts)
        if entry is None or not is_delta_entry(entry):
            return self._before.alterTable(identifier, changes)
        name = (SESSION_CATALOG, *parts)
        apply_changes(alteration_of(self._session.spark, lambda: self.open(parts), name), self._jvm, list(changes))
        return None

    def dropTable(self, identifier: Any) -> bool:
        return self._drop(identifier, purge=False)

    def purgeTable(self, identifier: Any) -> bool:
        return self._drop(identifier, purge=True)

    def renameTable(self, before: Any, after: Any) -> None:
        location = self.location(parts_of(before))
        forwarding(self._before.renameTable)(before, after)
        if location is not None:
            clear_cache(location)  # Spark moves the directory of a table that it manages

    # ----------------------------------------------------------------------------------------------- for Python
    def open(self, parts: Sequence[str], travel: Travel = LATEST) -> Snapshot:
        """Return the snapshot of a Delta table of the catalog. Raises InvalidOperationError if the name has none."""
        location = self.location(parts)
        if location is None:
            name = ".".join(parts)
            raise InvalidOperationError(
                f"'{name}' is not a Delta table of the session catalog.", error_class="DELTA_MISSING_DELTA_TABLE"
            )
        options = read_options(self._session.spark, location)
        return open_snapshot(travel.apply(options))

    def location(self, parts: Sequence[str]) -> str | None:
        """Return the location of a Delta table of the catalog; None if the name has none."""
        entry = self._entry(parts)
        return entry_location(self._jvm, entry) if entry is not None and is_delta_entry(entry) else None

    def exists(self, parts: Sequence[str]) -> bool:
        """Return True if the catalog has a table or view of a name, of any format."""
        return self._entry(parts) is not None

    def new_location(self, parts: Sequence[str]) -> str:
        """Return the location for a new table. Raises AnalysisException if there is no such schema."""
        v1 = self._session.catalog
        v1.getDatabaseMetadata(parts[0])
        found = v1.defaultTablePath(self._identifier(parts))
        return location_of_uri(self._jvm, found)

    def register(self, parts: Sequence[str], location: str, *, is_external: bool) -> None:
        """Give the Delta table at a location a name, or bring the copy of its schema up to date.

        Raises CatalogError, which says that the table is written, for any failure.
        """
        try:
            self._check_name(parts, location)
            snapshot = open_snapshot(read_options(self._session.spark, location))
            write_entry(self._jvm, self._session.catalog, self._identifier(parts), snapshot, is_external=is_external)
        except Exception as error:
            raise unregistered(column_path_text(parts), location, error, is_external=is_external) from error

    def _check_name(self, parts: Sequence[str], location: str) -> None:
        """Raise CatalogNameExistsError if another table or a view has got the name while the table was written."""
        entry = self._entry(parts)
        if entry is not None and not (is_delta_entry(entry) and entry_location(self._jvm, entry) == location):
            raise CatalogNameExistsError("There is another table or a view of this name now.")

    # --------------------------------------------------------------------------------------------------- details
    def _is_delta(self, info: tuple[Any, ...]) -> bool:
        provider = provider_of(info)
        return provider in FORMATS if provider is not None else is_delta(self._session.spark, None)

    def _replace_other(self, identifier: Any, info: tuple[Any, ...]) -> Any:
        """Replace a table of another format as Spark does: not in one step. Spark then loads the table."""
        if self.location(parts_of(identifier)) is not None:
            name = ".".join(parts_of(identifier))
            raise InvalidOperationError(
                f"'{name}' is a Delta table, so it is not replaced by a table of another format. Nothing was changed. "
                "Drop it first, or choose another name.",
                error_class="DELTA_OPERATION_NOT_ALLOWED",
            )
        self._before.dropTable(identifier)
        return self._before.createTable(identifier, *info)

    def _identifier(self, parts: Sequence[str]) -> Any:
        schema, name = parts
        return entry_identifier(self._jvm, schema, name)

    def _entry(self, parts: Sequence[str]) -> Any:
        """Return the `CatalogTable` of a name; None if there is none."""
        return find_entry(self._jvm, self._session.catalog, *parts) if len(parts) == 2 else None

    @forwarding
    def _load_other(self, entry: Any, identifier: Any, context: tuple[Any, ...]) -> Any:
        if entry is None and len(parts_of(identifier)) == 2:
            return None
        return self._before.loadTable(identifier, *context)

    @crossing
    def _load_delta(self, parts: Sequence[str], entry: Any, travel: Travel, *, writes: bool, is_query: bool) -> Any:
        jvm, name = self._jvm, (SESSION_CATALOG, *parts)
        options = read_options(self._session.spark, entry_location(jvm, entry))
        try:
            snapshot = open_snapshot(travel.apply(options))
        except TableNotFoundError:
            self._session.catalog.invalidateCachedTable(self._identifier(parts))
            if is_query:
                raise
            return jvm.type(f"{CONNECTOR}.V1Table")(entry)  # DROP loads the table too; Spark 4.2 does so for queries
        if writes:
            return writable(self._session, snapshot, name)
        if not travel.is_latest:
            return self._relations.table(snapshot, name, is_latest=False)
        own = staged(self._session.spark, snapshot.location)
        if own is not None:
            return self._relations.of_transaction(own, name)
        if self._relations.cache(snapshot, (SESSION_CATALOG, parts[0], parts[1])):
            entry = self._refreshed(parts, entry, snapshot)
        return jvm.type(f"{CONNECTOR}.V1Table")(entry)

    def _refreshed(self, parts: Sequence[str], entry: Any, snapshot: Snapshot) -> Any:
        """Return the entry with an up-to-date copy of the schema, which DESCRIBE shows, if the catalog allows it."""
        if entry.schema().json() == self._jvm.data_type(to_spark(snapshot.schema).json()).json():
            return entry
        is_external = is_external_entry(entry)
        with suppress(Exception):  # the copy is only shown
            self.register(parts, snapshot.location, is_external=is_external)
        return self._entry(parts) or entry

    def _destination(self, parts: Sequence[str], made: Declared, mode: CreateMode) -> Destination:
        if len(parts) != 2:
            name = ".".join(parts)
            raise InvalidOperationError(f"A table of spark_catalog has a schema and a name, found '{name}'.")
        entry = self._entry(parts)
        if entry is not None and not is_delta_entry(entry):
            name = ".".join(parts)
            raise InvalidOperationError(
                f"'{name}' is not a Delta table, so it cannot be replaced by one. Drop it first, or choose another "
                "name.",
                error_class="DELTA_NOT_A_DELTA_TABLE",
            )
        given = made.location and normalize_location(on_default_system(self._session.spark, made.location))
        if entry is None:
            location, is_external = given or self.new_location(parts), made.is_external
            if given is not None:
                self._session.catalog.getDatabaseMetadata(parts[0])
        else:
            location, is_external = entry_location(self._jvm, entry), is_external_entry(entry)
            if given is not None and given != location:
                raise InvalidOperationError(
                    f"The table '{'.'.join(parts)}' is at '{location}', but LOCATION is '{given}'. Leave LOCATION out.",
                    error_class="DELTA_TABLE_LOCATION_MISMATCH",
                )
        register = partial(self.register, parts, location, is_external=is_external)
        return Destination(location, register=register, is_managed=not is_external)

    def _existing(self, location: str) -> Snapshot | None:
        try:
            return open_snapshot(read_options(self._session.spark, location))
        except TableNotFoundError:
            return None

    def _drop(self, identifier: Any, *, purge: bool) -> bool:
        parts = parts_of(identifier)
        entry = self._entry(parts)
        if entry is None or not is_delta_entry(entry):
            call = self._before.purgeTable if purge else self._before.dropTable
            return bool(forwarding(call)(identifier))
        return bool(crossing(self._drop_delta)(parts, purge))

    def _drop_delta(self, parts: Sequence[str], purge: bool) -> bool:
        v1, identifier = self._session.catalog, self._identifier(parts)
        location = self.location(parts)
        v1.invalidateCachedTable(identifier)
        clear_cache(location)  # a new table at the place may have the same versions
        v1.dropTable(identifier, True, purge)
        return True


def check_declared(existing: Snapshot, made: Declared) -> None:
    """Raise SchemaMismatchError if CREATE TABLE declares anything else than the table that exists at the location."""
    definition = made.definition
    found = []
    if definition.schema.fields:
        found = differences(expected=to_spark(existing.schema), given=to_spark(definition.schema))
    if definition.partition_columns and definition.partition_columns != tuple(existing.metadata.partition_columns):
        found.append(f"it is partitioned by {', '.join(existing.metadata.partition_columns) or 'no column'}")
    found += [
        f"the property {key} is {existing.properties.get(key)!r}, not {value!r}"
        for key, value in definition.properties.items()
        if existing.properties.get(key) != value
    ]
    if definition.clustering and made.clustering != tuple(map(_quoted, existing.clustering_columns())):
        found.append(f"it is clustered by {', '.join(existing.clustering_columns()) or 'no column'}")
    if found:
        raise SchemaMismatchError(
            f"There is a table at '{existing.location}' that the statement does not describe: {'; '.join(found)}. "
            "Leave out columns, partitioning and properties, or describe the table as it is.",
            error_class="DELTA_CREATE_TABLE_SCHEME_MISMATCH",
        )


def _quoted(column: str) -> str:
    return quoted_path(parse_column_path(column))
