"""Marks tests by the Spark session they ask for, so that each stage of the suite can select its own.

A fixture whose name holds `connect` makes a test `connect`, one that ends with `_cluster` makes it `cluster`, and one
whose name holds `spark` makes it `spark`. Tests that choose their fixture by a parameter are in a folder of the stage's
name, as are those that need an environment without PySpark (`bare`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import settings

# Time limits per example only tell how busy the machine is; CI repeats the same examples.
settings.register_profile("suite", deadline=None)
settings.register_profile("suite-ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("suite-ci" if os.environ.get("CI") else "suite")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marks before `-m` selects by them."""
    for item in items:
        mark = stage_of(getattr(item, "fixturenames", ()), item.path.parts)
        if mark is not None:
            item.add_marker(mark)


def stage_of(fixtures: Sequence[str], path: Sequence[str]) -> str | None:
    """The mark of a test with these fixtures, in a file with these folders; None for one without a session."""
    if any("connect" in name for name in fixtures):
        return "connect"
    # Tests of clustering need no cluster.
    if any(name.endswith("_cluster") for name in fixtures) or "cluster" in path:
        return "cluster"
    if any("spark" in name for name in fixtures):
        return "spark"
    return "bare" if "bare" in path else None
