"""The ASGI application: identifies the caller and the operation, runs the work in a thread, and responds.

A request that its token does not allow is refused before its body is read. Internal errors are logged; their details
are not sent to the client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from pyspark_delta.catalog.sql.tokens import Token
from pyspark_delta.errors import DeltaError
from pyspark_delta.server import delta_api, legacy_api, namespaces, openapi
from pyspark_delta.server.access_log import AccessLog, one_line
from pyspark_delta.server.cleaning import cleaning
from pyspark_delta.server.failures import Failure, FailureKind, failed_response, failure_of
from pyspark_delta.server.local_only import LocalOnly
from pyspark_delta.server.operation import BASE, Call, Operation, Reply
from pyspark_delta.server.served import ServedCatalog, ServerSettings
from pyspark_delta.server.workers import Workers

OPERATIONS = (*delta_api.OPERATIONS, *namespaces.OPERATIONS, *legacy_api.OPERATIONS)

_log = logging.getLogger("pyspark_delta.server")
_DEFAULT_SETTINGS = ServerSettings()
_JSON = "application/json"
_LOOKUP_THREADS = 4
_LONGEST_QUEUE = 200  # waiting requests of one caller


class TokenSource(Protocol):
    """Looks up tokens by their secrets."""

    def look_up(self, secret: str) -> Token | None:
        """Return the token with a secret; None if it is unknown or expired."""
        ...


def create_application(
    catalog: ServedCatalog, tokens: TokenSource | None, settings: ServerSettings = _DEFAULT_SETTINGS
) -> Starlette:
    """Return the application that serves a catalog. Without `tokens` every client has full access."""
    catalog = catalog.serving()
    endpoint = _Endpoint(catalog, tokens, settings)
    by_path: dict[str, dict[str, Operation[Any]]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(BASE + operation.path, {})[operation.method] = operation
    routes = [Route(path, endpoint.of(operations), methods=sorted(operations)) for path, operations in by_path.items()]
    routes.append(Route(openapi.PATH, _describe, methods=["GET"]))
    return Starlette(
        routes=routes,
        middleware=[Middleware(AccessLog), *([Middleware(LocalOnly)] if tokens is None else [])],
        exception_handlers={HTTPException: _no_operation},
        lifespan=None if settings.clean_after is None else cleaning(catalog, settings.clean_after),
    )


class _Endpoint:
    def __init__(self, catalog: ServedCatalog, tokens: TokenSource | None, settings: ServerSettings) -> None:
        self._catalog = catalog
        self._tokens = tokens
        self._settings = settings
        each, patience = max(settings.threads // 2, 1), settings.wait_seconds
        self._workers = Workers(settings.threads, each, waiting=_LONGEST_QUEUE, patience=patience)
        # Separate threads look up tokens, so that callers are identified while all other threads are busy.
        self._lookups = Workers(_LOOKUP_THREADS, _LOOKUP_THREADS, waiting=_LONGEST_QUEUE, patience=patience)

    def of(self, operations: dict[str, Operation[Any]]) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint for the operations of one path, by their methods."""

        async def answer(request: Request) -> Response:
            operation = operations.get(request.method)
            if operation is None:  # Starlette adds HEAD to GET
                operation = operations["GET"]
            try:
                return _response(await self._reply(operation, request), request)
            except Failure as failure:
                return failed_response(failure, request.scope)

        return answer

    async def _reply(self, operation: Operation[Any], request: Request) -> Reply:
        try:
            caller = await self._caller(request)
            call: Call[Any] = Call(
                catalog=self._catalog if caller is None else self._catalog.acting_as(caller.principal),
                caller=caller,
                settings=self._settings,
                path=request.path_params,
                query=request.query_params,
                body=b"",
                operation=operation,
            )
            if operation.scope is not None:
                call.require_scope(operation.scope)
            async with self._workers.turn("" if caller is None else caller.principal):
                if operation.takes is not None:
                    call = replace(call, body=await _body(request, self._settings))
                return await self._workers.run(operation.work, call)
        except DeltaError as error:
            failure = failure_of(error)
            if failure.kind.value.status >= 500:
                _log.error("%s %s failed: %s", operation.method, operation.path, one_line(str(error)))
                failure = Failure(failure.kind, "The server failed. It is not known whether the request was done.")
            raise failure from error
        except (Failure, ClientDisconnect):
            raise
        except Exception:
            _log.exception("%s %s failed", operation.method, operation.path)
            raise Failure(
                FailureKind.INTERNAL, "The server failed. It is not known whether the request was done."
            ) from None

    async def _caller(self, request: Request) -> Token | None:
        if self._tokens is None:
            return None
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        token = None
        if scheme.lower() == "bearer" and secret.strip():
            token = await self._lookups.run(self._tokens.look_up, secret.strip())
        if token is None:
            raise Failure(
                FailureKind.NOT_AUTHENTICATED, "The request needs a valid token: 'Authorization: Bearer <token>'."
            )
        request.state.principal = token.principal
        return token


async def _body(request: Request, settings: ServerSettings) -> bytes:
    """Return the body of a request. Raises Failure if it is too large, too slow, or not declared as JSON."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise Failure(FailureKind.BAD_REQUEST, f"The body of the request must be JSON: send 'Content-Type: {_JSON}'.")
    try:
        async with asyncio.timeout(settings.body_seconds):
            return await _content(request, settings.max_body_bytes)
    except TimeoutError:
        raise Failure(
            FailureKind.TIMEOUT, f"The body of the request did not arrive within {settings.body_seconds:g} seconds."
        ) from None


async def _content(request: Request, limit: int) -> bytes:
    too_large = Failure(FailureKind.TOO_LARGE, f"The body of a request cannot have more than {limit} bytes.")
    declared = request.headers.get("Content-Length", "")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise too_large
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise too_large
        chunks.append(chunk)
    return b"".join(chunks)


# ------------------------------------------------------------------------------------------------------- answers
def _response(reply: Reply, request: Request) -> Response:
    if reply.status == 204:
        return Response(status_code=204, headers=dict(reply.headers))
    if isinstance(reply.body, str):
        return Response(reply.body, reply.status, dict(reply.headers), "text/plain")
    return _json(reply.body, reply.status, dict(reply.headers), request)


def _json(body: Any, status: int, headers: dict[str, str], request: Request) -> Response:
    content = b"" if request.method == "HEAD" else msgspec.json.encode(body)
    return Response(content, status, headers, _JSON)


async def _describe(request: Request) -> Response:
    return _json(openapi.description(OPERATIONS), 200, {}, request)


async def _no_operation(request: Request, error: Exception) -> Response:
    """Return the response to a request whose path or method the server does not have."""
    assert isinstance(error, HTTPException)
    kind = FailureKind.NO_METHOD if error.status_code == 405 else FailureKind.NOT_FOUND
    failure = Failure(kind, "The server has no such operation. See /openapi.json for its operations.")
    response = failed_response(failure, request.scope)
    response.headers.update(error.headers or {})
    return response
