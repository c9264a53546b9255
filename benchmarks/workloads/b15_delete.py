"""B15: delete rows: some of every file, a range that lies in few files, and whole files that nobody looks into, up to a
day of a table of a million files."""

from __future__ import annotations

from benchmarks.model import OURS, Goal, Growth, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.logs import ADDS, REMOVES
from benchmarks.workloads.row_changes import AS_DELTA_SPARK, AS_DELTALAKE, BY_HAND, FILES, PEERS

SOME_OF_EVERY_FILE = "0.1 % of every file"
SPREAD = "id % 1000 = 7"


def workload(scale: Scale) -> Workload:
    """With deletion vectors, and with files rewritten."""
    few = f"id between {scale.rows // 40 + 100} and {scale.rows // 20 + 100}"
    half = f"id < {scale.rows // 2}"

    rows = f"{size(scale.rows)} rows"
    by_hand = Goal(BY_HAND, 1 / 1.25)

    def variant(name: str, where: str, *goals: Goal | Growth, vectors: bool) -> Variant:
        return Variant(
            f"{rows}, {name}, {'vectors' if vectors else 'rewrite'}",
            dataset("data", rows=scale.rows, files=FILES, vectors=vectors),
            {"kind": "delete", "where": where},
            (AS_DELTA_SPARK, AS_DELTALAKE, *goals),
            others={"plain": dataset("data", rows=scale.rows, files=FILES)},
        )

    rewrite = f"{rows}, {SOME_OF_EVERY_FILE}, rewrite"
    spread = Growth(rewrite, 1 / 4)
    # Few commits, so that none of those that are timed writes a checkpoint.
    files = dataset("log", files=scale.files[-1], commits=5, adds=ADDS, removes=REMOVES)
    return Workload(
        "B15",
        "Delete",
        PEERS,
        (
            variant(SOME_OF_EVERY_FILE, SPREAD, spread, vectors=True),
            variant(SOME_OF_EVERY_FILE, SPREAD, by_hand, vectors=False),
            variant("a range in 2 files", few, vectors=True),
            variant("a range in 2 files", few, by_hand, vectors=False),
            variant("whole files", half, vectors=True),
            Variant(
                f"{size(scale.files[-1])} files, one of 365 days",
                files,
                {"kind": "delete", "where": "p_date = '2024-02-01'", "without_data": True},
                others={"plain": files},
                peers=(OURS,),  # deltalake opens the data files, which are not there
            ),
        ),
    )
