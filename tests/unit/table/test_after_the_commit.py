"""The catalog cannot be reached after a commit: the change is done, and the caller learns that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.managed import Warehouse

from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import CatalogUnavailableError, DeltaWarning
from pyspark_delta.table import Table


class SilentAfterCommits:
    """A view of a catalog that ratifies one commit, and then gives no answer."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.is_silent = inner, False

    def __getattr__(self, name: str) -> Any:
        if self.is_silent and name in ("load_table", "log_tail"):
            raise CatalogUnavailableError("The catalog cannot be reached.")
        return getattr(self.inner, name)

    def ratify(self, *args: Any) -> Any:
        ratified = self.inner.ratify(*args)
        self.is_silent = True
        return ratified

    def create_table(self, *args: Any) -> Any:
        made = self.inner.create_table(*args)
        self.is_silent = True
        return made


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """A catalog with the table `t`, whose only row has the id 1."""
    made = Warehouse(tmp_path)
    made.create(properties={"delta.enableDeletionVectors": "true"})
    made.append(1)
    yield made
    disconnect_catalog(made.name)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append([{"id": 2}]),
        lambda table: table.delete("id = 1"),
        lambda table: table.alter().set_properties({"a.b": "c"}),
        lambda table: table.restore(0),
    ],
    ids=["append", "delete", "alter", "restore"],
)
def test_a_change_that_is_committed_is_no_error(warehouse: Warehouse, change: Callable[[Table], object]) -> None:
    table, whole = warehouse.open(), warehouse.catalog.catalog
    warehouse.through(SilentAfterCommits(whole))  # type: ignore[arg-type]
    with pytest.warns(DeltaWarning, match="The table is changed, .* cannot be reached. Do not repeat the change"):
        change(table)
    warehouse.through(whole)
    assert (table.version, table.refresh().version) == (1, 2)


def test_the_error_about_a_new_table_says_that_it_is_written(warehouse: Warehouse) -> None:
    whole = warehouse.catalog.catalog
    warehouse.through(SilentAfterCommits(whole))  # type: ignore[arg-type]
    with pytest.raises(CatalogUnavailableError, match=r"The table is changed, .* cannot be reached. Do not repeat"):
        Table.create_for_name(warehouse.full("new"), "id BIGINT")
    warehouse.through(whole)
    assert warehouse.open("new").version == 0
