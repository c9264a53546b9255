"""Fixtures that every test may use: where the golden tables are."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest_plugins = ["tests.plugins.stages", "tests.plugins.postgresql"]
if find_spec("pyspark") is not None:  # the stage `bare` has none
    pytest_plugins += ["tests.plugins.sessions", "tests.plugins.disk", "tests.plugins.hdfs"]

GOLDEN = Path(os.environ.get("PYSPARK_DELTA_GOLDEN") or Path(__file__).parents[2] / "shared" / "golden")


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of golden tables; the test is skipped where it is absent."""
    if not GOLDEN.is_dir():
        pytest.skip(f"golden tables not found at {GOLDEN}; set PYSPARK_DELTA_GOLDEN")
    return GOLDEN


@pytest.fixture(scope="session")
def golden_table(golden: Path) -> Callable[[str], Path]:
    """The folder of one golden table by its id, `source/name`."""

    def find(table_id: str) -> Path:
        path = golden / table_id
        assert path.is_dir(), f"no golden table {table_id}"
        return path

    return find
