"""Marks tests by the Spark session they ask for, so that each stage of the suite can select its own.

A fixture whose name holds `connect` makes a test `connect`, one with `cluster` makes it `cluster`, and one with `spark`
makes it `spark`. Tests that choose their fixture by a parameter are in a folder of the stage's name, as are those that
need an environment without PySpark (`bare`).
"""

from __future__ import annotations

import os

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
        fixtures = getattr(item, "fixturenames", ())
        if any("connect" in name for name in fixtures):
            item.add_marker(pytest.mark.connect)
        elif any("cluster" in name for name in (*fixtures, *item.path.parts)):
            item.add_marker(pytest.mark.cluster)
        elif any("spark" in name for name in fixtures):
            item.add_marker(pytest.mark.spark)
        elif "bare" in item.path.parts:
            item.add_marker(pytest.mark.bare)
