"""A catalog in PostgreSQL keeps the catalog contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.testing.catalog_cases import (
    InlineCommits,
    KeptMetadata,
    RememberedStaging,
    SoftDrops,
    StagedCommits,
)
from pyspark_delta.testing.catalog_contract import CatalogContract
from pyspark_delta.testing.catalog_literal_names import LiteralNames
from pyspark_delta.testing.catalog_registered import MirroredTables, Registering
from pyspark_delta.testing.catalog_repairs import MirroredRepairs
from pyspark_delta.testing.catalog_tables import CatalogSetup


class TestPostgresqlCatalog(
    CatalogContract,
    StagedCommits,
    InlineCommits,
    Registering,
    MirroredTables,
    SoftDrops,
    RememberedStaging,
    KeptMetadata,
    MirroredRepairs,
    LiteralNames,
):
    @pytest.fixture
    def setup(
        self, sql_catalog: Callable[..., SqlCatalog], postgresql_database: Callable[[], str], tmp_path: Path
    ) -> CatalogSetup:
        url = postgresql_database()
        setup = CatalogSetup(make=lambda: sql_catalog(url, str(tmp_path / "tables")))
        setup.make().create_schema(setup.catalog, setup.schema)
        return setup
