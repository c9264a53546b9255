"""A catalog behind a server keeps the catalog contract, through the Delta API and through what is older."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from tests.served import Served

from pyspark_delta.catalog.unity import UnityCatalog
from pyspark_delta.catalog.unity.connection import Connection
from pyspark_delta.catalog.unity.legacy_api import LegacyApi
from pyspark_delta.errors import InvalidProposalError
from pyspark_delta.testing.catalog_cases import KeptMetadata, StagedCommits
from pyspark_delta.testing.catalog_contract import CatalogContract
from pyspark_delta.testing.catalog_registered import MirroredTables, Registering
from pyspark_delta.testing.catalog_repairs import MirroredRepairs, StagedRepairs
from pyspark_delta.testing.catalog_tables import CatalogSetup, fresh, raises


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def catalog(served: Served) -> str:
    """A catalog of the server that no other test uses, with the schema `tests`."""
    name = f"c{uuid.uuid4().hex}"
    served.catalog.create_schema(name, "tests")
    return name


class TestDeltaApi(CatalogContract, StagedCommits, Registering, MirroredTables, KeptMetadata, MirroredRepairs):
    @pytest.fixture
    def setup(self, served: Served, catalog: str) -> CatalogSetup:
        token = served.token()
        return CatalogSetup(make=lambda: served.client(token, catalog), catalog=catalog)


class TestLegacyEndpoints(StagedCommits, Registering, StagedRepairs):
    """They have no etags, and cannot rename; of what the Delta API shares with them, the core is repeated."""

    test_tables = CatalogContract.test_c481_c482_a_table_is_made_at_a_location_and_then_named
    test_dropped = CatalogContract.test_c481_a_dropped_table_takes_no_commit_and_shows_none
    test_conflicts = CatalogContract.test_c469_c471_a_version_is_ratified_once_and_the_loser_is_told_the_tail
    test_published = CatalogContract.test_c474_published_commits_leave_the_tail
    test_nonsense = CatalogContract.test_a_proposal_that_makes_no_sense_changes_nothing

    def test_a_registered_table_loses_nothing_but_its_name(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        with raises(InvalidProposalError):
            catalog.rename_table(table.name, setup.name("new"))
        assert catalog.load_table(table.name) == table

    @pytest.fixture
    def setup(self, served: Served, catalog: str) -> CatalogSetup:
        token = served.token()

        def make() -> UnityCatalog:
            connection = Connection(served.url, token)
            return UnityCatalog(connection, LegacyApi(connection))

        return CatalogSetup(make=make, catalog=catalog)
