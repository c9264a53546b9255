"""Reads, plans, checkpoints and vacuums a table of many millions of files, whose log is all there is of it.

Run by hand: `python -m benchmarks.large_log --files 10M`. Each step runs in a process of its own, without Spark. It
prints seconds of time and of CPU, the greatest memory (as `large_merge` counts it), and what the step found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

from benchmarks.large_merge import measured
from benchmarks.synthetic_log import ROWS_PER_FILE, SyntheticLog, write_log
from pyspark_delta import Table

_FILES_OF_PART = 100_000


_DAY = "p_date = DATE '2024-03-01'"
_RANGE = f"id BETWEEN {500_000 * ROWS_PER_FILE} AND {500_000 * ROWS_PER_FILE + 10}"


def _planned(path: str, where: str) -> int:
    return Table.open(path).scan(where=where).files().num_rows


def _open(path: str) -> object:
    return Table.open(path).version


def _all_files(path: str) -> object:
    return f"{Table.open(path).files().num_rows:,} files"


def _of_partition(path: str) -> object:
    return f"{_planned(path, _DAY):,} files"


def _of_statistics(path: str) -> object:
    return f"{_planned(path, _RANGE):,} files"


def _commit(path: str) -> object:
    Table.open(path).alter().set_properties({"user.note": "committed"})
    return Table.open(path).version


def _checkpoint(path: str) -> object:
    Table.open(path).checkpoint()
    return "written"


def _first_batch(path: str) -> object:
    batch = Table.open(path).stream().next()
    return f"{0 if batch is None else batch.num_files:,} files"


def _vacuum(path: str) -> object:
    return Table.open(path).vacuum(plan=True, mode="lite")


def _in_tasks(path: str) -> object:
    """The time of planning alone, by tasks of a local session with two cores."""
    from pyspark.sql import SparkSession

    from pyspark_delta import enable
    from pyspark_delta.spark.engine.checkpoint_scan import MINIMUM_ACTIONS

    settings = {"spark.ui.enabled": "false", MINIMUM_ACTIONS: "1"}
    spark = enable(SparkSession.builder.master("local[2]").config(map=settings).getOrCreate())
    spark.createDataFrame([], "id long")  # makes the session that of this thread
    times = []
    for _ in range(3):  # the first time, Spark starts its workers
        start = time.perf_counter()
        found = _planned(path, _RANGE)
        times.append(time.perf_counter() - start)
    return f"{found:,} files, {', '.join(f'{seconds:.1f}' for seconds in times)} s"


STEPS: dict[str, Callable[[str], object]] = {
    "open": _open,
    "list all files": _all_files,
    "plan one partition of 365": _of_partition,
    "plan by statistics": _of_statistics,
    "plan by statistics in tasks": _in_tasks,
    "first batch of a stream": _first_batch,
    "commit": _commit,
    "checkpoint": _checkpoint,
    "plan a lite vacuum": _vacuum,
}


def _run(name: str, path: str) -> None:
    start = time.perf_counter()
    measured(name, lambda: f"{STEPS[name](path)}, {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Make the log, and run the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", default="10M", help="the number of live files, such as 500k or 10M")
    parser.add_argument("--struct", action="store_true", help="statistics as columns in place of JSON")
    parser.add_argument("--only", nargs="*", choices=[*STEPS], help="the steps to run")
    parser.add_argument("--folder", help="where the log is made, and kept for the next run")
    options = parser.parse_args()
    files = int(options.files.lower().replace("m", "000000").replace("k", "000"))
    parts = max(1, files // _FILES_OF_PART)
    kinds = {"struct_stats": options.struct, "json_stats": not options.struct}
    log = SyntheticLog(files, "multi-part", parts=parts, **kinds)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(options.folder or folder) / f"{options.files}{'-struct' if options.struct else ''}"
        if not table.exists():
            measured("make the log", lambda: write_log(table, log))
        for name in options.only or STEPS:
            process = get_context("spawn").Process(target=_run, args=(name, str(table)))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
