"""B5: open, and give all statistics of all live files as typed columns."""

from __future__ import annotations

from typing import Any

from benchmarks.model import OURS, Goal, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.workloads.logs import log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """Every size, and structs in the checkpoint at the largest."""
    small, middle, large = scale.files
    return Workload(
        "B5",
        "Open and read all statistics",
        (Peer(OURS, f"{_HERE}:ours"), Peer("deltalake", f"{_HERE}:deltalake")),
        (
            Variant(f"{size(small)} files", log(small), goals=(Goal("deltalake", 1),)),
            Variant(f"{size(middle)} files", log(middle), goals=(Goal("deltalake", 1),)),
            Variant(f"{size(large)} files", log(large), goals=(Goal("deltalake", 1),), repetitions=3),
            Variant(
                f"{size(large)} files, struct statistics",
                log(large, struct_stats=True),
                goals=(Goal("deltalake", 5),),
                repetitions=3,
            ),
        ),
    )


def ours(location: str) -> Prepared:
    from pyspark_delta.table import Table

    def answer(result: Any) -> list[Any]:
        return _sums(result.flatten(), "numRecords", "minValues.id", "maxValues.id", "nullCount.day", "maxValues.name")

    return Prepared(lambda: Table.open(location).stats(), answer)


def deltalake(location: str) -> Prepared:
    import pyarrow as pa
    from deltalake import DeltaTable

    def answer(result: Any) -> list[Any]:
        return _sums(pa.table(result), "num_records", "min.id", "max.id", "null_count.day", "max.name")

    return Prepared(lambda: DeltaTable(location).get_add_actions(flatten=True), answer)


def _sums(table: Any, *names: str) -> list[Any]:
    import pyarrow.compute as pc

    *numbers, text = names
    return [*(pc.sum(table.column(name)).as_py() for name in numbers), pc.max(table.column(text)).as_py()]
