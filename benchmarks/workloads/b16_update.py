"""B16: update rows: some of every file, and a range that lies in few files."""

from __future__ import annotations

from benchmarks.model import Scale, Variant, Workload, dataset, size
from benchmarks.workloads.b15_delete import SPREAD
from benchmarks.workloads.row_changes import AS_DELTA_SPARK, FILES, PEERS


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    few = f"id between {scale.rows // 40 + 100} and {scale.rows // 20 + 100}"

    def variant(name: str, where: str, *, vectors: bool) -> Variant:
        return Variant(
            f"{size(scale.rows)} rows, {name}, {'vectors' if vectors else 'rewrite'}",
            dataset("data", rows=scale.rows, files=FILES, vectors=vectors),
            {"kind": "update", "where": where, "set": {"amount": "amount + 1"}},
            (AS_DELTA_SPARK,),
            others={"plain": dataset("data", rows=scale.rows, files=FILES)},
        )

    return Workload(
        "B16",
        "Update",
        PEERS,
        (
            variant("0.1 % of every file", SPREAD, vectors=True),
            variant("0.1 % of every file", SPREAD, vectors=False),
            variant("a range in 2 files", few, vectors=True),
            variant("a range in 2 files", few, vectors=False),
        ),
    )
