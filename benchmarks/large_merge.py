"""Appends and merges more rows than fit into memory, without Spark, and shows the time and the memory that it takes.

Run by hand: `python -m benchmarks.large_merge --gigabytes 10`. The rows are made as they are read. Half of the rows of
the merge update rows of the table, the others are new. Memory is the process's own (`RssAnon` of Linux), sampled 20
times a second: pages of files that the system keeps as long as it has room do not count.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pyspark_delta import Table

_ROWS = 32_768  # of a batch
_TEXT = 380  # characters
_SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("amount", pa.float64()), ("text", pa.string())])


def batches(first: int, count: int, step: int) -> Iterator[pa.RecordBatch]:
    """Yield about 400 bytes a row; ids begin at `first` and are `step` apart, in an order without a pattern."""
    random = np.random.default_rng(1)
    texts = pa.array([random.bytes(_TEXT // 2).hex() for _ in range(4096)])
    for start in range(0, count, _ROWS):
        rows = min(_ROWS, count - start)
        ids = first + step * (start + random.permutation(rows))
        columns = [ids, random.integers(0, 1 << 40, rows), random.random(rows)]
        yield pa.record_batch([*map(pa.array, columns), texts.take(pa.array(random.integers(0, 4096, rows)))], _SCHEMA)


def measured(name: str, run: Callable[[], object]) -> None:
    """Print the CPU seconds and the greatest memory of a function."""
    peak, done = 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not done.wait(0.05):
            peak = max(peak, _own_memory())

    before, held = _cpu_seconds(), _own_memory()
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        result = run()
    finally:
        done.set()
        sampler.join()
    seconds = _cpu_seconds() - before
    print(f"{name}: {seconds:.0f} s of CPU, {(peak - held) >> 20} MiB of memory at most, {result}", flush=True)


def _own_memory() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 0 if found is None else int(found[1]) << 10


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Append, then merge, rows of the given size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10, help="size of the rows in Arrow's memory")
    parser.add_argument("--folder", help="where the table is made; it is removed at the end")
    options = parser.parse_args()
    count = int(options.gigabytes * 1e9 / (_TEXT + 28))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        table = Table.create(folder, _SCHEMA)
        reader = pa.RecordBatchReader.from_batches(_SCHEMA, batches(0, count, 1))
        measured(f"append of {count} rows", lambda: table.append(reader))
        source = pa.RecordBatchReader.from_batches(_SCHEMA, batches(count // 2, count, 1))
        merge = table.merge(source, "source.id = target.id").when_matched_update_all().when_not_matched_insert_all()
        measured(f"merge of {count} rows", merge.execute)
        assert table.refresh().count() == count + count // 2


if __name__ == "__main__":
    main()
