"""A fixed amount of pure computing on every core: how fast the machine is, and whether it held still."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

DRIFT_LIMIT = 0.15


def calibrate(rounds: int = 9) -> float:
    """Seconds that the loop takes, all cores at once: the median of its rounds on the slowest core."""
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        return max(pool.map(_rounds, [rounds] * cores))


def drift(before: float, after: float) -> float:
    """How much the machine's speed moved, as a fraction."""
    return abs(after - before) / min(before, after)


def _rounds(count: int) -> float:
    return statistics.median(_loop() for _ in range(count))


def _loop() -> float:
    start = time.perf_counter()
    total = 0
    for i in range(2_000_000):
        total += i & 7
    return time.perf_counter() - start
