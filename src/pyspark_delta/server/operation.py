"""An operation of the API: its path, the permission it needs, its request and its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import msgspec

from pyspark_delta.catalog.sql.tokens import Scope, Token
from pyspark_delta.server.failures import Failure, FailureKind, invalid
from pyspark_delta.server.served import ServedCatalog, ServerSettings

BASE = "/api/2.1/unity-catalog"
R = TypeVar("R")
_LONGEST_REASON = 300  # characters; the reason may quote the request


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[R]):
    """A request to an operation: the catalog as the caller sees it, and the data of the request.

    `caller` is the token, None if the server requires none. `request` decodes the data.
    """

    catalog: ServedCatalog
    caller: Token | None
    settings: ServerSettings
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    operation: Operation[R]

    def request(self) -> R:
        """Return the request, decoded from the body or the query. Raises Failure."""
        takes, query = self.operation.takes, self.operation.query
        try:
            found: Any = (
                msgspec.convert(dict(self.query), query, strict=False)
                if takes is None
                else msgspec.json.decode(self.body, type=takes)
            )
        except msgspec.ValidationError as error:
            raise invalid(f"The request is not valid: {str(error)[:_LONGEST_REASON]}.") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = str(error)[:_LONGEST_REASON]
            raise Failure(FailureKind.BAD_REQUEST, f"The body of the request is not JSON: {reason}.") from None
        return cast(R, found)

    def require_scope(self, scope: Scope) -> None:
        """Raise Failure if the caller's token does not include a scope."""
        if self.caller is not None and not self.caller.allows(scope):
            raise Failure(
                FailureKind.NOT_ALLOWED, f"The token does not allow this: it needs the scope '{scope.value}'."
            )

    def require_reach(self, catalog: str, schema: str) -> None:
        """Raise Failure if the caller's token is limited to other schemas. The schema need not exist."""
        if not self.reaches(catalog, schema):
            raise Failure(FailureKind.NOT_ALLOWED, f"The token is not valid for the schema '{catalog}.{schema}'.")

    def reaches(self, catalog: str, schema: str) -> bool:
        """Return True if the caller's token gives access to a schema."""
        return self.caller is None or self.caller.reaches(catalog, schema)

    def reaches_catalog(self, catalog: str) -> bool:
        """Return True if the caller's token gives access to any schema of a catalog."""
        if self.caller is None or self.caller.schemas is None:
            return True
        return any(self.reaches(catalog, schema) for _, schema in self.caller.schemas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The response of an operation: a model, plain text if `body` is a `str`, or only a status."""

    body: msgspec.Struct | str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


NO_CONTENT = Reply(status=204)
DONE = Reply(body="200 OK")
"""The response of Unity Catalog's legacy endpoints to a request that succeeds without a result."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[R]):
    """One method of one path below `BASE`.

    `work` executes it. The request is in the body if `takes` is a type, otherwise in the query with the type `query`.
    `answers` is the type of a successful response: None for status 204, `str` for the text `200 OK`. `scope` is the
    scope that the token needs; None if `work` checks it, because it depends on the request. With `may_conflict`, the
    operation can fail with status 409.
    """

    method: str
    path: str
    summary: str
    work: Callable[[Call[R]], Reply]
    scope: Scope | None
    takes: Any = None
    query: Any = None
    answers: type[msgspec.Struct | str] | None = None
    may_conflict: bool = False

    @property
    def is_delta_api(self) -> bool:
        """True if the operation belongs to the Delta API, whose errors have another form."""
        return self.path.startswith("/delta/v1/")
