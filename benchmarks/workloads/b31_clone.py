"""B31: clone a table of a million files: shallow, so that no data file is read or written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.logs import log

_HERE = __name__
DELTA_SPARK = "delta-spark"
DEEP_FILES, DEEP_ROWS = 2_000, 1_000


def workload(scale: Scale) -> Workload:
    """A shallow clone of a large log, and a deep one of some files."""
    files = scale.files[-1]
    deep = min(DEEP_FILES, scale.many_files)
    return Workload(
        "B31",
        "Clone",
        (
            Peer(ARROW, f"{_HERE}:arrow", processes=3),
            Peer("cp", f"{_HERE}:copy", processes=3, against=ARROW, checked=False),
            Peer(OURS, f"{_HERE}:ours", processes=1, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", processes=1, session=True),
        ),
        (
            Variant(
                f"shallow, {size(files)} files",
                log(files),
                {"shallow": True},
                (Goal(DELTA_SPARK, 4),),
                peers=(ARROW, OURS, DELTA_SPARK),
            ),
            Variant(
                f"deep, {size(deep)} files",
                dataset("data", rows=deep * DEEP_ROWS, files=deep),
                {"shallow": False},
                (Goal("cp", 1 / 1.5),),
                peers=(ARROW, "cp"),
            ),
        ),
    )


def arrow(location: str, shallow: bool) -> Prepared:
    from pyspark_delta import Table

    table: Any = Table.open(location)
    return _prepared(location, lambda target: table.clone(target, shallow=shallow))


def copy(location: str, shallow: bool) -> Prepared:
    """What a deep clone needs at least."""
    import shutil

    return _prepared(location, lambda target: shutil.copytree(location, target))


def ours(location: str, shallow: bool) -> Prepared:
    """By `DeltaTable`, in a session."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    table: Any = DeltaTable.forPath(session("ours"), location)
    return _prepared(location, lambda target: table.clone(target, isShallow=shallow))


def delta_spark(location: str, shallow: bool) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")
    return _prepared(
        location, lambda target: spark.sql(f"create table delta.`{target}` shallow clone delta.`{location}`").collect()
    )


def _prepared(location: str, clone: Callable[[str], Any]) -> Prepared:
    """One call with a target that does not exist; the answer is its number of files."""
    folder = tempfile.TemporaryDirectory(prefix="b31-", dir=Path(location).parent)
    target = str(Path(folder.name, "clone"))

    def answer(_: object) -> int:
        from pyspark_delta.table import Table

        found = Table.open(target).snapshot.num_files()
        folder.cleanup()
        return found

    return Prepared(lambda: clone(target), answer)
