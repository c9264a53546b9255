"""The OpenAPI description of the server, derived from its operations."""

from __future__ import annotations

import re
from typing import Any

from msgspec.json import schema_components

from pyspark_delta._version import __version__
from pyspark_delta.server.delta_models import Error
from pyspark_delta.server.legacy_models import LegacyError
from pyspark_delta.server.operation import BASE, Operation

Schemas = dict[Any, dict[str, Any]]
"""The JSON schemas of the types of requests and responses."""

PATH = "/openapi.json"
_PARAMETER = re.compile(r"\{(\w+)\}")
_REASONS = {
    400: "The request is not valid",
    401: "The token is missing, unknown or expired",
    403: "The token does not allow this",
    404: "The catalog, schema or table does not exist",
    409: "The name or the version is taken, or the table has changed",
    413: "The request is too large",
    408: "The body of the request did not arrive in time",
    429: "Earlier commits must be published first, or the server has too many requests",
    500: "The server failed; the request may have been done",
}


def description(operations: tuple[Operation[Any], ...]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of operations."""
    types = [kind for o in operations for kind in (o.takes, o.answers) if kind is not None]
    found, components = schema_components([*types, Error, LegacyError], ref_template="#/components/schemas/{name}")
    schemas = dict(zip([*types, Error, LegacyError], found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pyspark-delta catalog",
            "summary": "A catalog of Delta tables, through Unity Catalog's API",
            "version": __version__,
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _described(operation: Operation[Any], schemas: Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _id(operation),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": {**_success(operation, schemas), **_failures(operation, schemas)},
    }
    if operation.takes is not None:
        described["requestBody"] = {"required": True, "content": _json(schemas[operation.takes])}
    return described


def _id(operation: Operation[Any]) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", operation.path) if word]
    return "_".join([operation.method.lower(), *words])


def _path_parameters(operation: Operation[Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(operation.path)
    ]


def _query_parameters(operation: Operation[Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    _, components = schema_components([operation.query])
    schema = components[operation.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema["required"], "schema": parameter}
        for name, parameter in schema["properties"].items()
    ]


def _success(operation: Operation[Any], schemas: Schemas) -> dict[str, Any]:
    if operation.answers is None:
        return {"204": {"description": "Done"}}
    schema = schemas[operation.answers]
    content = {"text/plain": {"schema": schema}} if operation.answers is str else _json(schema)
    return {"200": {"description": "Done", "content": content}}


def _failures(operation: Operation[Any], schemas: Schemas) -> dict[str, Any]:
    statuses = {400, 401, 403, 404, 429, 500}
    if operation.takes is not None:
        statuses |= {408, 413}
    if operation.may_conflict:
        statuses.add(409)
    body = schemas[Error if operation.is_delta_api else LegacyError]
    content = {} if operation.method == "HEAD" else {"content": _json(body)}
    return {str(status): {"description": _REASONS[status], **content} for status in sorted(statuses)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
