"""B13: read a table whose files have deletion vectors. Plain Parquet, which has all rows, is the lower bound."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.model import Goal, Peer, Scale, Variant, Workload, dataset, size
from benchmarks.workloads.b12_scan import AS_DELTALAKE, AS_POLARS, FILES, plain
from benchmarks.workloads.queries import DELTA_SPARK, INNER, PARQUET, PEERS, PROCESSES, ROW_INDEX, Query

_FUNCTION = "benchmarks.workloads.queries:parquet_row_index"


def workload(scale: Scale) -> Workload:
    """Different shares of deleted rows in all files, and in one file alone."""
    peers = tuple(replace(peer, checked=False) if peer.name == PARQUET else peer for peer in PEERS)
    row_index = Peer(ROW_INDEX, _FUNCTION, inner=INNER, processes=PROCESSES, session=True, checked=False)

    def variant(name: str, goal: Goal, deleted: float, every: int = 1) -> Variant:
        return Variant(
            f"{size(scale.rows)} rows, {name}",
            dataset("data", rows=scale.rows, files=FILES, deleted=deleted, every=every),
            Query().arguments(),
            (goal, Goal(DELTA_SPARK, 1), AS_DELTALAKE, AS_POLARS),
            others={"plain": plain(scale)},
        )

    with_index = Goal(ROW_INDEX, 1 / 1.2)
    return Workload(
        "B13",
        "Scan with deletion vectors",
        (*peers[:2], row_index, *peers[2:]),
        (
            variant("0.1 % deleted in all files", with_index, 0.001),
            variant("1 % deleted in all files", with_index, 0.01),
            variant("10 % deleted in all files", with_index, 0.1),
            variant(f"1 % deleted in one of {FILES} files", Goal(PARQUET, 1 / 1.2), 0.01, FILES),
        ),
    )
