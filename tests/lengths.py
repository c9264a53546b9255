"""How long the tests that could go on for ever are: what `make test` has time for, and `make test-long` runs in full.

The long tests repeat a rule that `make test` shows too: for more golden tables, more damaged logs, more examples.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

Tests = TypeVar("Tests", bound=type[Any])
FULL = bool(os.environ.get("PYSPARK_DELTA_TEST_FULL"))


def length(usual: int, full: int) -> int:
    """So many examples."""
    return full if FULL else usual


def only_in_full(*names: str) -> Callable[[Tests], Tests]:
    """For a class that inherits its tests: those that `make test` runs for another heir alone."""

    def leave_out(tests: Tests) -> Tests:
        for name in names:
            assert callable(getattr(tests, name)), name
            if not FULL:
                setattr(tests, name, None)  # pytest passes over what is no function
        return tests

    return leave_out
