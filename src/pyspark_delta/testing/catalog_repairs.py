"""The catalog contract, continued: catalogs that lack published commits, for example after a restore."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import cast

from pyspark_delta.actions.model import Action
from pyspark_delta.catalog.contract import Catalog, TableInfo
from pyspark_delta.catalog.log_tail import published_path, staged_path
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.commit.contents import CommitContents
from pyspark_delta.commit.repair import Repair, repair_table
from pyspark_delta.errors import CatalogUnavailableError, PublishedMismatchError, RatificationConflictError
from pyspark_delta.protocol.configuration import CATALOG_MANAGED
from pyspark_delta.storage import normalize_location
from pyspark_delta.testing.catalog_faults import FaultyCatalog, no_answer
from pyspark_delta.testing.catalog_tables import (
    START,
    CatalogSetup,
    commit_content,
    commit_versions,
    fresh,
    propose,
    raises,
    stage,
)
from pyspark_delta.testing.faults import Fault


class Repairs:
    """For every catalog: a repair adds the published commits."""

    def test_c473_published_commits_are_taken_in(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        commit_versions(setup, catalog, table, 1, 2)
        for commit in catalog.log_tail(table).commits:
            write_published(setup, table, commit.version, copy_of=commit.file_name)
        contents = {version: write_published(setup, table, version) for version in (3, 4, 5)}
        known = catalog.log_tail(table).latest_version
        assert repair(setup, table) == Repair(catalog_version=known, published_version=5)
        assert setup.make().log_tail(table).latest_version == known
        assert repair(setup, table, apply=True).forgotten == range(known + 1, 6)
        tail = setup.make().log_tail(table)
        assert (tail.latest_version, tail.commits) == (5, ())
        for version, content in contents.items():
            assert setup.store(table.location).read(_published(table, version)) == content
            with raises(RatificationConflictError):
                catalog.ratify(table, propose(setup, catalog, table, version))
        assert repair(setup, table, apply=True) == Repair(catalog_version=5, published_version=5)
        assert not catalog.ratify(table, propose(setup, catalog, table, 6)).replayed

    def test_nothing_is_repaired_across_a_gap(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        write_published(setup, table, 1)
        write_published(setup, table, 3)
        before = catalog.log_tail(table)
        for apply in (False, True):
            with raises(PublishedMismatchError) as caught:
                repair(setup, table, apply=apply)
            assert "is missing" in caught[0].message
        assert setup.make().log_tail(table) == before
        write_published(setup, table, 2)
        repair(setup, table, apply=True)
        assert setup.make().log_tail(table).latest_version == 3


class StagedRepairs(Repairs):
    """For catalogs that ratify commits before they are published."""

    def test_what_contradicts_a_ratified_commit_is_refused(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        commit_versions(setup, catalog, table, 1, 2)
        write_published(setup, table, 2)  # another one than the catalog's
        _check_refused(setup, table, "version 1, which the catalog has ratified, is not published")
        (first, second) = catalog.log_tail(table).commits
        write_published(setup, table, 1, copy_of=first.file_name)
        _check_refused(setup, table, "as version 2")
        setup.store(table.location).delete([_published(table, 2)])
        write_published(setup, table, 2, copy_of=second.file_name)
        write_published(setup, table, 3)
        assert repair(setup, table, apply=True).forgotten == range(3, 4)
        assert setup.make().log_tail(table).latest_version == 3

    def test_c449_c450_what_is_no_commit_of_a_managed_table_is_refused(self, setup: CatalogSetup) -> None:
        _, table = fresh(setup)
        write_published(setup, table, 1, timestamp=START)
        _check_refused(setup, table, "not after")
        setup.store(table.location).delete([_published(table, 1)])
        write_published(setup, table, 1)
        write_published(setup, table, 2, timestamp=START + 1)
        _check_refused(setup, table, f"{START + 1}, that of the previous version")
        setup.store(table.location).delete([_published(table, 1), _published(table, 2)])
        protocol = _first(setup, table).protocol
        assert protocol is not None
        both = (protocol.reader_features, protocol.writer_features)
        reader, writer = (frozenset(features or ()).difference(CATALOG_MANAGED) for features in both)
        write_published(setup, table, 1, replace(protocol, reader_features=reader, writer_features=writer))
        _check_refused(setup, table, "no longer managed by a catalog")

    def test_what_was_staged_after_that_is_named(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        (lost,) = commit_versions(setup, catalog, table, 1, 1)
        assert lost.file is not None
        write_published(setup, table, 1, copy_of=lost.file.name)
        write_published(setup, table, 2)
        stage(setup, table, 2, commit_content(2, "lost to version 2"))
        further = stage(setup, table, 3, commit_content(3, "ratified, perhaps"))
        assert repair(setup, table, apply=True).undecided == (further.name,)
        assert setup.store(table.location).status(staged_path(normalize_location(table.location), further.name)).size

    def test_a_repair_that_is_interrupted_is_made_again(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        content = write_published(setup, table, 1)
        write_published(setup, table, 2)
        catalog.ratify(table, replace(propose(setup, catalog, table, 1), file=stage(setup, table, 1, content)))
        faulty = FaultyCatalog(setup.make(), Fault(path_part="ratify", raises=no_answer))
        with raises(CatalogUnavailableError):
            repair(setup, table, apply=True, catalog=faulty)
        assert repair(setup, table, apply=True) == Repair(catalog_version=1, published_version=2, applied=True)
        tail = setup.make().log_tail(table)
        assert (tail.latest_version, tail.commits) == (2, ())


class MirroredRepairs(StagedRepairs):
    """For catalogs that keep a copy of the metadata."""

    def test_c461_metadata_that_were_forgotten_are_taken_in(self, setup: CatalogSetup) -> None:
        _, table = fresh(setup)
        metadata = _first(setup, table).metadata
        assert metadata is not None
        for version, text in ((1, "first"), (2, "second")):
            changed = replace(metadata, configuration={**metadata.configuration, "note": text})
            write_published(setup, table, version, changed)
        repair(setup, table, apply=True)
        assert setup.make().load_table(table.name).properties["note"] == "second"


def repair(
    setup: CatalogSetup, table: TableInfo, *, apply: bool = False, catalog: FaultyCatalog | None = None
) -> Repair:
    """Repair a table, through a new connection by default."""
    reached: Catalog = cast(Catalog, catalog) if catalog is not None else setup.make()
    managed = ManagedTable(reached, replace(table, location=normalize_location(table.location)))
    return repair_table(managed, setup.store(table.location), apply=apply)


def write_published(
    setup: CatalogSetup,
    table: TableInfo,
    version: int,
    *actions: Action,
    copy_of: str | None = None,
    timestamp: int | None = None,
) -> bytes:
    """Publish a commit that the catalog lacks, or a copy of a staged one; return its content."""
    store, path = setup.store(table.location), _published(table, version)
    if copy_of is None:
        content = commit_content(version, str(uuid.uuid4()), *actions, timestamp=timestamp)
    else:
        content = store.read(staged_path(normalize_location(table.location), copy_of))
    store.write_if_absent(path, content)
    return content


def _check_refused(setup: CatalogSetup, table: TableInfo, reason: str) -> None:
    before = setup.make().log_tail(table)
    for apply in (False, True):
        with raises(PublishedMismatchError) as caught:
            repair(setup, table, apply=apply)
        assert reason in caught[0].message
    assert setup.make().log_tail(table) == before


def _first(setup: CatalogSetup, table: TableInfo) -> CommitContents:
    return CommitContents.parse(0, setup.store(table.location).read(_published(table, 0)))


def _published(table: TableInfo, version: int) -> str:
    return published_path(normalize_location(table.location), version)
