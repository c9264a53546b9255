"""B2: open, and list the live files with path, size, modification time and partition values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.model import OURS, Goal, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.slow_store import reach
from benchmarks.workloads.answers import column, names
from benchmarks.workloads.logs import log

if TYPE_CHECKING:
    import pyarrow as pa

_HERE = __name__
_COLUMNS = ("path", "size", "modification_time", "partition_values")
_ARROW = "pyarrow, same columns"


def workload(scale: Scale) -> Workload:
    """Every size; at the largest also every kind of checkpoint, and a store far away."""
    small, middle, large = scale.files
    own = (OURS, "deltalake")
    return Workload(
        "B2",
        "Open and list the live files",
        (
            Peer(OURS, f"{_HERE}:ours"),
            Peer("deltalake", f"{_HERE}:deltalake"),
            Peer(_ARROW, f"{_HERE}:arrow", checked=False),
        ),
        (
            Variant(f"{size(small)} files", log(small), goals=(Goal("deltalake", 3),)),
            Variant(f"{size(middle)} files", log(middle), goals=(Goal("deltalake", 4),)),
            Variant(
                f"{size(large)} files",
                log(large),
                goals=(Goal("deltalake", 12), Goal(_ARROW, 1 / 1.3), Goal("deltalake", 1 / 0.4, "added_mib")),
                repetitions=3,
            ),
            Variant(
                f"{size(large)} files, struct statistics",
                log(large, struct_stats=True),
                goals=(Goal("deltalake", 9),),
                repetitions=3,
                peers=own,
            ),
            Variant(
                f"{size(large)} files, 10 parts",
                log(large, kind="multi-part"),
                goals=(Goal("deltalake", 12),),
                repetitions=3,
                peers=own,
            ),
            Variant(
                f"{size(large)} files, V2 with 10 sidecars",
                log(large, kind="v2"),
                goals=(Goal("deltalake", 12),),
                repetitions=3,
                peers=own,
            ),
            *(
                Variant(f"{size(files)} files, slow store", log(files), {"slow": True}, (), 3, peers=own)
                for files in (small, large)
            ),
        ),
    )


def ours(location: str, slow: bool = False) -> Prepared:
    from pyspark_delta.table import Table

    location, options = reach(location, slow)

    def timed() -> pa.Table:
        return Table.open(location, storage_options=options).snapshot.files(_COLUMNS)

    return Prepared(timed, lambda t: names(column(t, "path")))


def deltalake(location: str, slow: bool = False) -> Prepared:
    """Its load reads the files; their columns come with their statistics."""
    from deltalake import DeltaTable

    location, options = reach(location, slow)

    def timed() -> Any:
        return DeltaTable(location, storage_options=options).get_add_actions()

    return Prepared(timed, lambda t: names(column(t, "path")))


def arrow(location: str) -> Prepared:
    """The least that a reader of the checkpoint does: no commits, no reconciliation."""
    import pyarrow.parquet as pq

    (checkpoint,) = Path(location, "_delta_log").glob("*.checkpoint.parquet")
    columns = [f"add.{name}" for name in ("path", "size", "modificationTime", "partitionValues")]
    return Prepared(lambda: pq.ParquetFile(checkpoint).read(columns), lambda t: t.num_rows)
