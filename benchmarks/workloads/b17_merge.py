"""B17: merge rows into a table: upserts, inserts and deletes in all files and in few, and those of TPC-H."""

from __future__ import annotations

from typing import Any

from benchmarks.model import Goal, Growth, Scale, Variant, Workload, dataset, size
from benchmarks.tpch import KEY, MEASURE
from benchmarks.workloads.row_changes import AS_DELTA_SPARK, BY_HAND, DELTALAKE, FILES, PEERS

_GOALS = (AS_DELTA_SPARK, Goal(BY_HAND, 1 / 1.3))
_SPREAD = "upsert of 1 %, spread"


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    rows, more = scale.rows, 5 * scale.rows
    spread = {"start": 0, "stop": rows, "step": 100, "new": rows // 1000}
    more_spread = {"start": 0, "stop": more, "step": 100, "new": more // 1000}
    few = {"start": rows // 2, "stop": rows // 2 + rows // 100, "step": 1, "new": rows // 1000}
    whole = {"start": 0, "stop": rows // 20, "step": 1, "new": 0}

    rewrite = f"{size(rows)} rows, {_SPREAD}, rewrite"
    spread_goals = (Goal(DELTALAKE, 1 / 1.5), Growth(rewrite, 1 / 3.5))

    def variant(name: str, *goals: Goal | Growth, vectors: bool, rows: int = scale.rows, **statement: Any) -> Variant:
        return Variant(
            f"{size(rows)} rows, {name}, {'vectors' if vectors else 'rewrite'}",
            dataset("data", rows=rows, files=FILES, vectors=vectors),
            {"kind": "merge", "rows": rows, **statement},
            (*_GOALS, *goals),
            others={"plain": dataset("data", rows=rows, files=FILES)},
        )

    return Workload(
        "B17",
        "Merge",
        PEERS,
        (
            variant(_SPREAD, *spread_goals, vectors=True, **spread),
            variant(_SPREAD, vectors=False, **spread),
            variant("upsert of 1 %, in one file", vectors=True, **few),
            variant("upsert of 1 %, in one file", vectors=False, **few),
            variant("insert of 0.1 %", vectors=True, updates=False, **{**spread, "step": rows // 10}),
            variant("delete of 1 %", vectors=True, updates=False, deletes=True, inserts=False, **spread),
            variant("upsert of 10 %, half of the files", vectors=True, **{**spread, "stop": rows // 2, "step": 5}),
            variant("upsert of all rows of two files", vectors=True, **{**few, "start": 0, "stop": rows // 20}),
            variant("insert of 10 %", vectors=True, updates=False, **{**spread, "step": rows // 10, "new": rows // 10}),
            variant("insert of nothing, 1 % looked for", vectors=True, updates=False, **{**spread, "new": 0}),
            variant("delete of two files", vectors=True, updates=False, deletes=True, inserts=False, **whole),
            variant(_SPREAD, *spread_goals[:1], vectors=True, rows=more, **more_spread),
            variant(_SPREAD, vectors=False, rows=more, **more_spread),
            _lineitem(2 * rows, vectors=True),
            _lineitem(2 * rows, vectors=False),
        ),
    )


def _lineitem(rows: int, *, vectors: bool) -> Variant:
    """An upsert by two columns into a table of sixteen."""
    source = dataset("lineitem_source", rows=rows, files=FILES, every=100, new=rows // 1000)
    return Variant(
        f"TPC-H lineitem, {size(rows)} rows, upsert of 1 %, {'vectors' if vectors else 'rewrite'}",
        dataset("lineitem", rows=rows, files=FILES, vectors=vectors),
        {"kind": "merge", "key": KEY, "measure": MEASURE},
        _GOALS,
        others={"plain": dataset("lineitem", rows=rows, files=FILES), "source": source},
    )
