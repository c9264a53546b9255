"""A catalog server on this machine, and tables made and changed through catalogs call by call, without an engine."""

from __future__ import annotations

import hashlib
import socket
import sqlite3
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import uvicorn

from pyspark_delta.actions.encode import encode_actions
from pyspark_delta.actions.model import CommitInfo, Metadata, Protocol
from pyspark_delta.catalog.contract import (
    Catalog,
    MetadataChange,
    NewTable,
    Proposal,
    StagedFile,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.log_tail import published_path, staged_path
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity import UnityCatalog
from pyspark_delta.features import find_feature
from pyspark_delta.protocol.feature import FeatureKind
from pyspark_delta.server.application import create_application
from pyspark_delta.server.connections import LONGEST_HEADERS, limited_protocol
from pyspark_delta.server.served import ServerSettings
from pyspark_delta.storage import store_for

BASE = "/api/2.1/unity-catalog"
IDS = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
Application = Callable[..., Any]
UNUSED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # `verify` of clients without TLS: to load the usual one takes 100 ms


class Listening:
    """An ASGI application that answers on a port of this machine, in a thread."""

    def __init__(self, application: Application, **options: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(application, log_config=None, access_log=False, ws="none", lifespan="off", **options)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        self._socket.close()


@dataclass
class Served(Listening):
    """A catalog in SQLite, served with tokens. `wrap` puts something between the network and the application."""

    folder: Path
    settings: ServerSettings = field(default_factory=ServerSettings)
    max_unpublished: int = 10
    wrap: Callable[[Application], Application] = lambda application: application

    def __post_init__(self) -> None:
        self.file = self.folder / "catalog.db"
        self.catalog = SqlCatalog.connect(f"sqlite:///{self.file}", max_unpublished=self.max_unpublished)
        self.catalog.create()
        application = create_application(self.catalog, self.catalog.tokens, self.settings)
        options = {"http": limited_protocol(self.settings), "h11_max_incomplete_event_size": LONGEST_HEADERS}
        Listening.__init__(self, self.wrap(application), **options)
        self.url = self.origin + BASE

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.catalog.close()

    def token(
        self,
        scope: Scope = Scope.ADMIN,
        schemas: Iterable[tuple[str, str]] | None = None,
        principal: str = "ann",
        seconds: float | None = None,
    ) -> str:
        """A new token."""
        expires = None if seconds is None else int((time.time() + seconds) * 1000)
        return self.catalog.tokens.create(principal, [scope], schemas, expires).secret

    def client(self, token: str | Callable[[], str] | None = None, catalog: str = "main") -> UnityCatalog:
        """A catalog that is this server."""
        return UnityCatalog.connect(self.url, catalog=catalog, token=token or self.token(), timeout=20)

    def state(self) -> str:
        """A digest of all that the catalog holds, tokens apart, and of the files of its tables."""
        with sqlite3.connect(self.file) as connection:
            rows = [line for line in connection.iterdump() if '"dl_token"' not in line]
        connection.close()
        files = sorted(
            f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for path in (self.folder / "tables").rglob("*")
            if path.is_file()
        )
        return hashlib.sha256("\n".join([*rows, *files]).encode()).hexdigest()


# -------------------------------------------------------------------------------------------------------- tables
def managed_protocol(features: Iterable[str] = ()) -> Protocol:
    """A protocol with the features that every managed table has, and others."""
    writers = {"catalogManaged", "inCommitTimestamp", *features}
    kinds = {name: feature.kind for name in writers if (feature := find_feature(name)) is not None}
    readers = {name for name, kind in kinds.items() if kind is FeatureKind.READER_WRITER}
    return Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset(readers),
        writer_features=frozenset(writers),
    )


def first_version(
    staging: StagingTable, timestamp: int = 1000, schema: str = IDS, partition_columns: tuple[str, ...] = ()
) -> NewTable:
    """Write version 0 of a table as its catalog wants it."""
    properties = {key: value for key, value in staging.required_properties.items() if value is not None}
    metadata = Metadata(
        id=str(uuid.uuid4()), schema_string=schema, partition_columns=partition_columns, configuration=properties
    )
    protocol = managed_protocol(staging.required_features)
    info = CommitInfo(values={"inCommitTimestamp": timestamp, "txnId": str(uuid.uuid4()), "operation": "CREATE TABLE"})
    content = encode_actions([info, protocol, metadata])
    store_for(staging.location).write_if_absent(published_path(staging.location, 0), content)
    return NewTable(version=0, timestamp=timestamp, protocol=protocol, metadata=metadata)


def create(catalog: Catalog, name: TableName) -> TableInfo:
    """Make a table with one column."""
    staging = catalog.create_staging_table(name)
    return catalog.create_table(staging, first_version(staging))


def content_of(version: int, transaction_id: str, timestamp: int) -> bytes:
    """A commit that changes nothing."""
    values = {"inCommitTimestamp": timestamp, "txnId": transaction_id, "operation": "TEST", "n": version}
    return orjson.dumps({"commitInfo": values}) + b"\n"


def stage(
    table: TableInfo,
    version: int,
    *,
    change: MetadataChange | None = None,
    published_version: int | None = None,
    expected_etag: str | None = None,
) -> Proposal:
    """Write a staged commit, and propose it."""
    transaction_id, timestamp = str(uuid.uuid4()), 1000 + version
    name = f"{version:020d}.{uuid.uuid4()}.json"
    store, path = store_for(table.location), staged_path(table.location, name)
    store.write_if_absent(path, content_of(version, transaction_id, timestamp))
    status = store.status(path)
    return Proposal(
        version=version,
        timestamp=timestamp,
        transaction_id=transaction_id,
        file=StagedFile(name, status.size, status.modification_time),
        change=change,
        published_version=published_version,
        expected_etag=expected_etag,
    )


def publish(table: TableInfo, proposal: Proposal) -> None:
    """Publish a staged commit, without telling the catalog."""
    assert proposal.file is not None
    store = store_for(table.location)
    content = store.read(staged_path(table.location, proposal.file.name))
    store.write_if_absent(published_path(table.location, proposal.version), content)
