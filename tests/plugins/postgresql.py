"""A PostgreSQL server of the tests' own, started once by those that ask for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from benchmarks.postgresql import USER, installed, server


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The directory of the server's socket. Its disk is not waited for: nothing outlives the tests."""
    program = installed()
    if program is None:
        pytest.skip("PostgreSQL is not installed")
    with server(program, "-c fsync=off -c synchronous_commit=off -c full_page_writes=off") as socket:
        yield socket


@pytest.fixture(scope="session")
def postgresql_database(postgresql_server: str) -> Callable[[], str]:
    """Makes room for tables in the server's database, where no others are seen, and gives its URL."""
    import psycopg

    def make() -> str:
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(host=postgresql_server, user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"postgresql://{USER}@/postgres?host={postgresql_server}&options=-csearch_path%3D{name}"

    return make
