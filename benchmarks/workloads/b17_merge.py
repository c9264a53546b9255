"""B17: merge rows into a table: upserts of every file and of few files, inserts alone, deletes alone."""

from __future__ import annotations

from typing import Any

from benchmarks.model import Goal, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.row_changes import AS_DELTA_SPARK, DELTALAKE, FILES, PEERS


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    rows = scale.rows
    spread = {"start": 0, "stop": rows, "step": 100, "new": rows // 1000}
    few = {"start": rows // 2, "stop": rows // 2 + rows // 100, "step": 1, "new": rows // 1000}

    def variant(name: str, goal: tuple[Goal, ...] = (), *, vectors: bool, **statement: Any) -> Variant:
        return Variant(
            f"{size(rows)} rows, {name}, {'vectors' if vectors else 'rewrite'}",
            dataset("data", rows=rows, files=FILES, vectors=vectors),
            {"kind": "merge", "rows": rows, **statement},
            (AS_DELTA_SPARK, *goal),
            others={"plain": dataset("data", rows=rows, files=FILES)},
        )

    return Workload(
        "B17",
        "Merge",
        PEERS,
        (
            variant("upsert of 1 %, spread", (Goal(DELTALAKE, 1 / 1.5),), vectors=True, **spread),
            variant("upsert of 1 %, spread", vectors=False, **spread),
            variant("upsert of 1 %, in one file", vectors=True, **few),
            variant("upsert of 1 %, in one file", vectors=False, **few),
            variant("insert of 0.1 %", vectors=True, updates=False, **{**spread, "step": rows // 10}),
            variant("delete of 1 %", vectors=True, updates=False, deletes=True, inserts=False, **spread),
        ),
    )
