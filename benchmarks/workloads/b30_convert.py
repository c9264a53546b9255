"""B30: make a Delta table of a directory of Parquet files, with statistics. Nobody has to read rows for them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size

_HERE = __name__
DELTA_SPARK, DELTALAKE, FOOTERS = "delta-spark", "deltalake", "footers by pyarrow, 2 threads"
ROWS = 20


def workload(scale: Scale) -> Workload:
    """Many small files."""
    files = scale.many_files
    return Workload(
        "B30",
        "Convert",
        (
            Peer(ARROW, f"{_HERE}:arrow", processes=3),
            Peer(FOOTERS, f"{_HERE}:footers", processes=3, against=ARROW, checked=False),
            Peer(DELTALAKE, f"{_HERE}:deltalake", processes=3, against=ARROW),
            Peer(OURS, f"{_HERE}:ours", processes=1, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", processes=1, session=True),
        ),
        (
            Variant(
                f"{size(files)} files",
                dataset("data", rows=files * ROWS, files=files),
                {},
                (Goal(FOOTERS, 1 / 1.5), Goal(DELTALAKE, 1), Goal(DELTA_SPARK, 10)),
            ),
        ),
    )


def arrow(location: str) -> Prepared:
    from pyspark_delta import Table

    convert: Any = Table
    return _prepared(location, lambda path: convert.convert(path))


def footers(location: str) -> Prepared:
    """What a conversion needs at least."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow.parquet as pq

    def read(path: str) -> int:
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda file: pq.read_metadata(file).num_rows, Path(path).glob("*.parquet")))

    return _prepared(location, read, is_table=False)


def deltalake(location: str) -> Prepared:
    from deltalake import convert_to_deltalake

    return _prepared(location, convert_to_deltalake)


def ours(location: str) -> Prepared:
    """By `DeltaTable`, in a session."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark, convert = session("ours"), DeltaTable
    return _prepared(location, lambda path: getattr(convert, "convertToDelta")(spark, f"parquet.`{path}`"))  # noqa: B009


def delta_spark(location: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")
    return _prepared(location, lambda path: spark.sql(f"convert to delta parquet.`{path}`").collect())


def _prepared(location: str, convert: Callable[[str], Any], *, is_table: bool = True) -> Prepared:
    """One call on a directory of links to the files; the answer is the number of rows by the statistics."""
    folder = tempfile.TemporaryDirectory(prefix="b30-", dir=Path(location).parent)
    path = str(Path(folder.name, "files"))
    shutil.copytree(location, path, copy_function=os.link, ignore=shutil.ignore_patterns("_delta_log"))

    def answer(_: object) -> int:
        from pyspark_delta.table import Table

        found = Table.open(path).count() if is_table else None
        folder.cleanup()
        return found

    return Prepared(lambda: convert(path), answer)
