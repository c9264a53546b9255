"""B7: bring a loaded table up to date after some commits."""

from __future__ import annotations

from benchmarks.model import OURS, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.slow_store import reach
from benchmarks.workloads.answers import column, names
from benchmarks.workloads.logs import ADDS, FIRST_VERSION, LAST_VERSION, REMOVES, log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """1, 10 and 100 new commits; with `list_files`, the live files after that too; and once far away."""
    small, middle, large = scale.files
    base = f"{size(small)} files, 10 commits"

    def variant(files: int, commits: int, *goals: Goal | Growth, list_files: bool = False) -> Variant:
        name = f"{size(files)} files, {commits} commit{'s' if commits > 1 else ''}"
        arguments = {"version": LAST_VERSION - commits, "list_files": list_files}
        repetitions = 3 if files == large else 5
        name += ", list files" if list_files else ""
        return Variant(name, log(files), arguments, goals, repetitions)

    many = dataset("log", files=middle, commits=120, adds=ADDS, removes=REMOVES)
    hundred = {"version": FIRST_VERSION + 20, "list_files": False}

    return Workload(
        "B7",
        "Bring a loaded table up to date",
        (Peer(OURS, f"{_HERE}:ours"), Peer("deltalake", f"{_HERE}:deltalake")),
        (
            variant(small, 10, Goal("deltalake", 5)),
            variant(middle, 10, Goal("deltalake", 50), Growth(base, 1.5)),
            Variant(f"{size(middle)} files, 100 commits", many, hundred, (Goal("deltalake", 10),)),
            variant(large, 1, Goal("deltalake", 500)),
            variant(large, 10, Goal("deltalake", 500), Growth(base, 1.5)),
            variant(large, 10, Goal("deltalake", 4), list_files=True),
            Variant(
                f"{size(middle)} files, 10 commits, slow store",
                log(middle),
                {"version": LAST_VERSION - 10, "list_files": False, "slow": True},
                (),
                3,
            ),
        ),
    )


def ours(location: str, version: int, list_files: bool, slow: bool = False) -> Prepared:
    from pyspark_delta.snapshot import Snapshot

    columns = ("path", "size", "modification_time", "partition_values")
    location, options = reach(location, slow)
    before = Snapshot.load(location, version=version, storage_options=options)
    before.files(columns)
    if list_files:
        return Prepared(lambda: before.update().files(columns), lambda t: names(column(t, "path")))
    return Prepared(before.update, lambda snapshot: snapshot.version)


def deltalake(location: str, version: int, list_files: bool, slow: bool = False) -> Prepared:
    from deltalake import DeltaTable

    location, options = reach(location, slow)
    table = DeltaTable(location, version=version, storage_options=options)
    table.get_add_actions()
    if list_files:

        def listed() -> object:
            table.update_incremental()
            return table.get_add_actions()

        return Prepared(listed, lambda t: names(column(t, "path")))
    return Prepared(table.update_incremental, lambda _: table.version())
