"""B16: update rows: some of every file, and a range that lies in few files."""

from __future__ import annotations

from benchmarks.model import Goal, Growth, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.b15_delete import SOME_OF_EVERY_FILE, SPREAD
from benchmarks.workloads.row_changes import AS_DELTA_SPARK, AS_DELTALAKE, BY_HAND, FILES, PEERS


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    few = f"id between {scale.rows // 40 + 100} and {scale.rows // 20 + 100}"

    rows = f"{size(scale.rows)} rows"
    by_hand = Goal(BY_HAND, 1 / 1.25)
    third_of_rewrite = Growth(f"{rows}, {SOME_OF_EVERY_FILE}, rewrite", 1 / 3)

    def variant(name: str, where: str, *goals: Goal | Growth, vectors: bool) -> Variant:
        return Variant(
            f"{rows}, {name}, {'vectors' if vectors else 'rewrite'}",
            dataset("data", rows=scale.rows, files=FILES, vectors=vectors),
            {"kind": "update", "where": where, "set": {"amount": "amount + 1"}},
            (AS_DELTA_SPARK, AS_DELTALAKE, *goals),
            others={"plain": dataset("data", rows=scale.rows, files=FILES)},
        )

    return Workload(
        "B16",
        "Update",
        PEERS,
        (
            variant(SOME_OF_EVERY_FILE, SPREAD, third_of_rewrite, vectors=True),
            variant(SOME_OF_EVERY_FILE, SPREAD, by_hand, vectors=False),
            variant("a range in 2 files", few, vectors=True),
            variant("a range in 2 files", few, by_hand, vectors=False),
        ),
    )
