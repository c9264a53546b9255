"""A folder of tables, and statements on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pyspark_delta import sql

Run: TypeAlias = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a statement on the tables of a folder, and return the rows of its result."""

    def run(text: str, **options: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = sql(text, tmp_path, **options).to_pylist()
        return rows

    return run


@pytest.fixture
def orders(run: Run) -> Run:
    """The table `orders` with three rows, two of them of the partition k = 1."""
    run("CREATE TABLE orders (id BIGINT NOT NULL, k INT, s STRING) USING delta PARTITIONED BY (k)")
    run("INSERT INTO orders VALUES (1, 1, 'a'), (2, 1, NULL), (3, 1 + 1, upper('b'))")
    return run
