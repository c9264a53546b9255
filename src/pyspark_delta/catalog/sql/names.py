"""The names of tables in a database: resolving, listing, creating, registering, renaming and dropping."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pyspark_delta.catalog.contract import (
    DroppedTable,
    LeftBehind,
    Maintenance,
    MetadataChange,
    NewTable,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.failures import storage_failures
from pyspark_delta.catalog.identifiers import name_key, shown
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.proposals import check_new_table
from pyspark_delta.catalog.sql.rows import (
    DESCRIPTION_COLUMNS,
    TableDescription,
    change_values,
    description_of,
    domains_value,
    info_of,
    metadata_values,
    protocol_value,
    select_tables,
    unpublished,
)
from pyspark_delta.catalog.sql.schemas import Schemas, lock_schemas
from pyspark_delta.catalog.sql.tables import ACTIVE, DROPPED, STAGING, commits, tables
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    FileNotFoundInStoreError,
    InvalidOperationError,
    InvalidProposalError,
    NotAuthorizedError,
    TableReplacedError,
    UnsupportedTableError,
)
from pyspark_delta.features import Feature
from pyspark_delta.log.names import LOG_DIRECTORY
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import join

_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_LOCATION = 2000  # bytes: PostgreSQL indexes no text much longer
_FEATURES = frozenset({Feature.CATALOG_MANAGED.value, Feature.IN_COMMIT_TIMESTAMP.value})
_SUGGESTED = frozenset({Feature.V2_CHECKPOINT.value})
_PROPERTIES = {ENABLE_IN_COMMIT_TIMESTAMPS.name: "true"}


class TableNames(Schemas):
    """Tables by their names. A table has its name from `create_table` or `register_table` until it is dropped."""

    # ---------------------------------------------------------------------------------------------- resolving
    def load_table(self, name: TableName) -> TableInfo:
        """Resolve a name, with the log tail, in one statement. Raises CatalogNameNotFoundError."""
        rows = self._select(_is_named(name))
        if not rows:
            raise _not_found(name)
        return info_of(rows)

    def load_table_by_id(self, table_id: str) -> TableInfo:
        """Return the table with an id. Raises TableReplacedError if no table with a name has this id."""
        rows = self._select(tables.c.table_id == table_id) if _is_id(table_id) else ()
        if not rows:
            raise TableReplacedError(f"The catalog has no table with the id {shown(table_id)}.", table_id=table_id)
        return info_of(rows)

    def describe_table(self, name: TableName) -> TableDescription:
        """Return all that the catalog stores of a table. Raises CatalogNameNotFoundError."""
        rows = self._select(_is_named(name), DESCRIPTION_COLUMNS)
        if not rows:
            raise _not_found(name)
        return description_of(rows)

    def list_tables(self, catalog: str, schema: str) -> list[TableName]:
        """Return the tables of a schema, sorted. Raises CatalogNameNotFoundError for the schema."""
        self.require_schema(catalog, schema)
        query = select(tables.c.catalog, tables.c.schema_name, tables.c.name).where(
            tables.c.catalog_key == name_key(catalog),
            tables.c.schema_key == name_key(schema),
            tables.c.state == ACTIVE,
        )
        return sorted(TableName(*row) for row in self._database.read(lambda c: c.execute(query).all()))

    # ----------------------------------------------------------------------------------------------- creating
    def create_staging_table(self, name: TableName) -> StagingTable:
        """Return the location for a new table. The name stays free until `create_table`.

        Raises CatalogNameNotFoundError for the schema, CatalogNameExistsError for the table.
        """
        self.require_schema(name.catalog, name.schema)
        if self._select(_is_named(name)):
            raise _exists(name)
        table_id = str(uuid.uuid4())
        location = join(self._settings.storage_root, table_id)  # not the name, which may change and have any character
        values = self._row(table_id, name, location, state=STAGING, managed=True)
        self._database.change(lambda connection: connection.execute(insert(tables).values(**values)))
        return _staging(table_id, name, location)

    def load_staging_table(self, table_id: str) -> StagingTable:
        """Return the staging table with an id.

        Raises InvalidProposalError if there is none, NotAuthorizedError if another principal created it.
        """
        query = select(tables).where(tables.c.table_id == table_id, tables.c.state == STAGING)
        row = None
        if _is_id(table_id):
            row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None:
            raise InvalidProposalError(
                f"The catalog has no staging table with the id {shown(table_id)}.", table_id=table_id
            )
        self._require_creator(row)
        return _staging(row.table_id, TableName(row.catalog, row.schema_name, row.name), row.location)

    def create_table(self, staging: StagingTable, new: NewTable) -> TableInfo:
        """Give the table at a staging location its name. This ratifies its version 0, which is published there.

        A repeated request with the same staging table has the same result. Raises CatalogNameExistsError,
        InvalidProposalError, TableReplacedError if the table was dropped meanwhile, NotAuthorizedError for a staging
        table of another principal.
        """
        check_new_table(staging.name, new)
        with storage_failures():
            self._check_first_commit(staging)
        now = self._settings.clock()

        def create(connection: Connection) -> None:
            lock_schemas(connection, [(staging.name.catalog, staging.name.schema)])
            query = select(tables).where(tables.c.table_id == staging.table_id).with_for_update()
            row = connection.execute(query).one_or_none()
            self._check_staging(staging, row)
            if row is None or row.state == ACTIVE:
                return  # an earlier request named it
            change = (
                update(tables)
                .where(tables.c.table_id == staging.table_id)
                .values(
                    state=ACTIVE,
                    updated_ms=now,
                    latest_version=new.version,
                    latest_timestamp=new.timestamp,
                    published_version=new.version,
                    metadata_number=1,
                    **protocol_value(new.protocol),
                    **metadata_values(new.metadata),
                    **domains_value(None, new.domains),
                )
            )
            _give_name(connection, change, staging.name)

        self._database.change(create)
        return self.load_table_by_id(staging.table_id)

    def register_table(self, name: TableName, location: str, described: NewTable | None = None) -> TableInfo:
        """Give a name to a table at a path; no catalog manages this table. The catalog keeps a copy of `described`.

        Raises CatalogNameExistsError, CatalogNameNotFoundError for the schema, InvalidProposalError for a location
        without a Delta table, or with one that the catalog already has, named or dropped.
        """
        place = self._table_location(location)
        table_id = str(uuid.uuid4())
        values = self._row(table_id, name, place, state=ACTIVE, managed=False)
        if described is not None:
            values |= {"latest_version": described.version, "latest_timestamp": described.timestamp}
            values |= {**protocol_value(described.protocol), **metadata_values(described.metadata)}
            values |= domains_value(None, described.domains)

        def register(connection: Connection) -> None:
            lock_schemas(connection, [(name.catalog, name.schema)])
            if connection.execute(select(tables.c.table_id).where(tables.c.location == place)).first():
                raise InvalidProposalError(
                    f"The catalog already has the table at '{place}', under another name or dropped.", location=place
                )
            _give_name(connection, insert(tables).values(**values), name)

        self._database.change(register)
        return self.load_table(name)

    def report_change(self, table: TableInfo, version: int, timestamp: int, change: MetadataChange) -> None:
        """Store what a commit to a registered table has changed, unless the catalog knows this version or a newer one.

        Raises TableReplacedError, InvalidProposalError for a table that the catalog manages.
        """

        def report(connection: Connection) -> None:
            query = select(tables).where(tables.c.table_id == table.table_id, tables.c.state == ACTIVE)
            row = connection.execute(query.with_for_update()).one_or_none()
            if row is None:
                raise TableReplacedError(f"The table {table.name} was dropped.", table=str(table.name))
            if row.managed:
                raise InvalidProposalError(
                    f"The catalog manages the table {table.name}, so only its commits can change its metadata.",
                    table=str(table.name),
                )
            if row.latest_version is not None and version <= row.latest_version:
                return
            values = {"latest_version": version, "latest_timestamp": timestamp, **change_values(row.domains, change)}
            values |= {"metadata_number": row.metadata_number + 1, "updated_ms": self._settings.clock()}
            connection.execute(update(tables).where(tables.c.table_id == table.table_id).values(**values))

        self._database.change(report)

    # ----------------------------------------------------------------------------------- renaming and dropping
    def rename_table(self, name: TableName, new: TableName) -> None:
        """Rename a table.

        Raises CatalogNameNotFoundError, CatalogNameExistsError, and InvalidProposalError for another catalog.
        """
        if name_key(name.catalog) != name_key(new.catalog):
            raise InvalidProposalError(
                f"The table {name} cannot be renamed to {new}: a table cannot move to another catalog.", table=str(name)
            )

        def rename(connection: Connection) -> None:
            lock_schemas(connection, [(name.catalog, name.schema), (new.catalog, new.schema)])
            keys = {"schema_key": name_key(new.schema), "name_key": name_key(new.name)}
            change = update(tables).where(_is_named(name), tables.c.state == ACTIVE)
            change = change.values(schema_name=new.schema, name=new.name, **keys)
            if _give_name(connection, change, new) == 0:
                raise _not_found(name)

        self._database.change(rename)

    def drop_table(self, name: TableName) -> None:
        """Remove the name of a table without a commit (C481). The files of a managed table stay until they are purged.

        Raises CatalogNameNotFoundError.
        """
        now = self._settings.clock()

        def drop(connection: Connection) -> None:
            named = and_(_is_named(name), tables.c.state == ACTIVE)
            dropped = connection.execute(
                update(tables).where(named, tables.c.managed).values(state=DROPPED, dropped_ms=now, updated_ms=now)
            )
            if dropped.rowcount == 0 and connection.execute(delete(tables).where(named)).rowcount == 0:
                raise _not_found(name)

        self._database.change(drop)

    def dropped_tables(self, before_ms: int) -> list[DroppedTable]:
        """Return the managed tables dropped before a time and not yet purged; oldest first."""
        query = select(tables).where(tables.c.state == DROPPED, tables.c.dropped_ms < before_ms)
        rows = self._database.read(lambda c: c.execute(query.order_by(tables.c.dropped_ms)).all())
        return [
            DroppedTable(row.table_id, TableName(row.catalog, row.schema_name, row.name), row.location, row.dropped_ms)
            for row in rows
        ]

    def forget_dropped(self, table_id: str) -> None:
        """Forget a dropped table whose files are deleted. Its id is never used again.

        Does nothing if the catalog does not know the id. Raises InvalidProposalError for a table that is not dropped.
        """

        def forget(connection: Connection) -> None:
            gone = connection.execute(delete(tables).where(tables.c.table_id == table_id, tables.c.state == DROPPED))
            if gone.rowcount:
                connection.execute(delete(commits).where(commits.c.table_id == table_id))
            elif connection.execute(select(tables.c.table_id).where(tables.c.table_id == table_id)).first():
                raise InvalidProposalError(f"The table with the id '{table_id}' is not dropped.", table_id=table_id)

        self._database.change(forget)

    def left_behind(self, before_ms: int) -> list[LeftBehind]:
        """Return the staging tables that were requested before a time and have no name yet; oldest first."""
        query = select(tables).where(tables.c.state == STAGING, tables.c.created_ms < before_ms)
        rows = self._database.read(lambda c: c.execute(query.order_by(tables.c.created_ms)).all())
        return [
            LeftBehind(row.table_id, TableName(row.catalog, row.schema_name, row.name), row.location, row.created_ms)
            for row in rows
        ]

    def drop_staging_table(self, table_id: str) -> bool:
        """Drop a staging table, so that it never gets a name; return False if it has received one."""
        now = self._settings.clock()
        change = update(tables).where(tables.c.table_id == table_id, tables.c.state == STAGING)
        change = change.values(state=DROPPED, dropped_ms=now, updated_ms=now)
        return self._database.change(lambda connection: connection.execute(change).rowcount) > 0

    def allow_maintenance(self, name: TableName, allowed: Iterable[Maintenance]) -> None:
        """Set the maintenance operations that clients may run on a table (C478). Raises CatalogNameNotFoundError."""
        words = " ".join(sorted(operation.value for operation in allowed))
        change = update(tables).where(_is_named(name), tables.c.state == ACTIVE).values(allowed_maintenance=words)
        if self._database.change(lambda connection: connection.execute(change).rowcount) == 0:
            raise _not_found(name)

    # ------------------------------------------------------------------------------------------------- private
    def _select(self, condition: ColumnElement[bool], more: Iterable[ColumnElement[Any]] = ()) -> Sequence[Row[Any]]:
        query = select_tables(condition, unpublished(), more)
        return self._database.read(lambda connection: connection.execute(query).all())

    def _row(self, table_id: str, name: TableName, location: str, *, state: str, managed: bool) -> dict[str, Any]:
        now = self._settings.clock()
        return {
            "table_id": table_id,
            "catalog_key": name_key(name.catalog),
            "schema_key": name_key(name.schema),
            "name_key": name_key(name.name),
            "catalog": name.catalog,
            "schema_name": name.schema,
            "name": name.name,
            "location": location,
            "state": state,
            "managed": managed,
            "created_by": self._settings.principal,
            "created_ms": now,
            "updated_ms": now,
        }

    def _check_first_commit(self, staging: StagingTable) -> None:
        if not self._settings.verify_files:
            return
        path = published_path(staging.location, 0)
        try:
            self.table_store(staging.location).status(path)
        except FileNotFoundInStoreError:
            raise InvalidProposalError(
                f"The table {staging.name} cannot be created: there is no '{path}'. Write its version 0 first.",
                table=str(staging.name),
            ) from None

    def _check_staging(self, staging: StagingTable, row: Row[Any] | None) -> None:
        if row is None or row.location != staging.location:
            raise InvalidProposalError(
                f"The table {staging.name} cannot be created: its staging table is not known to the catalog.",
                table=str(staging.name),
            )
        if row.state == DROPPED:
            raise TableReplacedError(f"The table {staging.name} was dropped meanwhile.", table=str(staging.name))
        if row.state == STAGING and (row.catalog_key, row.schema_key, row.name_key) != _keys(staging.name):
            raise InvalidProposalError(
                f"The staging table was created for a name other than {staging.name}.", table=str(staging.name)
            )
        self._require_creator(row)

    def _require_creator(self, row: Row[Any]) -> None:
        if row.created_by != self._settings.principal:
            raise NotAuthorizedError("Only the client that created a staging table can use it.", table_id=row.table_id)

    def _table_location(self, location: str) -> str:
        try:
            place = normalize_location(location)
            store = self.table_store(place)
            size = len(place.encode())
        except (InvalidOperationError, UnsupportedTableError) as error:
            raise InvalidProposalError(error.message, location=location) from error
        except UnicodeEncodeError:
            raise InvalidProposalError(f"The location {shown(location)} is not Unicode.", location=location) from None
        if size > _LONGEST_LOCATION:
            raise InvalidProposalError(
                f"The location {shown(place)} is longer than {_LONGEST_LOCATION} bytes.", location=location
            )
        with storage_failures():
            found = next(iter(store.list_from(join(place, LOG_DIRECTORY, "0"))), None)
        if found is None:
            raise InvalidProposalError(f"There is no Delta table at '{place}'.", location=place)
        return place


def _is_named(name: TableName) -> ColumnElement[bool]:
    catalog, schema, table = _keys(name)
    return and_(tables.c.catalog_key == catalog, tables.c.schema_key == schema, tables.c.name_key == table)


def _keys(name: TableName) -> tuple[str, str, str]:
    return name_key(name.catalog), name_key(name.schema), name_key(name.name)


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _give_name(connection: Connection, statement: Any, name: TableName) -> int:
    """Run a statement that gives a table a name; return the number of changed rows. Raises CatalogNameExistsError."""
    try:
        return connection.execute(statement).rowcount
    except IntegrityError:
        raise _exists(name) from None


def _staging(table_id: str, name: TableName, location: str) -> StagingTable:
    return StagingTable(
        table_id=table_id,
        name=name,
        location=location,
        required_features=_FEATURES,
        suggested_features=_SUGGESTED,
        required_properties=dict(_PROPERTIES),
    )


def _not_found(name: TableName) -> CatalogError:
    return CatalogNameNotFoundError(f"The catalog has no table {name}.", table=str(name))


def _exists(name: TableName) -> CatalogError:
    return CatalogNameExistsError(f"The catalog already has a table {name}.", table=str(name))
