"""B15: delete rows: some of every file, a range that lies in few files, and whole files that nobody looks into."""

from __future__ import annotations

from benchmarks.model import Goal, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.row_changes import AS_DELTA_SPARK, DELTALAKE, FILES, PEERS

SPREAD = "id % 1000 = 7"


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    few = f"id between {scale.rows // 40 + 100} and {scale.rows // 20 + 100}"
    half = f"id < {scale.rows // 2}"

    def variant(name: str, where: str, goal: tuple[Goal, ...] = (), *, vectors: bool) -> Variant:
        return Variant(
            f"{size(scale.rows)} rows, {name}, {'vectors' if vectors else 'rewrite'}",
            dataset("data", rows=scale.rows, files=FILES, vectors=vectors),
            {"kind": "delete", "where": where},
            (AS_DELTA_SPARK, *goal),
            others={"plain": dataset("data", rows=scale.rows, files=FILES)},
        )

    return Workload(
        "B15",
        "Delete",
        PEERS,
        (
            variant("0.1 % of every file", SPREAD, (Goal(DELTALAKE, 1 / 0.8),), vectors=True),
            variant("0.1 % of every file", SPREAD, vectors=False),
            variant("a range in 2 files", few, vectors=True),
            variant("a range in 2 files", few, vectors=False),
            variant("whole files", half, vectors=True),
        ),
    )
