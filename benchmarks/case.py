"""Runs one peer of one variant in this fresh process and prints its measurements as one JSON line."""

from __future__ import annotations

import gc
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def measure(timed: Callable[[], Any]) -> dict[str, Any]:
    """Time one call: wall seconds, CPU seconds of this process, MiB added to its peak memory, and the answer."""
    gc.collect()
    before, peak = resource.getrusage(resource.RUSAGE_SELF), _peak_mib()
    start = time.perf_counter()
    answer = timed()
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"seconds": seconds, "cpu_seconds": cpu, "added_mib": _peak_mib() - peak, "answer": answer}


def main() -> None:
    """`python -m benchmarks.case FUNCTION ARGUMENTS INNER`: the last line printed is the result."""
    function, arguments, inner = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    module, _, name = function.partition(":")
    timed = getattr(importlib.import_module(module), name)(**arguments)
    if inner:
        timed()
    runs = [measure(timed) for _ in range(max(inner, 1))]
    print("\n" + json.dumps(runs, default=str), flush=True)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
