"""Every table that these tests write is checked against the protocol.

Vacuums run as if it were later, so files are gone within the retention by the clock; and tests make files older.
"""

from __future__ import annotations

import pytest
from tests.checker import pytest_runtest_makereport, written_tables_are_sound

__all__ = ["pytest_runtest_makereport", "written_tables_are_sound"]

EARLY = pytest.mark.findings("F10", "F12", "L09", "L10")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow findings that another clock causes; the tests of the checker look at their own findings."""
    for item in items:
        if "tests/unit/maintenance/checking" in item.path.as_posix():
            item.add_marker(pytest.mark.findings("all"))
        elif "tests/unit/maintenance" in item.path.as_posix():
            item.add_marker(EARLY)
