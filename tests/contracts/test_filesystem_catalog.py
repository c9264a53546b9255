"""A catalog of files keeps the catalog contract, on a disk and in memory."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from pyspark_delta.catalog.filesystem import FilesystemCatalog
from pyspark_delta.testing.catalog_cases import PublishedCommits, Registering, SoftDrops
from pyspark_delta.testing.catalog_contract import CatalogContract
from pyspark_delta.testing.catalog_literal_names import LiteralNames
from pyspark_delta.testing.catalog_tables import CatalogSetup


class TestFilesystemCatalog(CatalogContract, PublishedCommits, Registering, SoftDrops, LiteralNames):
    @pytest.fixture(params=["local", "memory"])
    def setup(self, request: pytest.FixtureRequest, tmp_path: Path) -> CatalogSetup:
        url = f"file://{tmp_path}/catalog" if request.param == "local" else f"memory://{uuid.uuid4().hex}/catalog"
        setup = CatalogSetup(make=lambda: FilesystemCatalog(url))
        setup.make().create_schema(setup.catalog, setup.schema)
        return setup
