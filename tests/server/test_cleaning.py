"""A server that is told to removes what was left behind; another one does not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.served import first_version

from pyspark_delta.catalog.cleaning import remove_left_behind
from pyspark_delta.catalog.contract import StagingTable, TableName
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.server.cleaning import clean_once
from pyspark_delta.server.run import create_server
from pyspark_delta.server.served import ServerSettings
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.testing.faults import Fault, FaultyStore

WEEK = timedelta(days=7)
Begin = Callable[[str], StagingTable]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = SqlCatalog.connect(f"sqlite:///{tmp_path}/catalog.db")
    made.create_schema("main", "s")
    yield made
    made.close()


@pytest.fixture
def old(catalog: SqlCatalog) -> StagingTable:
    """A staging table with a version 0, of long ago; there is another one of now."""
    catalog.create_staging_table(TableName("main", "s", "new"))
    long_ago = SqlCatalog(catalog._database, replace(catalog._settings, clock=lambda: 1000))
    staging = long_ago.create_staging_table(TableName("main", "s", "old"))
    first_version(staging)
    return staging


@pytest.mark.parametrize("clean_after", [None, WEEK, timedelta(days=100_000)])
def test_unfinished_tables_are_removed_by_a_server_that_is_told_to(
    catalog: SqlCatalog, old: StagingTable, tmp_path: Path, clean_after: timedelta | None
) -> None:
    url, settings = f"sqlite:///{tmp_path}/catalog.db", ServerSettings(clean_after=clean_after)
    server = create_server(url, port=0, settings=settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    while thread.is_alive() and not server.started:
        thread.join(0.01)
    assert server.started
    server.should_exit = True
    thread.join()
    left = [one.name.name for one in catalog.left_behind(2**62)]
    assert left == (["new"] if clean_after == WEEK else ["old", "new"])
    assert Path(old.location).exists() == (clean_after != WEEK)


def test_what_another_one_was_faster_about_stays(
    catalog: SqlCatalog, old: StagingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [table for table in catalog.left_behind(2**62) if table.table_id == old.table_id]
    assert catalog.drop_staging_table(old.table_id)  # as where it got its name
    monkeypatch.setattr(SqlCatalog, "left_behind", lambda *_: found)
    assert found
    assert remove_left_behind(catalog, 2**62) == []
    assert Path(old.location).exists()


def test_a_failure_is_logged_and_made_up_for(
    catalog: SqlCatalog, old: StagingTable, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = FaultyStore(store_for(old.location), Fault(kind="delete"))
    with caplog.at_level(logging.INFO, "pyspark_delta.server"), intercepted(lambda _: faulty):
        clean_once(catalog, WEEK)
    assert faulty.struck
    assert "cleaning failed" in caplog.text
    assert [table.location for table in catalog.dropped_tables(2**62)] == [old.location]
