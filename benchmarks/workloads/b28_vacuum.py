"""B28: delete files that no version needs: of a table of a million files by a listing, and by the log alone.

The data files are empty, and a twentieth of them belongs to no commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset, size

_HERE = __name__
DELTA_SPARK, DELTALAKE = "delta-spark", "deltalake"


def workload(scale: Scale) -> Workload:
    """A listing of many files, and the log of many commits."""
    files, commits = scale.files[-1], scale.commits[0]
    return Workload(
        "B28",
        "Vacuum",
        (
            Peer(ARROW, f"{_HERE}:arrow", processes=3),
            Peer("names alone", f"{_HERE}:names", processes=3, against=ARROW, checked=False),
            Peer(DELTALAKE, f"{_HERE}:deltalake", processes=3, against=ARROW),
            Peer(OURS, f"{_HERE}:ours", processes=1, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", processes=1, session=True),
        ),
        (
            Variant(
                f"full, {size(files)} files",
                dataset("file_tree", files=files, commits=5, adds=100, removes=100),
                {"mode": "full", "garbage": files // 20},
                (Goal("names alone", 1 / 3), Goal(DELTALAKE, 1), Goal(DELTA_SPARK, 2)),
            ),
            Variant(
                f"lite, {size(commits)} commits",
                dataset("file_tree", files=0, commits=commits, adds=20, removes=10),
                {"mode": "lite", "garbage": 0},
                (Goal(DELTALAKE, 3), Goal(DELTA_SPARK, 2)),
                peers=(ARROW, DELTALAKE, OURS, DELTA_SPARK),
            ),
        ),
    )


def arrow(location: str, mode: Any, garbage: int) -> Prepared:
    from benchmarks.file_trees import warm_up
    from pyspark_delta import Table

    warm_up()
    table = _table(location, garbage)
    return Prepared(
        lambda: Table.open(table).vacuum(0, mode=mode, enforce_retention_duration=False), lambda _: _left(table)
    )


def names(location: str, mode: str, garbage: int) -> Prepared:
    """What a listing needs at least."""
    from benchmarks.file_trees import data_files

    table = _table(location, garbage)
    return Prepared(lambda: data_files(table))


def deltalake(location: str, mode: str, garbage: int) -> Prepared:
    from deltalake import DeltaTable

    table = _table(location, garbage)

    def vacuum() -> None:
        peer = DeltaTable(str(table))
        peer.vacuum(0, dry_run=False, enforce_retention_duration=False, full=mode == "full")

    return Prepared(vacuum, lambda _: _left(table))


def ours(location: str, mode: Any, garbage: int) -> Prepared:
    """By `DeltaTable`, in a session."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark, table = session("ours"), _table(location, garbage)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    return Prepared(
        lambda: DeltaTable.forPath(spark, str(table)).vacuum(0, mode=mode).collect(), lambda _: _left(table)
    )


def delta_spark(location: str, mode: str, garbage: int) -> Prepared:
    from benchmarks.spark_sessions import session

    spark, table = session("delta-spark"), _table(location, garbage)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    statement = f"vacuum delta.`{table}` {mode} retain 0 hours"
    return Prepared(lambda: spark.sql(statement).collect(), lambda _: _left(table))


def _table(location: str, garbage: int) -> Path:
    from benchmarks.file_trees import prepare

    return prepare(location, garbage)


def _left(table: Path) -> int:
    from benchmarks.file_trees import data_files

    return data_files(table)
