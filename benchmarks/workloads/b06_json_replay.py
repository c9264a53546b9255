"""B6: a log without a checkpoint, of many small or fewer large commits."""

from __future__ import annotations

from benchmarks.model import OURS, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, dataset, size
from benchmarks.workloads import b01_open, b02_live_files

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """The shapes of `benchmarks.json_logs`, opened and listed; one has log compactions, one is far away."""
    few, many = scale.commits
    shapes = (
        # commits, adds and removes of each, goals of opening and of listing
        (few, 10, 2, 12, 5),
        (many, 1, 0, 12, 5),
        (many, 10, 2, 12, 5),
        (few, 500, 149, 8, 1.8),
    )
    variants = []
    for commits, adds, removes, opening, listing in shapes:
        log = dataset("json_log", commits=commits, adds=adds, removes=removes)
        name = f"{size(commits)} commits of {1 + adds + removes} actions"
        variants += [
            Variant(f"{name}: open", log, {"list_files": False}, (Goal("deltalake", opening),), 3),
            Variant(f"{name}: list files", log, {"list_files": True}, (Goal("deltalake", listing),), 3),
        ]
    name, plain = f"{size(many)} commits of 13 actions", {"commits": many, "adds": 10, "removes": 2}
    variants.append(
        Variant(
            f"{name}, compacted: list files",
            dataset("json_log", **plain, compacted=many // 10),
            {"list_files": True},
            (Growth(f"{name}: list files", 0.3),),
            3,
            peers=(OURS,),
        )
    )
    far = dataset("json_log", commits=few, adds=10, removes=2)
    variants += [
        Variant(
            f"{size(few)} commits of 13 actions, slow store: {what}", far, {"list_files": files, "slow": True}, (), 3
        )
        for what, files in (("open", False), ("list files", True))
    ]
    return Workload(
        "B6",
        "Replay a log of JSON commits alone",
        (Peer(OURS, f"{_HERE}:ours"), Peer("deltalake", f"{_HERE}:deltalake")),
        tuple(variants),
    )


def ours(location: str, list_files: bool, slow: bool = False) -> Prepared:
    return (b02_live_files if list_files else b01_open).ours(location, slow)


def deltalake(location: str, list_files: bool, slow: bool = False) -> Prepared:
    return (b02_live_files if list_files else b01_open).deltalake(location, slow)
