"""Catalogs and schemas. A catalog is there as long as it has a schema; one is made with the schema `default`."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.server import schemas
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.fields import full_name, invalid, members, name_part
from pyspark_delta.server.operation import Call, Operation, Reply
from pyspark_delta.server.pages import PAGE_QUERY, page_of

_FIRST_SCHEMA = "default"


# ------------------------------------------------------------------------------------------------------ catalogs
def _list_catalogs(call: Call) -> Reply:
    seen = [name for name in call.catalog.list_catalogs() if call.reaches_catalog(name)]
    page, rest = page_of(call, seen, str)
    return Reply(body={"catalogs": [{"name": name} for name in page], **rest})


def _create_catalog(call: Call) -> Reply:
    name = name_part(members(call.body, "The request").get("name"), "'name'")
    _require_all(call)
    if _spelled(call.catalog.list_catalogs(), name) is not None:
        raise Failure(FailureKind.EXISTS, f"There is a catalog '{name}' already.")
    call.catalog.create_schema(name, _FIRST_SCHEMA)
    return Reply(body={"name": name})


def _load_catalog(call: Call) -> Reply:
    return Reply(body={"name": _catalog(call, name_part(call.path["name"], "The name"))})


def _drop_catalog(call: Call) -> Reply:
    name = _catalog(call, name_part(call.path["name"], "The name"))
    _require_all(call)
    found = call.catalog.list_schemas(name)
    if found != [_FIRST_SCHEMA]:
        raise invalid(f"The catalog '{name}' has schemas besides '{_FIRST_SCHEMA}'. Drop them first.")
    call.catalog.drop_schema(name, _FIRST_SCHEMA)
    return Reply(body={})


def _catalog(call: Call, name: str) -> str:
    found = _spelled(call.catalog.list_catalogs(), name)
    if found is None or not call.reaches_catalog(found):
        raise Failure(FailureKind.NOT_FOUND, f"There is no catalog '{name}'.")
    return found


def _require_all(call: Call) -> None:
    if call.caller is not None and call.caller.schemas is not None:
        raise Failure(FailureKind.NOT_ALLOWED, "The token is for some schemas only.")


# ------------------------------------------------------------------------------------------------------- schemas
def _list_schemas(call: Call) -> Reply:
    catalog = name_part(call.query.get("catalog_name"), "'catalog_name'")
    seen = [name for name in call.catalog.list_schemas(catalog) if call.reaches(catalog, name)]
    page, rest = page_of(call, seen, str)
    return Reply(body={"schemas": [_schema(catalog, name) for name in page], **rest})


def _create_schema(call: Call) -> Reply:
    body = members(call.body, "The request")
    catalog, name = name_part(body.get("catalog_name"), "'catalog_name'"), name_part(body.get("name"), "'name'")
    call.require_reach(catalog, name)
    call.catalog.create_schema(catalog, name)
    return Reply(body=_schema(catalog, name))


def _load_schema(call: Call) -> Reply:
    return Reply(body=_schema(*_found(call)))


def _drop_schema(call: Call) -> Reply:
    catalog, schema = _found(call)
    if call.query.get("force", "").lower() == "true" and call.catalog.list_tables(catalog, schema):
        raise invalid("A schema is dropped without its tables only: drop them first.")
    call.catalog.drop_schema(catalog, schema)
    return Reply(body={})


def _found(call: Call) -> tuple[str, str]:
    catalog, schema = full_name(call.path["full_name"], 2)
    call.require_reach(catalog, schema)
    found = _spelled(call.catalog.list_schemas(catalog), schema)
    if found is None:
        raise Failure(FailureKind.NO_SCHEMA, f"There is no schema '{catalog}.{schema}'.")
    return catalog, found


def _schema(catalog: str, name: str) -> dict[str, str]:
    return {"name": name, "catalog_name": catalog, "full_name": f"{catalog}.{name}"}


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
        failures=(400, 401, 403, 409),
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
        answers=schemas.EMPTY,
    ),
    Operation(
        method="GET",
        path="/schemas",
        summary="List the schemas of a catalog",
        scope=Scope.READ,
        work=_list_schemas,
        answers=schemas.page("schemas", schemas.SCHEMA),
        query={"catalog_name": (schemas.NAME, True), **PAGE_QUERY},
        failures=(400, 401, 403),
    ),
    Operation(
        method="POST",
        path="/schemas",
        summary="Create a schema",
        scope=Scope.ADMIN,
        work=_create_schema,
        takes=schemas.CREATE_SCHEMA,
        answers=schemas.SCHEMA,
        failures=(400, 401, 403, 409),
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
        answers=schemas.EMPTY,
        query={"force": ({"type": "string"}, False)},
    ),
)
