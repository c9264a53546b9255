"""Every table that these tests write is checked against the protocol."""

from __future__ import annotations

from tests.checker import pytest_runtest_makereport, written_tables_are_sound

__all__ = ["pytest_runtest_makereport", "written_tables_are_sound"]
