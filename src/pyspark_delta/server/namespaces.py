"""Catalogs and schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.errors import CatalogNameExistsError
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.legacy_models import (
    Catalog,
    Catalogs,
    CreateCatalog,
    CreateSchema,
    DropQuery,
    PageQuery,
    Schema,
    Schemas,
    SchemasQuery,
)
from pyspark_delta.server.names import full_name, name_part
from pyspark_delta.server.operation import DONE, Call, Operation, Reply
from pyspark_delta.server.pages import page_of


# ------------------------------------------------------------------------------------------------------ catalogs
def _list_catalogs(call: Call[PageQuery]) -> Reply:
    seen = [name for name in call.catalog.list_catalogs() if call.reaches_catalog(name)]
    page, rest = page_of(call.request(), seen, str)
    return Reply(body=Catalogs(catalogs=[_shown_catalog(name) for name in page], next_page_token=rest))


def _create_catalog(call: Call[CreateCatalog]) -> Reply:
    name = call.request().name
    _require_all(call)
    try:
        call.catalog.create_catalog(name)
    except CatalogNameExistsError as error:
        raise Failure(FailureKind.CATALOG_EXISTS, error.message) from None
    return Reply(body=_shown_catalog(name))


def _load_catalog(call: Call[Any]) -> Reply:
    return Reply(body=_shown_catalog(require_catalog(call, name_part(call.path["name"], "The name"))))


def _drop_catalog(call: Call[Any]) -> Reply:
    name = require_catalog(call, name_part(call.path["name"], "The name"))
    _require_all(call)
    if call.catalog.list_schemas(name):
        raise Failure(FailureKind.NOT_EMPTY, f"The catalog '{name}' has schemas. Drop them first.")
    call.catalog.drop_catalog(name)
    return DONE


def require_catalog(call: Call[Any], name: str) -> str:
    """Return the name of a catalog in its stored spelling; `name` may differ in case.

    Raises Failure if there is no such catalog, or if the caller's token does not give access to it.
    """
    found = _spelled(call.catalog.list_catalogs(), name)
    if found is None or not call.reaches_catalog(found):
        raise Failure(FailureKind.NO_CATALOG, f"There is no catalog '{name}'. Create it first.")
    return found


def _shown_catalog(name: str) -> Catalog:
    return Catalog(name=name, comment=None, properties={})


def _require_all(call: Call[Any]) -> None:
    if call.caller is not None and call.caller.schemas is not None:
        raise Failure(FailureKind.NOT_ALLOWED, "The token is limited to some schemas.")


# ------------------------------------------------------------------------------------------------------- schemas
def _list_schemas(call: Call[SchemasQuery]) -> Reply:
    query = call.request()
    catalog = require_catalog(call, name_part(query.catalog_name, "'catalog_name'"))
    seen = [name for name in call.catalog.list_schemas(catalog) if call.reaches(catalog, name)]
    page, rest = page_of(query, seen, str)
    return Reply(body=Schemas(schemas=[_schema(catalog, name) for name in page], next_page_token=rest))


def _create_schema(call: Call[CreateSchema]) -> Reply:
    request = call.request()
    catalog, name = name_part(request.catalog_name, "'catalog_name'"), request.name
    call.require_reach(catalog, name)
    catalog = require_catalog(call, catalog)
    try:
        call.catalog.create_schema(catalog, name)
    except CatalogNameExistsError as error:
        raise Failure(FailureKind.SCHEMA_EXISTS, error.message) from None
    return Reply(body=_schema(catalog, name))


def _load_schema(call: Call[Any]) -> Reply:
    return Reply(body=_schema(*_found(call)))


def _drop_schema(call: Call[Any]) -> Reply:
    catalog, schema = _found(call)
    if call.catalog.list_tables(catalog, schema):
        raise Failure(FailureKind.NOT_EMPTY, f"The schema '{catalog}.{schema}' has tables. Drop them first.")
    call.catalog.drop_schema(catalog, schema)
    return DONE


def _found(call: Call[Any]) -> tuple[str, str]:
    catalog, schema = full_name(call.path["full_name"], 2)
    call.require_reach(catalog, schema)
    found = _spelled(call.catalog.list_schemas(catalog), schema)
    if found is None:
        raise Failure(FailureKind.NO_SCHEMA, f"There is no schema '{catalog}.{schema}'.")
    return catalog, found


def _schema(catalog: str, name: str) -> Schema:
    return Schema(name=name, catalog_name=catalog, full_name=f"{catalog}.{name}", comment=None, properties={})


def _spelled(names: Iterable[str], wanted: str) -> str | None:
    return next((name for name in names if name.casefold() == wanted.casefold()), None)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation("GET", "/catalogs", "List the catalogs", _list_catalogs, Scope.READ, query=PageQuery, answers=Catalogs),
    Operation("POST", "/catalogs", "Create a catalog", _create_catalog, Scope.ADMIN, CreateCatalog, answers=Catalog),
    Operation("GET", "/catalogs/{name}", "Load a catalog", _load_catalog, Scope.READ, answers=Catalog),
    Operation("DELETE", "/catalogs/{name}", "Drop a catalog without schemas", _drop_catalog, Scope.ADMIN, answers=str),
    Operation(
        "GET",
        "/schemas",
        "List the schemas of a catalog",
        _list_schemas,
        Scope.READ,
        query=SchemasQuery,
        answers=Schemas,
    ),
    Operation("POST", "/schemas", "Create a schema", _create_schema, Scope.ADMIN, CreateSchema, answers=Schema),
    Operation("GET", "/schemas/{full_name}", "Load a schema", _load_schema, Scope.READ, answers=Schema),
    Operation(
        "DELETE",
        "/schemas/{full_name}",
        "Drop a schema without tables",
        _drop_schema,
        Scope.ADMIN,
        query=DropQuery,
        answers=str,
    ),
)
