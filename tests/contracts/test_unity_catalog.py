"""A catalog behind a server keeps the catalog contract, through the Delta API and through what is older."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.served import Served

from pyspark_delta.catalog.unity import UnityCatalog
from pyspark_delta.catalog.unity.connection import Connection
from pyspark_delta.catalog.unity.older_api import OlderApi
from pyspark_delta.errors import InvalidProposalError
from pyspark_delta.testing.catalog_cases import KeptMetadata, Registering, StagedCommits
from pyspark_delta.testing.catalog_contract import CatalogContract
from pyspark_delta.testing.catalog_tables import CatalogSetup, fresh, raises


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as server:
        server.catalog.create_schema("main", "tests")
        yield server


class TestDeltaApi(CatalogContract, StagedCommits, Registering, KeptMetadata):
    @pytest.fixture
    def setup(self, served: Served) -> CatalogSetup:
        token = served.token()
        return CatalogSetup(make=lambda: served.client(token))


class TestOlderEndpoints(CatalogContract, StagedCommits, Registering):
    """They have no etags, and cannot rename."""

    def test_a_renamed_table_is_the_same_table(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        with raises(InvalidProposalError):
            catalog.rename_table(table.name, setup.name("new"))
        assert catalog.load_table(table.name) == table

    test_a_name_that_was_given_up_can_be_given_again = test_a_renamed_table_is_the_same_table
    test_a_registered_table_loses_nothing_but_its_name = test_a_renamed_table_is_the_same_table

    @pytest.fixture
    def setup(self, served: Served) -> CatalogSetup:
        token = served.token()

        def make() -> UnityCatalog:
            connection = Connection(served.url, token)
            return UnityCatalog(connection, OlderApi(connection))

        return CatalogSetup(make=make)
