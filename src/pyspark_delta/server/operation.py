"""An operation of the API: its path, the permission it needs, its parameters and its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_delta.catalog.sql.tokens import Scope, Token
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.served import ServedCatalog, ServerSettings

BASE = "/api/2.1/unity-catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that has been read: the catalog as its sender sees it, and the data of the request.

    `caller` is the token, None if the server requires none. `body` is JSON.
    """

    catalog: ServedCatalog
    caller: Token | None
    settings: ServerSettings
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any

    def require_scope(self, scope: Scope) -> None:
        """Raise Failure if the caller's token does not include a scope."""
        if self.caller is not None and not self.caller.allows(scope):
            raise Failure(
                FailureKind.NOT_ALLOWED, f"The token does not allow this: it needs the scope '{scope.value}'."
            )

    def require_reach(self, catalog: str, schema: str) -> None:
        """Raise Failure if the caller's token is limited to other schemas, whether or not this one exists."""
        if not self.reaches(catalog, schema):
            raise Failure(FailureKind.NOT_ALLOWED, f"The token is not for the schema '{catalog}.{schema}'.")

    def reaches(self, catalog: str, schema: str) -> bool:
        """Return True if the caller's token is for a schema."""
        return self.caller is None or self.caller.reaches(catalog, schema)

    def reaches_catalog(self, catalog: str) -> bool:
        """Return True if the caller's token is for any schema of a catalog."""
        if self.caller is None or self.caller.schemas is None:
            return True
        return any(self.reaches(catalog, schema) for _, schema in self.caller.schemas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The response of an operation: JSON, plain text if `body` is a `str`, or only a status."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


NO_CONTENT = Reply(status=204)
DONE = Reply(body="200 OK")
"""What Unity Catalog's legacy endpoints answer if there is nothing to say."""

Schema = dict[str, Any]  # a JSON schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path below `BASE`; `answers` is the schema of a success, None for status 204, or for
    the text `200 OK` if the operation `says_done`.

    `query` are the parameters by name: their schema and whether they are required. `scope` is None if the operation
    asks for a scope itself, because it depends on the request.
    """

    method: str
    path: str
    summary: str
    scope: Scope | None
    work: Callable[[Call], Reply]
    takes: Schema | None = None
    answers: Schema | None = None
    says_done: bool = False
    query: Mapping[str, tuple[Schema, bool]] = field(default_factory=dict)
    failures: tuple[int, ...] = (400, 401, 403, 404)

    @property
    def is_delta_api(self) -> bool:
        """True if it belongs to the Delta API, and so uses its form of errors."""
        return self.path.startswith("/delta/v1/")
