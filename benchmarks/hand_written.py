"""Compares code that replaces a library with that library: `python -m benchmarks.hand_written CASE`.

Cases: `statistics` (parsing statistics of files) and `source` (the rows of the source of a merge). Both ways alternate;
the figures are medians of CPU time, because other work on a machine changes wall time. The results are in
docs/developers/decisions.md.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.synthetic_log import SyntheticLog, file_rows, stats_json, write_log
from pyspark_delta import Table
from pyspark_delta.engines.cost import CostModel
from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.types import DOUBLE, LONG, STRING, StructField, StructType
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.stats.parse import parse_stats

TYPES = {"id": LONG, "price": DOUBLE, "name": STRING}
RUNS = 15


def main(case: str) -> None:
    """Run one case and print its medians."""
    with tempfile.TemporaryDirectory() as folder:
        {"statistics": parsing, "source": source}[case](Path(folder))


def opened(table: str) -> Table:
    """Open a table as a process does that has not opened it before."""
    clear_cache()
    return Table.open(table)


def parsing(folder: Path) -> None:
    """Parse the statistics of a batch of a checkpoint, and plan a scan, sliced and by pyarrow's JSON reader."""
    arrow = mock.patch("pyspark_delta.stats.parse.slice_uniform", return_value=None)
    texts = stats_json(file_rows(0, 8192, 300))
    for names in (["id"], ["id", "price", "name"]):
        leaves = [Column((kind, name), TYPES[name]) for kind in ("minValues", "maxValues") for name in names]
        compare(
            f"statistics of {len(texts)} files, {len(leaves)} leaves",
            lambda leaves=leaves: parse_stats(texts, leaves),
            arrow,
        )
    table = folder / "table"
    write_log(table, SyntheticLog(100_000))
    for where in ("id < 20000", "id >= 50000000 and price < 12505000 and name >= 'customer 00000050000000'"):
        compare(
            f"plan of {where!r}, 100000 files", lambda where=where: opened(str(table)).scan(where=where).files(), arrow
        )


def source(folder: Path) -> None:
    """Collect a source of a merge from its Parquet file, in this process and by a Spark job."""
    from benchmarks.spark_sessions import session
    from pyspark_delta.spark.engine.dml.merge_source import collected

    spark = session("ours")
    columns = StructType((StructField("id", LONG), StructField("price", DOUBLE), StructField("name", STRING)))
    for rows in (100, 10_000, 100_000):
        path = folder / f"{rows}.parquet"
        ids = np.arange(rows)
        names = pa.array([f"name {number}" for number in ids])
        pq.write_table(pa.table({"id": ids, "price": ids / 7, "name": names}), path)
        by_spark = mock.patch("pyspark_delta.spark.engine.dml.merge_source.source_files", return_value=None)

        def run(path: str = str(path)) -> Any:
            return collected(spark.read.parquet(path), columns, CostModel())

        compare(f"source of {rows} rows", run, by_spark)


def compare(what: str, run: Callable[[], Any], library: Any) -> None:
    """Print the medians of CPU and wall time of both ways."""
    times: dict[str, list[tuple[float, float]]] = {"ours": [], "library": []}
    for turn in range(RUNS + 3):
        for way in times:
            with library if way == "library" else mock.patch.dict({}):
                gc.collect()
                cpu, wall = cpu_seconds(), time.perf_counter()
                run()
                taken = cpu_seconds() - cpu, time.perf_counter() - wall
            if turn >= 3:  # the first ones warm up
                times[way].append(taken)
    medians = {
        way: [statistics.median(column) * 1e3 for column in zip(*taken, strict=True)] for way, taken in times.items()
    }
    (cpu, wall), (library_cpu, library_wall) = medians["ours"], medians["library"]
    print(
        f"{what}: CPU {cpu:.1f} ms, library {library_cpu:.1f} ms, {library_cpu / cpu:.2f} times; "
        f"wall {wall:.1f} and {library_wall:.1f} ms, {library_wall / wall:.2f} times"
    )


def cpu_seconds() -> float:
    """CPU time of this process and of its running children, such as Spark's JVM."""
    total, tick = time.process_time(), os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    for child in " ".join(path.read_text() for path in children).split():
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


if __name__ == "__main__":
    main(sys.argv[1])
