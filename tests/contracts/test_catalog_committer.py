"""The committer of managed tables keeps the committer contract, with commits given to the catalog and staged ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.managed import Warehouse

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Capability
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.commit.catalog import CatalogCommitter
from pyspark_delta.errors import NotAuthorizedError
from pyspark_delta.storage import store_for
from pyspark_delta.testing.catalog_faults import FaultyCatalog, no_answer
from pyspark_delta.testing.committer_contract import CommitterContract, CommitterSetup
from pyspark_delta.testing.faults import Fault


class StagingOnly(SqlCatalog):
    """A catalog that takes no content."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return super().capabilities - {Capability.INLINE}


class TestCatalogCommitter(CommitterContract):
    @pytest.fixture(params=[SqlCatalog, StagingOnly])
    def setup(self, request: pytest.FixtureRequest, tmp_path: Path) -> CommitterSetup:
        warehouse = Warehouse(tmp_path)
        warehouse.create()
        warehouse.through(request.param.connect(warehouse.url, warehouse.root))
        found = managed_table(warehouse.snapshot().catalog_table)
        assert found is not None
        table: ManagedTable = found
        store = store_for(table.location)

        def read(version: int) -> bytes | None:
            tail = table.log_tail()
            commit = next((c for c in tail.commits if c.version == version), None)
            if version > tail.latest_version:
                return None
            published = Path(table.location) / "_delta_log" / f"{version:020}.json"
            assert commit is None or table.read(store, commit) == published.read_bytes()
            return published.read_bytes()

        def failing(fault: Fault) -> CatalogCommitter:
            return CatalogCommitter(replace(table, catalog=FaultyCatalog(table.catalog, fault)), store)  # type: ignore[arg-type]

        return CommitterSetup(
            location=table.location,
            make=lambda: CatalogCommitter(table, store_for(table.location)),
            read=read,
            lost_answer=lambda: failing(Fault(path_part="ratify", when="after", raises=no_answer)),
            lost_request=lambda: failing(Fault(path_part="ratify", when="before", raises=no_answer)),
            refused=lambda: failing(Fault(path_part="ratify", raises=_refused)),
            first=1,
        )


def _refused(call: str) -> BaseException:
    return NotAuthorizedError(f"The caller may not {call}.")
