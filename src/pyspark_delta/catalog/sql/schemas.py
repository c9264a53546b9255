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
    """Making, listing and dropping schemas. A catalog in the database is there as soon as it has a schema."""

    def create_schema(self, catalog: str, schema: str) -> None:
        """Make a schema, and the file of a catalog in SQLite with its first one. Raises CatalogNameExistsError."""
        self._database.create()
        values = {
            "catalog_key": name_key(catalog),
            "schema_key": name_key(schema),
            "catalog": catalog,
            "name": schema,
            "created_ms": self._settings.clock(),
        }
        try:
            self._database.change(lambda connection: _insert(connection, values))
        except _Taken:
            raise CatalogNameExistsError(
                f"The catalog {shown(catalog)} has a schema {shown(schema)} already.", catalog=catalog, schema=schema
            ) from None

    def list_schemas(self, catalog: str) -> list[str]:
        """The names of the schemas, sorted."""
        condition = schemas.c.catalog_key == name_key(catalog)
        query = select(schemas.c.name).where(condition)
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def list_catalogs(self) -> list[str]:
        """The names of the catalogs that have schemas, sorted."""
        query = select(schemas.c.catalog_key, schemas.c.catalog)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return sorted({row.catalog_key: row.catalog for row in rows}.values())

    def drop_schema(self, catalog: str, schema: str) -> None:
        """Raises CatalogNameNotFoundError, InvalidProposalError for one with tables."""

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
            connection.execute(delete(schemas).where(_is_schema(*keys)))

        self._database.change(drop)

    def require_schema(self, catalog: str, schema: str) -> None:
        """Raises CatalogNameNotFoundError where there is no such schema."""
        query = select(schemas.c.name).where(_is_schema(name_key(catalog), name_key(schema)))
        if self._database.read(lambda connection: connection.execute(query).scalar()) is None:
            raise _no_schema(catalog, schema)


class _Taken(Exception):
    """The schema is there."""


def _insert(connection: Connection, values: dict[str, object]) -> None:
    try:
        connection.execute(insert(schemas).values(**values))
    except IntegrityError:
        raise _Taken from None


def lock_schemas(connection: Connection, names: Iterable[tuple[str, str]]) -> None:
    """Hold schemas, by catalog and name, until the transaction ends: in one order, so that nobody waits in a circle.

    Whoever gives names to tables holds their schemas. Raises CatalogNameNotFoundError for one that is not there.
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
