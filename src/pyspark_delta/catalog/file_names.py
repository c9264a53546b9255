"""The names in a catalog of files: the table of each name, and the dropped tables.

A table is dropped if it has a file under `_dropped`, even if names still point to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from pyspark_delta.catalog.contract import DroppedTable, TableName
from pyspark_delta.catalog.identifiers import name_key, shown
from pyspark_delta.catalog.name_log import Entry, NameLogs, parsed
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    InvalidProposalError,
)
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join


@dataclass(frozen=True, slots=True)
class Pointer:
    """The table that a name points to. `entry` is the newest entry of the name; a change writes the entry after it."""

    entry: Entry
    name: TableName
    table_id: str
    location: str
    managed: bool

    def value(self, name: TableName) -> dict[str, Any]:
        """Return the content of an entry that points another name to the table."""
        return {
            "table": self.table_id,
            "location": self.location,
            "managed": self.managed,
            "name": [name.catalog, name.schema, name.name],
        }


class FileNames:
    """The names below the root of a catalog. Every method raises StorageError if the store fails."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store, self._root = store, root
        self._names = NameLogs(store, join(root, "_names"))

    # -------------------------------------------------------------------------------------------------- schemas
    def create_schema(self, catalog: str, schema: str) -> None:
        """Create a schema. Raises CatalogNameExistsError."""
        path = name_key(catalog), name_key(schema)
        while not (found := self._names.newest(*path)).value.get("schema"):
            if self._names.put(found, {"schema": schema}, *path):
                return
        raise CatalogNameExistsError(
            f"The catalog {shown(catalog)} already has a schema {shown(schema)}.", catalog=catalog, schema=schema
        )

    def list_schemas(self, catalog: str) -> list[str]:
        """Return the names of the schemas, sorted."""
        entries = self._names.entries(name_key(catalog))
        return sorted(entry.value["schema"] for entry in entries if entry.value.get("schema"))

    def drop_schema(self, catalog: str, schema: str) -> None:
        """Drop a schema. Raises CatalogNameNotFoundError, and InvalidProposalError for a schema with tables."""
        found = self.require_schema(catalog, schema)
        if self.list_tables(catalog, schema):
            raise InvalidProposalError(
                f"The schema {shown(schema)} of the catalog {shown(catalog)} has tables. Drop them first.",
                catalog=catalog,
                schema=schema,
            )
        self._names.put(found, {"schema": None}, name_key(catalog), name_key(schema))

    def require_schema(self, catalog: str, schema: str) -> Entry:
        """Return the entry of a schema. Raises CatalogNameNotFoundError."""
        entry = self._names.newest(name_key(catalog), name_key(schema))
        if not entry.value.get("schema"):
            raise CatalogNameNotFoundError(
                f"The catalog {shown(catalog)} has no schema {shown(schema)}. Create it first.",
                error_class="SCHEMA_NOT_FOUND",
                catalog=catalog,
                schema=schema,
            )
        return entry

    # --------------------------------------------------------------------------------------------------- tables
    def resolve(self, name: TableName) -> Pointer | None:
        """Return the table of a name; None if no table has it."""
        return self._pointer(self._names.newest(*_keys(name)))

    def require(self, name: TableName) -> Pointer:
        """Return the table of a name. Raises CatalogNameNotFoundError."""
        pointer = self.resolve(name)
        if pointer is None:
            raise _not_found(name)
        return pointer

    def list_tables(self, catalog: str, schema: str) -> list[TableName]:
        """Return the tables of a schema, sorted. Raises CatalogNameNotFoundError for the schema."""
        self.require_schema(catalog, schema)
        found = (self._pointer(entry) for entry in self._names.entries(name_key(catalog), name_key(schema)))
        return sorted(pointer.name for pointer in found if pointer is not None)

    def require_free(self, name: TableName) -> None:
        """Check that a name is free.

        Raises CatalogNameExistsError for a name that is taken, CatalogNameNotFoundError for its schema.
        """
        self.require_schema(name.catalog, name.schema)
        if not self._is_free(self._names.newest(*_keys(name))):
            raise _exists(name)

    def point(self, name: TableName, table_id: str, location: str, *, managed: bool) -> Pointer:
        """Point a name to a table, unless it already points there; return the pointer.

        Raises CatalogNameExistsError if the name belongs to another table, CatalogNameNotFoundError for the schema,
        InvalidProposalError if the table was renamed.
        """
        self.require_schema(name.catalog, name.schema)
        while True:
            found = self._names.newest(*_keys(name))
            known = self._pointer(found)
            if known is not None and known.table_id == table_id:
                return known
            if not self._is_free(found):
                raise _exists(name)
            if found.value.get("moved") == table_id:
                raise InvalidProposalError(f"The table {name} was renamed after it was created.", table=str(name))
            pointer = Pointer(found, name, table_id, location, managed)
            if self._names.put(found, pointer.value(name), *_keys(name)):
                return pointer

    def rename(self, name: TableName, new: TableName) -> None:
        """Give a table another name. Raises CatalogNameNotFoundError, CatalogNameExistsError.

        First the new name is reserved; it becomes valid when the old name records the move. After an interruption the
        table keeps its old name, and the same call completes the renaming.
        """
        self.require_schema(new.catalog, new.schema)
        pointer = self.require(name)
        if _keys(name) == _keys(new):
            change = pointer.value(new)
        else:
            begun = {**pointer.value(new), "from": list(_keys(name)), "after": pointer.entry.number}
            taken = self._names.newest(*_keys(new))
            if taken.value != begun and not (self._is_free(taken) and self._names.put(taken, begun, *_keys(new))):
                raise _exists(new)
            change = {"moved": pointer.table_id, "to": list(_keys(new))}
        if not self._names.put(pointer.entry, change, *_keys(name)):
            raise _not_found(name)  # another client renamed it meanwhile

    # -------------------------------------------------------------------------------------------------- dropping
    def drop(self, name: TableName, now: int) -> None:
        """Drop the table of a name; `now` is in milliseconds since the epoch. Raises CatalogNameNotFoundError."""
        pointer = self.require(name)
        value = {**pointer.value(pointer.name), "dropped": now}
        try:
            self._store.write_if_absent(self._dropped(pointer.table_id), orjson.dumps(value))
        except FileAlreadyExistsError:
            raise _not_found(name) from None

    def is_dropped(self, table_id: str) -> bool:
        """Return True if a table was dropped."""
        try:
            self._store.status(self._dropped(table_id))
        except FileNotFoundInStoreError:
            return False
        return True

    def dropped(self, before_ms: int) -> list[DroppedTable]:
        """Return the managed tables dropped before a time and not yet purged; oldest first."""
        found = []
        for file in self._store.list_from(join(self._root, "_dropped", "")):
            value = parsed(self._store.read(file.path), file.path)
            if file.path != self._dropped(str(value.get("table"))):
                continue  # not written by a catalog, which names the file by the id of the table
            if value["managed"] and not value.get("purged") and value["dropped"] < before_ms:
                name = TableName(*value["name"])
                found.append(DroppedTable(value["table"], name, value["location"], value["dropped"]))
        return sorted(found, key=lambda table: table.dropped_at)

    def forget(self, table_id: str) -> None:
        """Record that a dropped table is purged. Raises InvalidProposalError for one that is not dropped."""
        try:
            value = orjson.loads(self._store.read(self._dropped(table_id)))
        except FileNotFoundInStoreError:
            raise InvalidProposalError(
                f"No table with the id {shown(table_id)} is dropped.", table_id=table_id
            ) from None
        self._store.write(self._dropped(table_id), orjson.dumps({**value, "purged": True}))

    # ------------------------------------------------------------------------------------------------- resolving
    def _pointer(self, entry: Entry) -> Pointer | None:
        """Return the table of an entry; None if the table was dropped or has another name."""
        value = entry.value
        if "table" not in value or self.is_dropped(value["table"]) or not self._is_complete(value):
            return None
        return Pointer(entry, TableName(*value["name"]), value["table"], value["location"], value["managed"])

    def _is_complete(self, value: dict[str, Any]) -> bool:
        """Return True unless the entry belongs to a renaming that the old name does not record."""
        if "from" not in value:
            return True
        old = self._names.entry(value["after"] + 1, *value["from"]).value
        return old.get("moved") == value["table"] and old.get("to") == [name_key(part) for part in value["name"]]

    def _is_free(self, entry: Entry) -> bool:
        """Return True if no table has the name and no unfinished renaming reserves it."""
        value = entry.value
        if "table" not in value or self.is_dropped(value["table"]):
            return True
        begun = "from" in value and self._names.entry(value["after"] + 1, *value["from"]).number < 0
        return not begun and self._pointer(entry) is None

    def _dropped(self, table_id: str) -> str:
        return join(self._root, "_dropped", f"{table_id}.json")


def _keys(name: TableName) -> tuple[str, str, str]:
    return name_key(name.catalog), name_key(name.schema), name_key(name.name)


def _not_found(name: TableName) -> CatalogError:
    return CatalogNameNotFoundError(f"The catalog has no table {name}.", table=str(name))


def _exists(name: TableName) -> CatalogError:
    return CatalogNameExistsError(f"The catalog already has a table {name}.", table=str(name))
