"""B1: open the latest version: its number, protocol and metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.slow_store import reach
from benchmarks.workloads.logs import log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """Every size; at the largest also every kind of checkpoint, a version checksum, and a store far away."""
    small, middle, large = scale.files
    peers = ("deltalake",)
    base = f"{size(small)} files"
    flat = Growth(base, 1.5)

    def at_least(ratio: float) -> Goal:
        return Goal("deltalake", ratio)

    return Workload(
        "B1",
        "Open: version, protocol, metadata",
        (
            Peer(OURS, f"{_HERE}:ours"),
            Peer("deltalake", f"{_HERE}:deltalake"),
            Peer("deltalake without_files", f"{_HERE}:deltalake_without_files"),
            Peer("pyarrow, footer and a row group", f"{_HERE}:arrow", checked=False),
        ),
        (
            Variant(base, log(small), goals=(at_least(5), Goal("pyarrow, footer and a row group", 0.5))),
            Variant(f"{size(middle)} files", log(middle), goals=(at_least(25), flat)),
            Variant(f"{size(large)} files", log(large), goals=(at_least(200), flat), repetitions=3),
            Variant(
                f"{size(large)} files, version checksum",
                log(large, checksum=True),
                goals=(at_least(200), flat),
                repetitions=3,
                peers=(OURS, *peers),
            ),
            Variant(
                f"{size(large)} files, 10 parts",
                log(large, kind="multi-part"),
                goals=(at_least(100),),
                repetitions=3,
                peers=(OURS, *peers),
            ),
            Variant(
                f"{size(large)} files, V2 with 10 sidecars",
                log(large, kind="v2"),
                goals=(at_least(200), flat),
                repetitions=3,
                peers=(OURS, *peers),
            ),
            *(
                Variant(f"{size(files)} files, slow store", log(files), {"slow": True}, (), 3, peers=(OURS, *peers))
                for files in (small, large)
            ),
        ),
    )


def ours(location: str, slow: bool = False) -> Prepared:
    from pyspark_delta.table import Table

    location, options = reach(location, slow)

    def timed() -> tuple[Any, ...]:
        table = Table.open(location, storage_options=options)
        return table.version, table.protocol, table.metadata

    def answer(opened: tuple[Any, ...]) -> list[Any]:
        version, protocol, metadata = opened
        return [version, protocol.min_reader_version, _columns(metadata.schema_string)]

    return Prepared(timed, answer)


def deltalake(location: str, slow: bool = False, **options: Any) -> Prepared:
    from deltalake import DeltaTable

    location, options["storage_options"] = reach(location, slow)

    def timed() -> tuple[Any, ...]:
        table = DeltaTable(location, **options)
        return table.version(), table.protocol(), table.metadata(), table

    return Prepared(timed, lambda t: [t[0], t[1].min_reader_version, _columns(t[3].schema().to_json())])


def deltalake_without_files(location: str) -> Prepared:
    return deltalake(location, without_files=True)


def arrow(location: str) -> Prepared:
    """The least that any reader of the checkpoint does."""
    import pyarrow.parquet as pq

    (checkpoint,) = Path(location, "_delta_log").glob("*.checkpoint.parquet")
    return Prepared(lambda: pq.ParquetFile(checkpoint).read_row_group(0, ["protocol", "metaData"]).num_rows)


def _columns(schema: str) -> list[str]:
    return [field["name"] for field in json.loads(schema)["fields"]]
