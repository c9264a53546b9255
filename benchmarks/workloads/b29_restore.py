"""B29: restore a version of a table of a million files from which a tenth of the files differ. All files exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.logs import FIRST_VERSION

_HERE = __name__
DELTA_SPARK, DELTALAKE = "delta-spark", "deltalake"
COMMITS = 5


def workload(scale: Scale) -> Workload:
    """A large table."""
    files = scale.files[-1]
    changed = files // 100
    return Workload(
        "B29",
        "Restore",
        (
            Peer(ARROW, f"{_HERE}:arrow", processes=3),
            Peer(DELTALAKE, f"{_HERE}:deltalake", processes=3, against=ARROW),
            Peer(OURS, f"{_HERE}:ours", processes=1, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", processes=1, session=True),
        ),
        (
            Variant(
                f"{size(files)} files, {size(2 * COMMITS * changed)} differ",
                dataset("file_tree", files=files, commits=COMMITS, adds=changed, removes=changed),
                {},
                (Goal(DELTALAKE, 8), Goal(DELTA_SPARK, 4)),
            ),
        ),
    )


def arrow(location: str) -> Prepared:
    from benchmarks.file_trees import warm_up
    from pyspark_delta import Table

    warm_up()
    return _prepared(location, lambda path: Table.open(path).restore(FIRST_VERSION))


def deltalake(location: str) -> Prepared:
    from deltalake import DeltaTable

    return _prepared(location, lambda path: DeltaTable(path).restore(FIRST_VERSION))


def ours(location: str) -> Prepared:
    """By `DeltaTable`, in a session."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark = session("ours")
    return _prepared(location, lambda path: DeltaTable.forPath(spark, path).restoreToVersion(FIRST_VERSION).collect())


def delta_spark(location: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")
    return _prepared(
        location, lambda path: spark.sql(f"restore delta.`{path}` to version as of {FIRST_VERSION}").collect()
    )


def _prepared(location: str, restore: Callable[[str], Any]) -> Prepared:
    """One call on the table as it was made; the answer is the files that are live then."""
    from benchmarks.file_trees import prepare

    table = str(prepare(location))

    def answer(_: object) -> int:
        from pyspark_delta.table import Table

        return Table.open(table).snapshot.num_files()

    return Prepared(lambda: restore(table), answer)
