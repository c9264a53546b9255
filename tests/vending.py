"""A server that gives out credentials which end, and a store that takes no others."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.served import BASE, Listening

from pyspark_delta.catalog.contract import Access, StagingTable, TableInfo
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.server.application import create_application
from pyspark_delta.server.served import ServerSettings
from pyspark_delta.storage.credentials import Credentials

LIFE = 240_000  # ms; so short that the store's client asks for every request, and is told what is known
_KEY = re.compile(rb"Credential=([^/]+)/")
_HOP = {b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"server", b"date"}


@dataclass
class Guard:
    """Passes requests for S3 on to a server that takes any key, where theirs is among `valid`; `seen` are all keys."""

    endpoint: str
    valid: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._client = httpx.AsyncClient(timeout=60)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
        match = _KEY.search(dict(headers).get(b"authorization", b""))
        key = "" if match is None else match[1].decode()
        self.seen.add(key)
        if key not in self.valid:
            await _answer(send, 403, [], b"<Error><Code>ExpiredToken</Code><Message>It has ended.</Message></Error>")
            return
        target = self.endpoint + scope["raw_path"].decode() + "?" + scope["query_string"].decode()
        answer = await self._client.request(scope["method"], target.rstrip("?"), content=body, headers=headers)
        kept = [(name, value) for name, value in answer.headers.raw if name.lower() not in _HOP]
        length = answer.headers.get("content-length") if scope["method"] == "HEAD" else str(len(answer.content))
        kept.append((b"content-length", (length or "0").encode()))
        await _answer(send, answer.status_code, kept, answer.content)


async def _answer(send: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Vending(SqlCatalog):
    """A catalog that gives every caller a new key, with which the store lets them in for a while."""

    guard: Guard
    _lock = threading.Lock()
    issued = 0

    def acting_as(self, principal: str) -> Vending:
        return self

    def serving(self) -> Vending:
        return self

    def credentials(self, table: TableInfo | StagingTable, access: Access) -> Credentials:
        with self._lock:
            self.issued += 1
            key = f"KEY{self.issued}"
            self.guard.valid.add(key)
        options = {"aws_access_key_id": key, "aws_secret_access_key": "secret", "aws_session_token": f"of {key}"}
        return Credentials(options, int(time.time() * 1000) + LIFE)


@dataclass
class Vendor:
    """The server, and the store that it gives credentials for."""

    url: str
    catalog: Vending
    guard: Guard
    storage_options: dict[str, str]


@contextmanager
def vending(folder: Path, endpoint: str, options: dict[str, str]) -> Iterator[Vendor]:
    """A catalog server whose tables lie in the bucket `contract` of an S3 server."""
    root = f"s3://contract/{folder.name}-{time.time_ns()}"
    catalog = Vending.connect(f"sqlite:///{folder}/catalog.db", storage_root=root, storage_options=options)
    assert isinstance(catalog, Vending)
    catalog.create_schema("main", "s")
    guard = Guard(endpoint)
    catalog.guard = guard
    application = create_application(catalog, None, ServerSettings(vend_credentials=True))
    with Listening(guard) as store, Listening(application) as server:
        own = {"AWS_ENDPOINT_URL": store.origin, "AWS_REGION": "us-east-1"}
        yield Vendor(server.origin + BASE, catalog, guard, own)
    catalog.close()
