"""Catalogs and schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.errors import CatalogNameExistsError
from pyspark_delta.server import schemas
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.fields import full_name, members, name_part, new_name
from pyspark_delta.server.operation import DONE, Call, Operation, Reply
from pyspark_delta.server.pages import PAGE_QUERY, page_of


# ------------------------------------------------------------------------------------------------------ catalogs
def _list_catalogs(call: Call) -> Reply:
    seen = [name for name in call.catalog.list_catalogs() if call.reaches_catalog(name)]
    page, rest = page_of(call, seen, str)
    return Reply(body={"catalogs": [_shown_catalog(name) for name in page], **rest})


def _create_catalog(call: Call) -> Reply:
    name = new_name(members(call.body, "The request").get("name"), "'name'")
    _require_all(call)
    try:
        call.catalog.create_catalog(name)
    except CatalogNameExistsError as error:
        raise Failure(FailureKind.CATALOG_EXISTS, error.message) from None
    return Reply(body=_shown_catalog(name))


def _load_catalog(call: Call) -> Reply:
    return Reply(body=_shown_catalog(require_catalog(call, name_part(call.path["name"], "The name"))))


def _drop_catalog(call: Call) -> Reply:
    name = require_catalog(call, name_part(call.path["name"], "The name"))
    _require_all(call)
    if call.catalog.list_schemas(name):
        raise Failure(FailureKind.NOT_EMPTY, f"The catalog '{name}' has schemas. Drop them first.")
    call.catalog.drop_catalog(name)
    return DONE


def require_catalog(call: Call, name: str) -> str:
    """Return the catalog of a name, as it is spelled.

    Raises Failure if the caller's token has access to no catalog of that name.
    """
    found = _spelled(call.catalog.list_catalogs(), name)
    if found is None or not call.reaches_catalog(found):
        raise Failure(FailureKind.NO_CATALOG, f"There is no catalog '{name}'. Create it first.")
    return found


def _shown_catalog(name: str) -> dict[str, Any]:
    return {"name": name, "comment": None, "properties": {}}


def _require_all(call: Call) -> None:
    if call.caller is not None and call.caller.schemas is not None:
        raise Failure(FailureKind.NOT_ALLOWED, "The token is for some schemas only.")


# ------------------------------------------------------------------------------------------------------- schemas
def _list_schemas(call: Call) -> Reply:
    catalog = require_catalog(call, name_part(call.query.get("catalog_name"), "'catalog_name'"))
    seen = [name for name in call.catalog.list_schemas(catalog) if call.reaches(catalog, name)]
    page, rest = page_of(call, seen, str)
    return Reply(body={"schemas": [_schema(catalog, name) for name in page], **rest})


def _create_schema(call: Call) -> Reply:
    body = members(call.body, "The request")
    catalog, name = name_part(body.get("catalog_name"), "'catalog_name'"), new_name(body.get("name"), "'name'")
    call.require_reach(catalog, name)
    catalog = require_catalog(call, catalog)
    try:
        call.catalog.create_schema(catalog, name)
    except CatalogNameExistsError as error:
        raise Failure(FailureKind.SCHEMA_EXISTS, error.message) from None
    return Reply(body=_schema(catalog, name))


def _load_schema(call: Call) -> Reply:
    return Reply(body=_schema(*_found(call)))


def _drop_schema(call: Call) -> Reply:
    catalog, schema = _found(call)
    if call.catalog.list_tables(catalog, schema):
        raise Failure(FailureKind.NOT_EMPTY, f"The schema '{catalog}.{schema}' has tables. Drop them first.")
    call.catalog.drop_schema(catalog, schema)
    return DONE


def _found(call: Call) -> tuple[str, str]:
    catalog, schema = full_name(call.path["full_name"], 2)
    call.require_reach(catalog, schema)
    found = _spelled(call.catalog.list_schemas(catalog), schema)
    if found is None:
        raise Failure(FailureKind.NO_SCHEMA, f"There is no schema '{catalog}.{schema}'.")
    return catalog, found


def _schema(catalog: str, name: str) -> dict[str, Any]:
    shown = {"name": name, "catalog_name": catalog, "full_name": f"{catalog}.{name}"}
    return {**shown, "comment": None, "properties": {}}


def _spelled(names: Iterable[str], wanted: str) -> str | None:
    return next((name for name in names if name.casefold() == wanted.casefold()), None)


OPERATIONS = (
    Operation(
        method="GET",
        path="/catalogs",
        summary="List the catalogs",
        scope=Scope.READ,
        work=_list_catalogs,
        answers=schemas.page("catalogs", schemas.CATALOG),
        query=PAGE_QUERY,
        failures=(400, 401, 403),
    ),
    Operation(
        method="POST",
        path="/catalogs",
        summary="Create a catalog",
        scope=Scope.ADMIN,
        work=_create_catalog,
        takes=schemas.CREATE_CATALOG,
        answers=schemas.CATALOG,
        failures=(400, 401, 403),
    ),
    Operation(
        method="GET",
        path="/catalogs/{name}",
        summary="Load a catalog",
        scope=Scope.READ,
        work=_load_catalog,
        answers=schemas.CATALOG,
    ),
    Operation(
        method="DELETE",
        path="/catalogs/{name}",
        summary="Drop a catalog without tables",
        scope=Scope.ADMIN,
        work=_drop_catalog,
        says_done=True,
    ),
    Operation(
        method="GET",
        path="/schemas",
        summary="List the schemas of a catalog",
        scope=Scope.READ,
        work=_list_schemas,
        answers=schemas.page("schemas", schemas.SCHEMA),
        query={"catalog_name": (schemas.NAME, True), **PAGE_QUERY},
    ),
    Operation(
        method="POST",
        path="/schemas",
        summary="Create a schema",
        scope=Scope.ADMIN,
        work=_create_schema,
        takes=schemas.CREATE_SCHEMA,
        answers=schemas.SCHEMA,
    ),
    Operation(
        method="GET",
        path="/schemas/{full_name}",
        summary="Load a schema",
        scope=Scope.READ,
        work=_load_schema,
        answers=schemas.SCHEMA,
    ),
    Operation(
        method="DELETE",
        path="/schemas/{full_name}",
        summary="Drop a schema without tables",
        scope=Scope.ADMIN,
        work=_drop_schema,
        says_done=True,
        query={"force": ({"type": "string"}, False)},
    ),
)
