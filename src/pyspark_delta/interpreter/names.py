"""Names in statements to tables: paths, tables of connected catalogs, and folders below a root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark_delta.catalog import names as catalog_names
from pyspark_delta.catalog.connections import connected_catalog, find_catalog
from pyspark_delta.catalog.contract import TableName as NameInCatalog
from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOperationError, TableNotFoundError
from pyspark_delta.interpreter.values import computed_time
from pyspark_delta.parser.values import (
    SqlText,
    TableName,
    TablePath,
    TableReference,
    TimestampAsOf,
    TimeTravel,
    VersionAsOf,
)
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.snapshot.path_suffix import split_suffix
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import join
from pyspark_delta.table import Table
from pyspark_delta.table.writing import Place

DEFAULT_SCHEMA = "default"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Target:
    """What a reference names: a location, or a table of a catalog. `shown` is how messages name it."""

    shown: str
    location: str | None = None
    name: NameInCatalog | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def open(self, time: TimeTravel | None = None) -> Table:
        """Open the table.

        Raises as `Table.open` and `Table.for_name`, InvalidOperationError for a time that cannot be computed.
        """
        version, timestamp = travel(time)
        if self.name is not None:
            return Table.for_name(str(self.name), version=version, timestamp=timestamp)
        assert self.location is not None
        return Table.open(self.location, version=version, timestamp=timestamp, storage_options=self.storage_options)

    def read(self, time: TimeTravel | None = None) -> Table:
        """Open the table for a query, in which a path may select a version: ``delta.`/path@v3` ``. Raises as `open`."""
        if self.location is None or time is not None:
            return self.open(time)
        location, version, milliseconds = split_suffix(self.location, self.storage_options, "UTC")
        moment = None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
        return Table.open(location, version=version, timestamp=moment, storage_options=self.storage_options)

    def exists(self) -> bool:
        """Return True if the table exists. Raises CatalogError, and as `Table.open` for a damaged table."""
        try:
            self.open()
        except (TableNotFoundError, CatalogNameNotFoundError):
            return False
        return True

    def place(self) -> Place:
        """Return where the table is, or where its catalog puts a new one. Raises CatalogError."""
        if self.name is None:
            assert self.location is not None
            return Place(self.location, dict(self.storage_options))
        found = catalog_names.resolve_or_create(self.name)
        return Place(found.location, found.storage_options, found.catalog_table)


def travel(time: TimeTravel | None) -> tuple[int | None, str | datetime | None]:
    """Return version and timestamp of a point in time. Raises InvalidOperationError for one that cannot be computed."""
    match time:
        case None:
            return None, None
        case VersionAsOf(version):
            return version, None
        case TimestampAsOf(timestamp):
            return None, computed_time(timestamp.text) if isinstance(timestamp, SqlText) else timestamp


@dataclass
class Namespace:
    """Where names are looked up: the current catalog and schema, or a folder of tables.

    `root` is a folder: `name` is the table in its folder `name`, and `schema.name` that in `schema/name`.
    """

    catalog: str | None = None
    schema: str | None = None
    root: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def resolve(self, reference: TableReference) -> Target:
        """Return what a reference names; nothing is opened. Raises InvalidOperationError for an unknown catalog."""
        if isinstance(reference, TablePath):
            return self._at(normalize_location(reference.path), f"'{reference.path}'")
        if reference.path is not None:
            return self._at(normalize_location(reference.path), column_path_text(reference.parts))
        shown = column_path_text(reference.parts)
        name = self._in_catalog(reference.parts)
        if name is not None:
            return Target(shown, name=name)
        if self.root is None or len(reference.parts) > 2:
            raise _unknown(reference)
        for part in reference.parts:
            if part in ("", ".", "..") or "/" in part or "\\" in part:
                raise InvalidOperationError(
                    f"{shown} is not the name of a table below '{self.root}': a part of a name is the name of a "
                    "folder. Use a path, as in delta.`/path/of/table`.",
                    error_class="DELTA_INVALID_TABLE_NAME",
                )
        location = self.root
        for part in reference.parts:
            location = join(location, part)
        return self._at(location, shown)

    def _at(self, location: str, shown: str) -> Target:
        return Target(shown, location=location, storage_options=self.storage_options)

    def _in_catalog(self, parts: tuple[str, ...]) -> NameInCatalog | None:
        if len(parts) == 3 and find_catalog(parts[0]) is not None:
            return NameInCatalog(*parts)
        if self.catalog is None or len(parts) > 2:
            return None
        schema, name = parts if len(parts) == 2 else (self.schema or DEFAULT_SCHEMA, parts[0])
        return NameInCatalog(self.catalog, schema, name)

    def tables(self) -> list[str]:
        """Return the names of the tables that need no schema: those of the current one, or of the folder.

        Raises CatalogError, StorageError, and CatalogNameNotFoundError.
        """
        if self.catalog is not None:
            catalog, schema = self.schema_of(())
            return [one.name for one in connected_catalog(catalog).list_tables(catalog, schema)]
        if self.root is None or "://" in self.root:
            return []
        return sorted(path.parent.name for path in Path(self.root).glob("*/_delta_log"))

    def schema_of(self, parts: tuple[str, ...]) -> tuple[str, str]:
        """Return catalog and schema of the name of a schema. Raises InvalidOperationError without a catalog."""
        if len(parts) == 2 and find_catalog(parts[0]) is not None:
            return parts[0], parts[1]
        if self.catalog is not None and len(parts) < 2:
            return self.catalog, parts[0] if parts else self.schema or DEFAULT_SCHEMA
        shown = column_path_text(parts) or "the current schema"
        raise InvalidOperationError(
            f"No connected catalog has {shown}. Call connect_catalog(url, name) first, and pass catalog=name or give "
            "the name as catalog.schema.",
            error_class="DELTA_MISSING_CATALOG",
        )


def _unknown(reference: TableName) -> InvalidOperationError:
    shown = column_path_text(reference.parts)
    return InvalidOperationError(
        f"{shown} names no table: no catalog of that name is connected. Call connect_catalog(url, name) and pass "
        "catalog=name, pass location= as the folder of tables, or use a path, as in delta.`/path/of/table`.",
        error_class="DELTA_MISSING_CATALOG",
        table=shown,
    )
