"""A database that holds a catalog: SQLite in one file for one machine, PostgreSQL for several.

Each read is a single statement, so it sees one state. Each change is a transaction. On SQLite it takes the write lock
first, because a transaction that reads and then writes fails at once if another one writes. On PostgreSQL it runs as
READ COMMITTED: an UPDATE that waited for another one checks its condition again.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from pyspark_delta.catalog.sql.tables import SCHEMA_VERSION, metadata, schema_version
from pyspark_delta.errors import CatalogError, CatalogUnavailableError
from pyspark_delta.logs import logger

T = TypeVar("T")

BUSY_SECONDS = 60
"""How long a change waits for others on SQLite, in seconds."""

_log = logger(__name__)

_CHANGE = "pyspark_delta_change"
_POSTGRESQL_LOCK = 0x64656C7461  # an advisory lock, held while the tables are created; the number is arbitrary
_AGAIN = frozenset({"40001", "40P01"})  # serialization failure, deadlock: PostgreSQL has rolled back
_ATTEMPTS = 20


class Database:
    """Connections to one database, one for each active thread; a forked process opens new ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # A single statement needs no transaction, which would cost two more requests.
        self._reading = {"isolation_level": "AUTOCOMMIT"} if engine.dialect.name == "postgresql" else {}
        self._process = os.getpid()
        self._is_ready = False
        weakref.finalize(self, _dispose, engine, self._process)

    @classmethod
    def connect(cls, url: str) -> Database:
        """Connect to a database. This creates missing tables on PostgreSQL; on SQLite, `create` does.

        Raises CatalogError for an invalid URL, for an SQLite URL without a file, and for tables of another version.
        """
        parsed = _parse(url)
        database = cls(_sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed))
        try:
            if database.sqlite_file is None:
                database.create()
            elif database._has_tables():
                database._prepare()
        except CatalogError:
            database.close()
            raise
        return database

    def create(self) -> None:
        """Create the SQLite file and missing tables. Raises CatalogError for tables of another version."""
        if self._is_ready:
            return  # not created again if it has disappeared: requests then fail
        if self.sqlite_file is not None:
            Path(self.sqlite_file).parent.mkdir(parents=True, exist_ok=True)
            _make_private(Path(self.sqlite_file))
        self._prepare(makes_tables=True)

    @property
    def sqlite_file(self) -> str | None:
        """The absolute path of the SQLite file; None on PostgreSQL."""
        name = self._engine.url.database
        return name if self._engine.dialect.name == "sqlite" else None

    def __repr__(self) -> str:
        return f"Database({self._engine.url.render_as_string(hide_password=True)})"

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run one SELECT. Raises CatalogUnavailableError."""
        return self._read(work, self._connection)

    def change(self, work: Callable[[Connection], T]) -> T:
        """Run one transaction; an error in it rolls it back.

        A transaction that PostgreSQL rolled back because of another one runs again. Raises CatalogUnavailableError,
        after which the outcome is unknown.
        """
        return self._change(work, self._connection)

    def _read(self, work: Callable[[Connection], T], connect: Callable[[], Connection]) -> T:
        try:
            with connect().execution_options(**self._reading) as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise self._translated(error) from error

    def _change(self, work: Callable[[Connection], T], connect: Callable[[], Connection]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                with connect().execution_options(**{_CHANGE: True}) as connection, connection.begin():
                    return work(connection)
            except SQLAlchemyError as error:
                if getattr(getattr(error, "orig", None), "sqlstate", None) not in _AGAIN or attempt == _ATTEMPTS - 1:
                    raise self._translated(error) from error
                _log.debug("A concurrent change of the catalog won: trying again, attempt %d", attempt + 2)
                time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 5)))
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close idle connections. New ones are opened if the database is used again."""
        self._engine.dispose()

    def _connection(self) -> Connection:
        if not self._is_ready:
            self._prepare()
        return self._connect()

    def _connect(self) -> Connection:
        if self._process != os.getpid():
            self._engine.dispose(close=False)  # the connections belong to the parent process
            self._process = os.getpid()
        return self._engine.connect()

    def _has_tables(self) -> bool:
        if self.sqlite_file is not None and not Path(self.sqlite_file).exists():
            return False  # connecting would create the file
        return self._read(lambda connection: inspect(connection).has_table(schema_version.name), self._connect)

    def _prepare(self, *, makes_tables: bool = False) -> None:
        """Check the tables before they are used. Without `makes_tables` none are created: a URL may be mistyped."""
        found = self._has_tables()
        if not found and not makes_tables:
            raise self._no_catalog()
        version = self._read(_stored_version, self._connect) if found else self._create_tables()
        self._check_version(version)
        self._is_ready = True

    def _no_catalog(self) -> CatalogError:
        found = "the file has no tables of a catalog" if Path(str(self.sqlite_file)).exists() else "there is no file"
        return CatalogError(
            f"There is no catalog at '{self.sqlite_file}': {found}. Check the URL. To create a new catalog, create "
            "its first schema, as in connect_catalog(url).create_schema('sales').",
            path=self.sqlite_file,
        )

    def _check_version(self, version: int | None) -> None:
        if version != SCHEMA_VERSION:
            raise CatalogError(
                f"The tables of the catalog in {self!r} have version {version}; this release of pyspark-delta knows "
                f"{SCHEMA_VERSION}. Use a release that knows this version.",
                version=version,
            )

    def _create_tables(self) -> int | None:
        def create(connection: Connection) -> int | None:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK})
            metadata.create_all(connection)
            if _stored_version(connection) is None:
                connection.execute(insert(schema_version).values(id=1, version=SCHEMA_VERSION))
            return _stored_version(connection)

        return self._change(create, self._connect)

    def _translated(self, error: SQLAlchemyError) -> CatalogError:
        reason = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
        if isinstance(error, OperationalError | InterfaceError | InternalError | PoolTimeoutError):
            return CatalogUnavailableError(
                f"The database of the catalog, {self!r}, failed to run a request: {reason}. If the request "
                "was a change, check if it was made.",
            )
        return CatalogError(f"The database of the catalog, {self!r}, refused a statement: {reason}.")


def _stored_version(connection: Connection) -> int | None:
    return connection.execute(select(schema_version.c.version)).scalar()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # its text may hold a part of the password
        raise CatalogError(
            "The URL of the catalog is not valid. Use a form such as sqlite:///file.db or "
            "postgresql://user:password@host:port/database; special characters in a password are written %40 and so on."
        ) from None
    if parsed.drivername == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _dispose(engine: Engine, process: int) -> None:
    """Close the connections that nobody has closed; Python 3.13 warns of those. A forked process leaves them alone."""
    engine.dispose(close=process == os.getpid())


# ------------------------------------------------------------------------------------------------------ SQLite
def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise CatalogError("A catalog in SQLite needs a file: sqlite:////absolute/path/to/catalog.db.")
    file = Path(url.database).absolute()
    engine = create_engine(
        url.set(database=str(file)),
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        max_overflow=-1,
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _take_write_lock)
    return engine


def _make_private(file: Path) -> None:
    """Create a file that only its owner can read (mode 0600), because it holds permissions.

    SQLite gives its other files the same mode.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # `_take_write_lock` begins transactions, not the driver
    _set_wal(connection)
    connection.execute("PRAGMA synchronous=FULL")


def _set_wal(connection: Any) -> None:
    """Set the journal to a write-ahead log, so that readers and the writer do not block each other.

    The mode is persistent. Concurrent first connections may conflict; they try again for `BUSY_SECONDS`.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        except connection.OperationalError:  # SQLite's own timeout does not always apply here
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise CatalogError(
                "SQLite cannot use a write-ahead log for this file, as on network file systems. Put it on a local "
                "disk, or use PostgreSQL."
            )


def _take_write_lock(connection: Connection) -> None:
    if connection.get_execution_options().get(_CHANGE):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


# -------------------------------------------------------------------------------------------------- PostgreSQL
def _postgresql(url: URL) -> Engine:
    if url.drivername != "postgresql+psycopg":
        raise CatalogError(f"A catalog can be in SQLite or PostgreSQL, not in '{url.drivername}'.")
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
    return create_engine(
        url, isolation_level="READ COMMITTED", pool_pre_ping=True, max_overflow=-1, connect_args=arguments
    )
