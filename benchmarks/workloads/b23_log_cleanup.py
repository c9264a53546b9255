"""B23: clean up a long log whose versions, but for the last, are older than the table keeps them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset

_HERE = __name__
_OLD = 60 * 86_400  # seconds


def workload(scale: Scale) -> Workload:
    """Logs of few and of many commits."""
    return Workload(
        "B23",
        "Clean up the log",
        (Peer(OURS, f"{_HERE}:ours"), Peer("deltalake", f"{_HERE}:deltalake", checked=False)),
        tuple(
            Variant(f"{commits} commits", dataset("json_log", commits=commits, adds=1, removes=0), {}, (goal,), 3)
            for commits, goal in zip(scale.commits, (Goal("deltalake", 1), Goal("deltalake", 1)), strict=True)
        ),
    )


def copied(location: str) -> tuple[Any, Path]:
    """A copy of a log with a checkpoint of its last version but one, all of it old."""
    from pyspark_delta.snapshot import Snapshot

    folder = tempfile.TemporaryDirectory(dir=Path(location).parent)
    table = Path(folder.name, "table")
    shutil.copytree(location, table)
    last = Snapshot.load(str(table)).version
    Snapshot.load(str(table), version=last - 1).checkpoint()
    old = time.time() - _OLD
    for path in (table / "_delta_log").iterdir():
        os.utime(path, (old, old))
    return folder, table


def ours(location: str) -> Prepared:
    from pyspark_delta.table import Table

    folder, table = copied(location)
    opened = Table.open(table)
    return Prepared(lambda: (opened.clean_log(), folder), lambda result: result[0])


def deltalake(location: str) -> Prepared:
    from deltalake import DeltaTable

    folder, table = copied(location)
    opened = DeltaTable(str(table))
    return Prepared(lambda: (opened.cleanup_metadata(), folder))
