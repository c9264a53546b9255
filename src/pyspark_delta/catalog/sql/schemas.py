"""The schemas of a catalog in a database."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, select
from sqlalchemy.exc import IntegrityError

from pyspark_delta.catalog.identifiers import name_key, shown
from pyspark_delta.catalog.sql.part import CatalogPart
from pyspark_delta.catalog.sql.tables import ACTIVE, schemas, tables
from pyspark_delta.errors import CatalogNameExistsError, CatalogNameNotFoundError, InvalidProposalError


class Schemas(CatalogPart):
    """Creates, lists and drops catalogs and schemas.

    A catalog exists from its creation, or from the creation of its first schema, until it is dropped. A row with an
    empty schema name stands for a catalog that may have no schema.
    """

    def create_catalog(self, catalog: str) -> None:
        """Create a catalog, and the SQLite file if it is missing. Raises CatalogNameExistsError."""
        self._database.create()
        values = self._schema_row(catalog, "", "")
        is_catalog = schemas.c.catalog_key == values["catalog_key"]

        def create(connection: Connection) -> bool:
            if connection.execute(select(schemas.c.catalog).where(is_catalog)).first():
                return False
            connection.execute(insert(schemas).values(**values))
            return True

        if not self._database.change(create):
            raise CatalogNameExistsError(f"There is already a catalog {shown(catalog)}.", catalog=catalog)

    def drop_catalog(self, catalog: str) -> None:
        """Drop a catalog. Raises CatalogNameNotFoundError, and InvalidProposalError for a catalog with schemas."""
        is_catalog = schemas.c.catalog_key == name_key(catalog)

        def drop(connection: Connection) -> None:
            query = select(schemas.c.schema_key).where(is_catalog).with_for_update()
            found = connection.execute(query).scalars().all()
            if not found:
                raise CatalogNameNotFoundError(f"There is no catalog {shown(catalog)}.", catalog=catalog)
            if any(found):
                raise InvalidProposalError(
                    f"The catalog {shown(catalog)} has schemas. Drop them first.", catalog=catalog
                )
            connection.execute(delete(schemas).where(is_catalog))

        self._database.change(drop)

    def create_schema(self, catalog: str, schema: str) -> None:
        """Create a schema, and the SQLite file if it is missing. Raises CatalogNameExistsError."""
        self._database.create()
        values = self._schema_row(catalog, schema, name_key(schema))
        try:
            self._database.change(lambda connection: _insert(connection, values))
        except _Taken:
            raise CatalogNameExistsError(
                f"The catalog {shown(catalog)} already has a schema {shown(schema)}.", catalog=catalog, schema=schema
            ) from None

    def list_schemas(self, catalog: str) -> list[str]:
        """Return the names of the schemas, sorted."""
        condition = and_(schemas.c.catalog_key == name_key(catalog), schemas.c.schema_key != "")
        query = select(schemas.c.name).where(condition)
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def list_catalogs(self) -> list[str]:
        """Return the names of the catalogs, sorted."""
        query = select(schemas.c.catalog_key, schemas.c.catalog)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return sorted({row.catalog_key: row.catalog for row in rows}.values())

    def drop_schema(self, catalog: str, schema: str) -> None:
        """Drop a schema. Raises CatalogNameNotFoundError, and InvalidProposalError for a schema with tables."""

        def drop(connection: Connection) -> None:
            lock_schemas(connection, [(catalog, schema)])
            keys = name_key(catalog), name_key(schema)
            occupied = exists().where(
                tables.c.catalog_key == keys[0], tables.c.schema_key == keys[1], tables.c.state == ACTIVE
            )
            if connection.execute(select(occupied)).scalar():
                raise InvalidProposalError(
                    f"The schema {shown(schema)} of the catalog {shown(catalog)} has tables. Drop them first.",
                    catalog=catalog,
                    schema=schema,
                )
            _keep_catalog(connection, keys[0])
            connection.execute(delete(schemas).where(_is_schema(*keys)))

        self._database.change(drop)

    def require_schema(self, catalog: str, schema: str) -> None:
        """Raise CatalogNameNotFoundError if the schema does not exist."""
        query = select(schemas.c.name).where(_is_schema(name_key(catalog), name_key(schema)))
        if self._database.read(lambda connection: connection.execute(query).scalar()) is None:
            raise _no_schema(catalog, schema)

    def _schema_row(self, catalog: str, schema: str, key: str) -> dict[str, object]:
        return {
            "catalog_key": name_key(catalog),
            "schema_key": key,
            "catalog": catalog,
            "name": schema,
            "created_ms": self._settings.clock(),
        }


def _keep_catalog(connection: Connection, key: str) -> None:
    """Add the row that keeps a catalog without schemas, unless it exists."""
    rows = connection.execute(select(schemas).where(schemas.c.catalog_key == key)).all()
    if all(row.schema_key for row in rows):
        values = {"catalog_key": key, "schema_key": "", "catalog": rows[0].catalog, "name": ""}
        connection.execute(insert(schemas).values(**values, created_ms=rows[0].created_ms))


class _Taken(Exception):
    """The schema exists."""


def _insert(connection: Connection, values: dict[str, object]) -> None:
    try:
        connection.execute(insert(schemas).values(**values))
    except IntegrityError:
        raise _Taken from None


def lock_schemas(connection: Connection, names: Iterable[tuple[str, str]]) -> None:
    """Lock schemas, given as pairs of catalog and schema, until the transaction ends; sorted, to avoid deadlocks.

    A transaction that gives a table a name locks its schema. Raises CatalogNameNotFoundError if a schema is missing.
    """
    for keys, (catalog, schema) in sorted({(name_key(c), name_key(s)): (c, s) for c, s in names}.items()):
        query = select(schemas.c.name).where(_is_schema(*keys)).with_for_update()
        if connection.execute(query).scalar() is None:
            raise _no_schema(catalog, schema)


def _is_schema(catalog_key: str, schema_key: str) -> ColumnElement[bool]:
    return and_(schemas.c.catalog_key == catalog_key, schemas.c.schema_key == schema_key)


def _no_schema(catalog: str, schema: str) -> CatalogNameNotFoundError:
    return CatalogNameNotFoundError(
        f"The catalog {shown(catalog)} has no schema {shown(schema)}. Create it first.",
        error_class="SCHEMA_NOT_FOUND",
        catalog=catalog,
        schema=schema,
    )
