"""The OpenAPI description of the server, derived from its operations."""

from __future__ import annotations

import re
from typing import Any

from pyspark_delta._version import __version__
from pyspark_delta.server import schemas
from pyspark_delta.server.operation import BASE, Operation

PATH = "/openapi.json"
_PARAMETER = re.compile(r"\{(\w+)\}")
_REASONS = {
    400: "The request is not valid",
    401: "The token is missing, unknown or expired",
    403: "The token does not allow this",
    404: "There is no such thing",
    409: "Something else is there already, or has changed",
    413: "The request is too large",
    408: "The body of the request did not come in time",
    429: "Earlier commits have to be published first, or the server has too many requests",
    500: "The server failed; the request may have been done",
}


def description(operations: tuple[Operation, ...]) -> dict[str, Any]:
    """Return the description (OpenAPI 3.1)."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pyspark-delta catalog",
            "summary": "A catalog of Delta tables, through Unity Catalog's API",
            "version": __version__,
        },
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _id(operation),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": {**_success(operation), **_failures(operation)},
    }
    if operation.takes is not None:
        described["requestBody"] = {"required": True, "content": _json(operation.takes)}
    return described


def _id(operation: Operation) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", operation.path) if word]
    return "_".join([operation.method.lower(), *words])


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": required, "schema": schema}
        for name, (schema, required) in operation.query.items()
    ]


def _success(operation: Operation) -> dict[str, Any]:
    if operation.says_done:
        return {"200": {"description": "Done", "content": {"text/plain": {"schema": schemas.TEXT}}}}
    if operation.answers is None:
        return {"204": {"description": "Done"}}
    return {"200": {"description": "Done", "content": _json(operation.answers)}}


def _failures(operation: Operation) -> dict[str, Any]:
    statuses = sorted({*operation.failures, *((408, 413) if operation.takes is not None else ()), 429, 500})
    body = schemas.ERROR if operation.is_delta_api else schemas.LEGACY_ERROR
    content = {} if operation.method == "HEAD" else {"content": _json(body)}
    return {str(status): {"description": _REASONS[status], **content} for status in statuses}


def _json(schema: schemas.Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
