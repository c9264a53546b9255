"""A catalog in SQLite keeps the catalog contract."""

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


class TestSqliteCatalog(
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
    def setup(self, sql_catalog: Callable[..., SqlCatalog], tmp_path: Path) -> CatalogSetup:
        setup = CatalogSetup(make=lambda: sql_catalog(f"sqlite:///{tmp_path}/catalog/catalog.db"))
        setup.make().create_schema(setup.catalog, setup.schema)
        return setup
