"""Bearer tokens for a server over the catalog. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson
from sqlalchemy import Row, delete, insert, select

from pyspark_delta.catalog.clock import now_ms
from pyspark_delta.catalog.identifiers import name_key, shown
from pyspark_delta.catalog.sql.database import Database
from pyspark_delta.catalog.sql.tables import tokens
from pyspark_delta.errors import InvalidProposalError

PREFIX = "pdt_"
"""Every secret begins with this, so that scanners can recognize leaked secrets."""


class Scope(Enum):
    """What a token allows; each scope includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret.

    `schemas` limits the token to schemas, given as keys of catalog and schema; None means no limit. `expires_at` is in
    milliseconds since the epoch; None means never.
    """

    token_id: str
    principal: str
    scopes: frozenset[Scope]
    schemas: frozenset[tuple[str, str]] | None = None
    created_at: int = 0
    expires_at: int | None = None

    def allows(self, scope: Scope) -> bool:
        """Return True if the token has a scope or a wider one."""
        order = list(Scope)
        return any(order.index(own) >= order.index(scope) for own in self.scopes)

    def reaches(self, catalog: str, schema: str) -> bool:
        """Return True if the token is valid for a schema. Raises InvalidProposalError for an invalid name."""
        keys = name_key(catalog), name_key(schema)
        return self.schemas is None or keys in self.schemas


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which cannot be recovered."""

    token: Token
    secret: str = field(repr=False)


class Tokens:
    """The tokens in a database."""

    def __init__(self, database: Database, clock: Callable[[], int] = now_ms) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        principal: str,
        scopes: Iterable[Scope],
        schemas: Iterable[tuple[str, str]] | None = None,
        expires_at: int | None = None,
    ) -> NewToken:
        """Create a token for a principal.

        `schemas` (pairs of catalog and schema) and `expires_at` (in milliseconds since the epoch) limit it; None means
        no limit. Raises InvalidProposalError if `scopes` is empty, or if a name is invalid.
        """
        name_key(principal)
        chosen = frozenset(scopes)
        if not chosen:
            raise InvalidProposalError(f"A token for {shown(principal)} needs a scope: read, write or admin.")
        limit = None if schemas is None else frozenset((name_key(c), name_key(s)) for c, s in schemas)
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            token_id=str(uuid.uuid4()),
            principal=principal,
            scopes=chosen,
            schemas=limit,
            created_at=self._clock(),
            expires_at=expires_at,
        )
        values = {
            "sha256": _digest(secret),
            "token_id": token.token_id,
            "principal": principal,
            "scopes": " ".join(sorted(scope.value for scope in chosen)),
            "schemas": None if limit is None else orjson.dumps(sorted(limit)).decode(),
            "created_ms": token.created_at,
            "expires_ms": expires_at,
        }
        self._database.create()  # tokens may be created before the first schema
        self._database.change(lambda connection: connection.execute(insert(tokens).values(**values)))
        return NewToken(token, secret)

    def look_up(self, secret: str) -> Token | None:
        """Return the token with a secret; None if it is unknown or has expired."""
        digest = _digest(secret)
        query = select(tokens).where(tokens.c.sha256 == digest)
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        # The index search reveals only the digest, not the secret; the comparison takes constant time.
        known = hmac.compare_digest(digest, "0" * 64 if row is None else row.sha256)
        if row is None or not known or (row.expires_ms is not None and row.expires_ms <= self._clock()):
            return None
        return _token(row)

    def list_tokens(self) -> list[Token]:
        """Return all tokens, expired ones too, oldest first."""
        query = select(tokens).order_by(tokens.c.created_ms, tokens.c.token_id)
        return [_token(row) for row in self._database.read(lambda connection: connection.execute(query).all())]

    def revoke(self, token_id: str) -> bool:
        """Revoke a token; return False if there is no token with this id."""
        change = delete(tokens).where(tokens.c.token_id == token_id)
        return self._database.change(lambda connection: connection.execute(change).rowcount) > 0


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Row[Any]) -> Token:
    limit = None if row.schemas is None else frozenset((c, s) for c, s in orjson.loads(row.schemas))
    return Token(
        token_id=row.token_id,
        principal=row.principal,
        scopes=frozenset(Scope(word) for word in row.scopes.split()),
        schemas=limit,
        created_at=row.created_ms,
        expires_at=row.expires_ms,
    )
