"""What a commit asks of the store does not grow with the commits before it: by counts, not by time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyspark_delta.catalog.file_commits import FileCommits
from pyspark_delta.catalog.filesystem import FilesystemCatalog
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.commit.catalog import CatalogCommitter
from pyspark_delta.commit.contract import CommitRequest, Committed, VersionTaken
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache, latest_snapshot
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.testing.catalog_tables import CatalogSetup, commit_content, create_table
from pyspark_delta.testing.table_builder import TableBuilder, metadata, protocol
from pyspark_delta.transaction import post_commit
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.transaction import Transaction

FEW, MANY = 20, 2000  # commits before; both have a checkpoint


def a_log(path: Path, commits: int) -> str:
    table = TableBuilder(path)
    table.commit(0, [protocol(), metadata()])
    for version in range(1, commits + 1):
        table.commit(version, [{"commitInfo": {"operation": "TEST"}}])
        table.checksum(version, {})
    Snapshot.load(table.location).checkpoint()
    return table.location


def commit_by_path(location: str) -> Callable[[], None]:
    def commit() -> None:
        Transaction.on(latest_snapshot(location)).set_application_version("a", 1).commit()

    return commit


def commit_by_handle(location: str) -> Callable[[], None]:
    state = state_of(Snapshot.load(location))

    def commit() -> None:
        nonlocal state
        state = Transaction(state, None).set_application_version("a", 1).commit()

    return commit


@pytest.mark.parametrize("committing", [commit_by_path, commit_by_handle])
def test_a_commit_asks_as_much_after_thousands_of_commits(
    tmp_path: Path, committing: Callable[[str], Callable[[], None]]
) -> None:
    counted = []
    for commits in (FEW, MANY):
        counts = Counts()
        location = a_log(tmp_path / str(commits), commits)
        with intercepted(lambda inner, counts=counts: CountingStore(inner, counts)):  # type: ignore[misc]
            commit = committing(location)
            for _ in range(10):  # with the first checkpoint of the process, which looks for what is to be cleaned up
                commit()
            counts.reset()
            for _ in range(20):
                commit()
        clear_cache(location)
        assert Snapshot.load(location).segment.checkpoint_version == commits + 30
        counted.append(counts)
    few, many = counted
    assert (few.calls["list"], many.calls["list"]) == (0, 0)
    assert few.calls == many.calls


def test_the_log_is_cleaned_up_once_a_day_unless_the_table_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, cleaned = a_log(tmp_path, FEW), []
    real = post_commit.clean_log
    monkeypatch.setattr(post_commit, "clean_log", lambda *a, **n: cleaned.append(state.version) or real(*a, **n))
    state = state_of(Snapshot.load(location))

    def commit(until: int) -> None:
        nonlocal state
        while state.version < until:
            state = Transaction(state, None).set_application_version("a", 1).commit()

    commit(50)
    assert cleaned == [29]  # before its version was counted as committed
    before = Snapshot.load(location).configuration
    kept = replace(before.metadata, configuration={"delta.logRetentionDuration": "interval 60 days"})
    state = Transaction(state, None).declare(TableConfiguration(before.protocol, kept, location)).commit()
    commit(70)
    assert cleaned == [29, 59]
    tomorrow = time.time() + 86_400
    monkeypatch.setattr(post_commit, "time", SimpleNamespace(time=lambda: tomorrow))
    commit(80)
    assert cleaned == [29, 59, 79]


def test_a_catalog_of_files_finds_later_commits_without_a_listing(tmp_path: Path) -> None:
    catalog = FilesystemCatalog(str(tmp_path / "catalog"), str(tmp_path / "tables"))
    catalog.create_schema("main", "tests")
    table = create_table(CatalogSetup(make=lambda: catalog), catalog)
    counts = Counts()
    store = CountingStore(store_for(table.location), counts)
    for version in range(1, 5):
        store.write_if_absent(
            f"{table.location}/_delta_log/{version:020}.json", commit_content(version, str(uuid.uuid4()))
        )
    assert FileCommits(store, table).tail(2).latest_version == 4
    with intercepted(lambda inner: CountingStore(inner, counts)):
        committer = CatalogCommitter(ManagedTable(catalog, table), store)
        for version, expected in ((3, VersionTaken), (5, Committed)):
            identity = str(uuid.uuid4())
            content = commit_content(version, identity)
            request = CommitRequest(
                table_location=table.location, version=version, content=content, transaction_id=identity
            )
            assert isinstance(committer.commit(request), expected)
        assert [taken.version for taken in committer.later(table.location, 2)] == [3, 4, 5]
    assert counts.calls["list"] == 0
