"""What catalogs in databases do besides their contract: on SQLite and PostgreSQL."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import Pool

from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.catalog import connections
from pyspark_delta.catalog.contract import Access, Maintenance, MetadataChange, TableName
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.catalog.sql import tables as schema
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.errors import (
    CatalogError,
    CatalogUnavailableError,
    InvalidProposalError,
    MissingDependencyError,
    NotAuthorizedError,
    RatificationConflictError,
    TableReplacedError,
)
from pyspark_delta.testing.catalog_tables import (
    SCHEMA,
    START,
    CatalogSetup,
    commit_content,
    commit_versions,
    create_table,
    propose,
    publish,
    stage_table,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    made: str = request.getfixturevalue("postgresql_database")()
    return made


@pytest.fixture
def new_catalog(url: str, sql_catalog: Callable[..., SqlCatalog], tmp_path: Path) -> Callable[..., SqlCatalog]:
    return partial(sql_catalog, url, str(tmp_path / "tables"))


@pytest.fixture
def setup(new_catalog: Callable[..., SqlCatalog]) -> CatalogSetup:
    setup = CatalogSetup(make=new_catalog)
    setup.make().create_schema(setup.catalog, setup.schema)
    return setup


# --------------------------------------------------------------------------------------------------- connecting
def test_new_tables_are_put_beside_the_file_of_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = SqlCatalog.connect("sqlite:///below/catalog.db")
    setup = CatalogSetup(make=lambda: catalog)
    catalog.create_schema(setup.catalog, setup.schema)
    table = create_table(setup, catalog)
    assert table.location == f"{tmp_path}/below/tables/{table.table_id}"
    catalog.close()


def test_a_catalog_on_postgresql_must_be_told_where_tables_go(postgresql_database: Callable[[], str]) -> None:
    with pytest.raises(CatalogError, match="storage_root"):
        SqlCatalog.connect(postgresql_database())


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/database", "no url", "sqlite+x://"])
def test_urls_that_are_no_catalog_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError):
        SqlCatalog.connect(url, storage_root=str(tmp_path))


def test_a_mistyped_url_of_sqlite_makes_nothing(tmp_path: Path) -> None:
    catalog = SqlCatalog.connect(f"sqlite:///{tmp_path}/mistyped/catalog.db")
    name = TableName("main", "s", "t")
    for ask in (
        lambda: catalog.list_schemas("main"),
        lambda: catalog.list_tables("main", "s"),
        lambda: catalog.load_table(name),
        lambda: catalog.drop_table(name),
        lambda: catalog.drop_schema("main", "s"),
        lambda: catalog.tokens.list_tokens(),
    ):
        with pytest.raises(CatalogError, match=r"There is no catalog at '.*/mistyped/catalog\.db': there is no file"):
            ask()
    assert list(tmp_path.iterdir()) == []
    catalog.create_schema("main", "s")
    assert catalog.list_schemas("main") == ["s"]
    catalog.close()


def test_the_file_of_another_database_gets_no_tables_by_reading(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (a INT)")
    catalog = SqlCatalog.connect(f"sqlite:///{file}")
    with pytest.raises(CatalogError, match="has no tables of a catalog"):
        catalog.list_schemas("main")
    catalog.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("postgresql://me@host/db", "psycopg", "postgresql"), ("sqlite:///c.db", "sqlalchemy", "catalog")],
)
def test_what_is_not_installed_is_named_with_its_extra(
    url: str, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "pyspark_delta.catalog.sql")
    if module == "sqlalchemy":
        for name in [name for name in sys.modules if name.startswith("pyspark_delta.catalog.sql.")]:
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingDependencyError, match=rf"'{module}'.*pip install 'pyspark-delta\[{extra}\]'"):
        connections.connect(url, "main", storage_root=str(tmp_path))


def test_a_password_is_shown_nowhere(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnavailableError) as caught:
        SqlCatalog.connect(f"postgresql://me:geheim@/x?host={tmp_path}", storage_root=str(tmp_path))
    assert "geheim" not in str(caught.value)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    file.write_bytes(b"something else, and long enough for a header" * 100)
    with pytest.raises(CatalogError):
        SqlCatalog.connect(f"sqlite:///{file}")
    assert file.read_bytes() == b"something else, and long enough for a header" * 100


def test_sqlite_writes_ahead_and_waits_for_the_disk(tmp_path: Path) -> None:
    catalog = SqlCatalog.connect(f"sqlite:///{tmp_path}/catalog.db")
    catalog.create()

    def settings(name: str) -> object:
        return catalog._database.read(lambda connection: connection.execute(text(f"PRAGMA {name}")).scalar())

    assert settings("journal_mode") == "wal"
    assert settings("synchronous") == 2  # FULL
    catalog.close()


def test_tables_of_a_newer_version_are_not_touched(url: str, new_catalog: Callable[..., SqlCatalog]) -> None:
    new_catalog().create()
    _execute(url, update(schema.schema_version).values(version=99))
    with pytest.raises(CatalogError, match="99"):
        new_catalog()


def test_threads_that_connect_first_at_once_find_one_catalog(url: str, new_catalog: Callable[..., SqlCatalog]) -> None:
    with ThreadPoolExecutor(8) as pool:
        catalogs = list(pool.map(lambda _: new_catalog(), range(8)))
    catalogs[0].create_schema("main", "s")
    assert all(catalog.list_schemas("main") == ["s"] for catalog in catalogs)
    assert _execute(url, select(schema.schema_version.c.version)) == [(1,)]


def test_a_forked_process_connects_anew(setup: CatalogSetup) -> None:
    catalog = setup.make()
    before = catalog.list_schemas(setup.catalog)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking where there are threads
        child = os.fork()
    if child == 0:  # what fails here must not come back into the test run
        code = 1
        try:
            catalog.create_schema(setup.catalog, "of the child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert catalog.list_schemas(setup.catalog) == sorted([*before, "of the child"])


def test_a_catalog_that_is_not_closed_closes_its_connections(tmp_path: Path) -> None:
    closed: list[Any] = []

    def remember(connection: Any, _: Any) -> None:
        closed.append(connection)

    event.listen(Pool, "close", remember)
    try:
        catalog = SqlCatalog.connect(f"sqlite:///{tmp_path}/catalog.db")
        catalog.create()
        assert closed == []
        del catalog
        gc.collect()
        assert len(closed) == 1
    finally:
        event.remove(Pool, "close", remember)


def test_a_database_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    catalog = SqlCatalog.connect(f"sqlite:///{tmp_path}/catalog.db")
    catalog.create()
    catalog.close()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(CatalogError):
        catalog.create_schema("main", "s")
    catalog.close()


def test_a_full_or_read_only_database_is_unavailable(tmp_path: Path) -> None:
    catalog = SqlCatalog.connect(f"sqlite:///{tmp_path}/catalog.db")
    catalog.create()
    catalog._database.read(lambda connection: connection.execute(text("PRAGMA query_only=ON")))
    with pytest.raises(CatalogUnavailableError):
        catalog.create_schema("main", "s")
    catalog.close()


# ------------------------------------------------------------------------------------------------------ commits
def test_c469_the_tables_refuse_a_second_commit_of_a_version(url: str, setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    commit_versions(setup, catalog, table, 1, 1)
    ((version, name, identity),) = _execute(
        url, select(schema.commits.c.version, schema.commits.c.file_name, schema.commits.c.transaction_id)
    )
    row = {
        "table_id": table.table_id,
        "version": 2,
        "kind": "STAGED",
        "timestamp": 1,
        "file_name": "another",
        "size": 1,
        "modification_time": 1,
        "transaction_id": "another",
        "principal": "",
        "committed_ms": 1,
    }
    for wrong in (
        {"version": version},
        {"file_name": name},
        {"transaction_id": identity},
        {"file_name": None},
        {"content": b"x"},
        {"kind": "INLINE"},
        {"kind": "OTHER"},
    ):
        with pytest.raises(IntegrityError):
            _execute(url, insert(schema.commits).values(**{**row, **wrong}))
    with pytest.raises(IntegrityError):
        _execute(url, update(schema.tables).values(published_version=5))


def test_c448_a_transaction_id_is_used_once(setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    (first,) = commit_versions(setup, catalog, table, 1, 1)
    with pytest.raises(InvalidProposalError):
        catalog.ratify(table, replace(propose(setup, catalog, table, 2), transaction_id=first.transaction_id))
    assert catalog.log_tail(table).latest_version == 1
    for version in (2, 3):  # clients that do not say
        catalog.ratify(table, replace(propose(setup, catalog, table, version), transaction_id=""))
    assert catalog.log_tail(table).latest_version == 3


def test_old_commits_are_forgotten_and_still_told_apart(url: str, setup: CatalogSetup) -> None:
    catalog = setup.make()
    catalog._settings = replace(catalog._settings, kept_commits=3)
    table = create_table(setup, catalog)
    proposals = []
    for version in range(1, 9):
        proposals.append(propose(setup, catalog, table, version))
        publish(setup, table, catalog.ratify(table, proposals[-1]).commit)
        catalog.report_published(table, version)
    assert sorted(_execute(url, select(schema.commits.c.version))) == [(5,), (6,), (7,), (8,)]
    for proposal in proposals:
        assert catalog.ratify(table, proposal).replayed
    for version in (1, 8):
        with pytest.raises(RatificationConflictError):
            catalog.ratify(table, propose(setup, catalog, table, version))


def test_files_are_trusted_where_the_catalog_cannot_see_them(new_catalog: Callable[..., SqlCatalog]) -> None:
    setup = CatalogSetup(make=lambda: new_catalog(verify_files=False))
    catalog = setup.make()
    catalog.create_schema(setup.catalog, setup.schema)
    table = create_table(setup, catalog)
    (proposal,) = commit_versions(setup, catalog, table, 1, 1)
    assert proposal.file is not None
    unseen = replace(propose(setup, catalog, table, 2).file or proposal.file, size=7)
    catalog.ratify(table, replace(propose(setup, catalog, table, 2), file=unseen, published_version=1))
    assert [commit.version for commit in catalog.log_tail(table).commits] == [2]


def test_c473_a_gap_in_what_is_published_is_seen(setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    commit_versions(setup, catalog, table, 1, 3)
    known = catalog.log_tail(table).commits
    publish(setup, table, known[2])  # by somebody who does not keep the order
    proposal = replace(propose(setup, catalog, table, 4), published_version=3)
    with pytest.raises(InvalidProposalError, match=r"Version 1 .* is not published"):
        catalog.ratify(table, proposal)
    publish(setup, table, known[0])
    with pytest.raises(InvalidProposalError, match=r"Version 2 .* is not published"):
        catalog.ratify(table, proposal)
    publish(setup, table, known[1])
    assert not catalog.ratify(table, proposal).replayed
    assert catalog.log_tail(table).published_version == 3
    Path(published_path(table.location, 3)).unlink()  # cleaned up
    assert catalog.ratify(table, proposal).replayed
    with pytest.raises(RatificationConflictError):
        catalog.ratify(table, replace(propose(setup, catalog, table, 4), published_version=3))


def test_the_limit_of_unpublished_commits_can_be_set(new_catalog: Callable[..., SqlCatalog]) -> None:
    setup = CatalogSetup(make=lambda: new_catalog(max_unpublished=2))
    catalog = setup.make()
    catalog.create_schema(setup.catalog, setup.schema)
    table = create_table(setup, catalog)
    commit_versions(setup, catalog, table, 1, 2)
    with pytest.raises(CatalogError):
        catalog.ratify(table, propose(setup, catalog, table, 3))


def test_a_table_that_was_dropped_by_hand_takes_no_commit(url: str, setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    proposal = propose(setup, catalog, table, 1)
    _execute(url, schema.tables.delete())
    with pytest.raises(TableReplacedError):
        catalog.ratify(table, proposal)


def test_c461_the_copy_of_the_metadata(setup: CatalogSetup) -> None:
    catalog = setup.make()
    staging, new = stage_table(setup, catalog, setup.name("t"))
    domains = (
        DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["id"]]}'),
        DomainMetadata(domain="mine", configuration="1"),
    )
    metadata = replace(new.metadata, description="text \0 ü 中", partition_columns=("p",), name="n")
    table = catalog.create_table(staging, replace(new, metadata=metadata, domains=domains))
    found = catalog.describe_table(table.name)
    assert (found.info, found.protocol, found.metadata) == (table, new.protocol, metadata)
    assert (found.domains, found.timestamp, found.created_by) == (domains, START, "")
    assert found.created_at <= found.updated_at
    protocol = replace(new.protocol, writer_features=frozenset({*new.protocol.writer_features, "appendOnly"}))
    change = MetadataChange(
        protocol=protocol,
        domains=(replace(domains[0], removed=True), DomainMetadata(domain="other", configuration="2")),
    )
    catalog.ratify(table, replace(propose(setup, catalog, table, 1), change=change))
    after = catalog.describe_table(table.name)
    assert (after.protocol, after.metadata, after.timestamp) == (protocol, metadata, START + 1)
    assert {domain.domain: domain.configuration for domain in after.domains} == {"mine": "1", "other": "2"}
    assert after.info.etag != table.etag
    rows = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":1}')
    catalog.ratify(table, replace(propose(setup, catalog, table, 2), change=MetadataChange(domains=(rows,))))
    assert catalog.describe_table(table.name).info.etag == after.info.etag  # changes with every commit
    assert rows in catalog.describe_table(table.name).domains
    registered = catalog.register_table(setup.name("r"), _path_table(setup))
    assert catalog.describe_table(registered.name).metadata is None
    assert '"id"' in SCHEMA


def test_c478_maintenance_is_allowed_by_name(setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    assert table.allowed_maintenance == frozenset()
    catalog.allow_maintenance(table.name, [Maintenance.VACUUM, Maintenance.OPTIMIZE])
    assert setup.make().load_table(table.name).allowed_maintenance == {Maintenance.VACUUM, Maintenance.OPTIMIZE}
    catalog.allow_maintenance(table.name, [])
    assert setup.make().load_table(table.name).allowed_maintenance == frozenset()
    with pytest.raises(CatalogError):
        catalog.allow_maintenance(setup.name("missing"), [])


# -------------------------------------------------------------------------------------------------------- names
def test_tables_are_found_by_id(setup: CatalogSetup) -> None:
    catalog = setup.make()
    table = create_table(setup, catalog)
    assert catalog.load_table_by_id(table.table_id) == table
    staging = catalog.create_staging_table(setup.name("s"))
    assert catalog.load_staging_table(staging.table_id) == staging
    for wrong in (staging.table_id, str(uuid.uuid4()), "", "' OR 1=1 --", "\0", "\ud800", "x" * 10_000):
        with pytest.raises(TableReplacedError):
            catalog.load_table_by_id(wrong)
    for wrong in (table.table_id, str(uuid.uuid4()), "", "\0"):
        with pytest.raises(InvalidProposalError):
            catalog.load_staging_table(wrong)


def test_c481_a_staging_table_is_its_creators(setup: CatalogSetup) -> None:
    ann, bob = setup.make().acting_as("ann"), setup.make().acting_as("bob")
    staging, new = stage_table(setup, ann, setup.name("t"))
    for call in (lambda: bob.create_table(staging, new), lambda: bob.load_staging_table(staging.table_id)):
        with pytest.raises(NotAuthorizedError):
            call()
    with pytest.raises(InvalidProposalError):
        ann.create_table(replace(staging, location=staging.location + "x"), new)
    with pytest.raises(InvalidProposalError):
        ann.create_table(replace(staging, name=setup.name("u")), new)
    table = ann.create_table(staging, new)
    assert bob.describe_table(table.name).created_by == "ann"
    assert bob.list_catalogs() == [setup.catalog]


def test_names_that_are_swapped_at_once_end_well(setup: CatalogSetup) -> None:
    catalog = setup.make()
    catalog.create_schema(setup.catalog, "z")
    first, second = setup.name("a"), TableName(setup.catalog, "z", "b")
    pairs = [(first, second), (second, first)]
    ids = set()
    for name, _ in pairs:
        staging, new = stage_table(setup, catalog, name)
        ids.add(catalog.create_table(staging, new).table_id)

    def rename(pair: tuple[TableName, TableName]) -> CatalogError | None:
        try:
            setup.make().rename_table(*pair)
        except CatalogError as error:
            return error
        return None

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(rename, pairs * 5))
    assert all(isinstance(outcome, CatalogError) for outcome in outcomes)
    assert not any(isinstance(outcome, CatalogUnavailableError) for outcome in outcomes)
    assert {catalog.load_table(name).table_id for name, _ in pairs} == ids


def test_storage_options_are_handed_out(url: str, tmp_path: Path) -> None:
    catalog = SqlCatalog.connect(url, storage_root=str(tmp_path), storage_options={"aws_region": "x"})
    catalog.create_schema("main", "tests")
    table = create_table(CatalogSetup(make=lambda: catalog), catalog)
    assert catalog.storage_options(table, Access.READ) == {"aws_region": "x"}
    catalog.close()


# ------------------------------------------------------------------------------------------------------- tokens
def test_a_token_is_known_by_its_secret_alone(url: str, new_catalog: Callable[..., SqlCatalog]) -> None:
    tokens = new_catalog().tokens
    made = tokens.create("ann", [Scope.READ, Scope.WRITE], [("Main", "Sales")], expires_at=2**60)
    assert new_catalog().tokens.look_up(made.secret) == made.token
    assert made.token.allows(Scope.READ)
    assert made.token.allows(Scope.WRITE)
    assert not made.token.allows(Scope.ADMIN)
    assert made.token.reaches("main", "SALES")
    assert not made.token.reaches("main", "other")
    assert made.secret not in repr(made)
    for row in _execute(url, select(schema.tokens)):
        assert made.secret not in str(row)
    near = (made.secret[:-1], made.secret + "x", made.secret.upper())
    for wrong in (*near, "", "\0", "\ud800", "' OR 1=1 --", "x" * 10**6):
        assert tokens.look_up(wrong) is None
    another = tokens.create("ann", [Scope.ADMIN])
    assert another.secret != made.secret
    assert another.token.allows(Scope.READ)
    assert another.token.reaches("any", "where")
    assert {token.token_id for token in tokens.list_tokens()} == {made.token.token_id, another.token.token_id}


def test_a_token_that_expired_or_was_revoked_is_unknown(new_catalog: Callable[..., SqlCatalog]) -> None:
    catalog = new_catalog()
    now = [1000]
    catalog._settings = replace(catalog._settings, clock=lambda: now[0])
    made = catalog.tokens.create("ann", [Scope.READ], expires_at=2000)
    now[0] = 1999
    assert catalog.tokens.look_up(made.secret) == made.token
    now[0] = 2000
    assert catalog.tokens.look_up(made.secret) is None
    lasting = catalog.tokens.create("ann", [Scope.READ])
    assert catalog.tokens.look_up(lasting.secret) == lasting.token
    assert catalog.tokens.revoke(lasting.token.token_id)
    assert not catalog.tokens.revoke(lasting.token.token_id)
    assert catalog.tokens.look_up(lasting.secret) is None
    for principal, scopes in (("", [Scope.READ]), ("a\0", [Scope.READ]), ("ann", [])):
        with pytest.raises(InvalidProposalError):
            catalog.tokens.create(principal, scopes)


def _execute(url: str, statement: object) -> list[tuple[object, ...]]:
    """What a statement finds in the database, behind the catalog's back."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            result = connection.execute(statement)  # type: ignore[call-overload]
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


def _path_table(setup: CatalogSetup) -> str:
    staging = setup.make().create_staging_table(setup.name("only for its location"))
    path = published_path(staging.location + "-path", 0)
    setup.store(path).write(path, commit_content(0, "first"))
    return staging.location + "-path"
