"""A fixed amount of pure computing on every core: how fast the machine is, and whether it held still."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

SECONDS = 20.0  # shared machines change their speed within seconds, so that a short look says nothing


def calibrate(seconds: float = SECONDS) -> float:
    """Seconds that the loop takes while all cores run it, on average over `seconds`."""
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        return statistics.mean(pool.map(_average, [seconds] * cores))


def drift(before: float, after: float) -> float:
    """How much the machine's speed moved, as a fraction."""
    return abs(after - before) / min(before, after)


def _average(seconds: float) -> float:
    start = time.perf_counter()
    loops = [_loop()]
    while time.perf_counter() - start < seconds:
        loops.append(_loop())
    return statistics.mean(loops)


def _loop() -> float:
    start = time.perf_counter()
    total = 0
    for i in range(2_000_000):
        total += i & 7
    return time.perf_counter() - start
