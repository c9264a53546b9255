"""How long the tests that could go on for ever are: what `make test` has time for, and `make test-long` runs in full.

The long tests repeat a rule that `make test` shows too: for more damaged logs, more kinds of tables, more examples.
"""

from __future__ import annotations

import os

FULL = bool(os.environ.get("PYSPARK_DELTA_TEST_FULL"))


def length(usual: int, full: int) -> int:
    """So many examples."""
    return full if FULL else usual
