"""Tests do not wait until files are on the disk: nothing that they write outlives the machine.

`test_local_durability` shows the calls and their order. The stage `bare`, other processes and `make test-long` do wait.
"""

from __future__ import annotations

import os

from tests.lengths import FULL


def pytest_configure() -> None:
    """`os.fsync` does nothing from now on."""
    if not FULL:
        os.fsync = lambda fd: None
