"""Runs one peer of one variant in this fresh process and prints its measurements as one JSON line."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
import traceback
from typing import Any

from benchmarks.model import Prepared
from benchmarks.processes import reset_peak, usage

MARKER = "benchmark: "  # begins a line with an outcome
WARM_UPS = 2
INNER_SECONDS = 20.0  # no further repetition begins after so long


def measure(prepared: Prepared) -> dict[str, Any]:
    """Time one call: wall seconds, CPU seconds of all processes, MiB added to their peak memory, and the answer."""
    gc.collect()
    reset_peak()
    before = usage()
    start = time.perf_counter()
    result = prepared.timed()
    seconds = time.perf_counter() - start
    after = usage()
    return {
        "seconds": seconds,
        "cpu_seconds": after.cpu_seconds - before.cpu_seconds,
        "added_mib": max(after.peak_mib - before.resident_mib, 0.0),
        "answer": prepared.answer(result),
    }


def repeat(prepared: Prepared, inner: int) -> list[dict[str, Any]]:
    """One cold measurement for `inner` 0, otherwise that many after warming up, fewer when they take long."""
    if not inner:
        return [measure(prepared)]
    start = time.perf_counter()
    for _ in range(WARM_UPS):
        prepared.timed()
        if time.perf_counter() - start > INNER_SECONDS:
            break
    runs = [measure(prepared)]
    while len(runs) < inner and time.perf_counter() - start < INNER_SECONDS:
        runs.append(measure(prepared))
    return runs


def main() -> None:
    """`python -m benchmarks.case FUNCTION CASES INNER`: a line for each of the cases, the arguments of the function.

    A case that fails does not keep the others from running.
    """
    function, cases, inner = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    module, _, name = function.partition(":")
    for number, arguments in enumerate(cases):
        try:
            prepared: Prepared = getattr(importlib.import_module(module), name)(**arguments)
            outcome: dict[str, Any] = {"runs": repeat(prepared, inner)}
        except Exception as error:
            traceback.print_exc()
            outcome = {"error": f"{type(error).__name__}: {error}"}
        print("\n" + MARKER + json.dumps({"case": number, **outcome}, default=str), flush=True)


if __name__ == "__main__":
    main()
