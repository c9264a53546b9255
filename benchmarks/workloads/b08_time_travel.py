"""B8: open an earlier version, by number or by time, and read the newest entries of the history."""

from __future__ import annotations

from datetime import UTC, datetime

from benchmarks.json_logs import time_of
from benchmarks.model import OURS, Dataset, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.logs import LAST_VERSION, log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """Ten commits back in each log of files; time and history in logs of few and many commits."""
    small, middle, large = scale.files
    few, many = scale.commits
    back = {"version": LAST_VERSION - 10}

    def json_log(commits: int) -> Dataset:
        return dataset("json_log", commits=commits, adds=1, removes=0)

    def variant(name: str, files: int, *goals: Goal | Growth) -> Variant:
        return Variant(name, log(files), {"action": "version", **back}, goals, 3, peers=(OURS, "deltalake"))

    small_name, few_name = f"version, {size(small)} files", f"history(10), {size(few)} commits"
    history = {"action": "history", "limit": 10}
    return Workload(
        "B8",
        "Time travel and history",
        (Peer(OURS, f"{_HERE}:ours"), Peer("deltalake", f"{_HERE}:deltalake")),
        (
            variant(small_name, small, Goal("deltalake", 4)),
            variant(f"version, {size(middle)} files", middle, Goal("deltalake", 25), Growth(small_name, 1.5)),
            variant(f"version, {size(large)} files", large, Goal("deltalake", 200), Growth(small_name, 1.5)),
            Variant(
                f"version {size(many // 2)} of {size(many)} commits",
                json_log(many),
                {"action": "version", "version": many // 2},
                (Goal("deltalake", 12),),
                3,
            ),
            Variant(
                f"time of version {size(many // 2)} of {size(many)} commits",
                json_log(many),
                {"action": "time", "version": many // 2},
                (Goal("deltalake", 12),),
                3,
            ),
            Variant(few_name, json_log(few), history, (Goal("deltalake", 1),)),
            Variant(
                f"history(10), {size(many)} commits",
                json_log(many),
                history,
                (Goal("deltalake", 1), Growth(few_name, 1.5)),
            ),
        ),
    )


def ours(location: str, action: str, version: int = 0, limit: int = 0) -> Prepared:
    from pyspark_delta.table import Table

    if action == "history":
        table = Table.open(location)
        return Prepared(lambda: table.history(limit), lambda entries: [entry["version"] for entry in entries])
    if action == "time":
        return Prepared(lambda: Table.open(location, timestamp=time_of(version) + 500), lambda t: t.version)
    return Prepared(lambda: Table.open(location, version=version), lambda t: t.version)


def deltalake(location: str, action: str, version: int = 0, limit: int = 0) -> Prepared:
    from deltalake import DeltaTable

    if action == "history":
        table = DeltaTable(location)
        return Prepared(lambda: table.history(limit), lambda entries: [entry["version"] for entry in entries])
    if action == "version":
        return Prepared(lambda: DeltaTable(location, version=version), lambda t: t.version())
    when = datetime.fromtimestamp((time_of(version) + 500) / 1000, UTC)

    def timed() -> DeltaTable:
        table = DeltaTable(location, without_files=True)
        table.load_as_version(when)
        return table

    return Prepared(timed, lambda t: t.version())
