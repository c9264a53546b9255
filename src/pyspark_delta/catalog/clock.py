"""The clock of catalogs."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
