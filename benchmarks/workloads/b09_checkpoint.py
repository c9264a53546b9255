"""B9: open a table and write a checkpoint, where the log has an older one and some commits since.

Opening is part of it, as in all workloads on the log: deltalake reads the state when it opens, pyspark-delta when it
writes. "Loaded" is deltalake with a table that it has opened before.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.workloads.logs import LAST_VERSION, log

_HERE = __name__
_ARROW = "pyarrow, same columns"
_LOADED = "deltalake, loaded"
TEXT = {"delta.checkpoint.writeStatsAsStruct": "false"}
V2 = {"delta.checkpointPolicy": "v2"}


def workload(scale: Scale) -> Workload:
    """Statistics as text, which is what deltalake writes, and as structs; V2 in full, and with few files changed."""
    _, middle, large = scale.files
    less_memory = Goal("deltalake", 2, "added_mib")

    def variant(files: int, name: str, properties: dict[str, str], *goals: Any, **more: Any) -> Variant:
        changed, peers = more.pop("changed", 0), more.pop("peers", ())
        arguments = {"properties": properties, "changed": changed}
        title = f"{size(files)} files, {name}"
        return Variant(title, log(files, **more), arguments, goals, 3 if files == large else 5, peers=peers)

    own = (OURS, "deltalake", _LOADED)
    full = "V2 in full"
    return Workload(
        "B9",
        "Write a checkpoint",
        (
            Peer(OURS, f"{_HERE}:ours"),
            Peer("deltalake", f"{_HERE}:deltalake"),
            Peer(_LOADED, f"{_HERE}:deltalake_loaded"),
            Peer(_ARROW, f"{_HERE}:arrow", checked=False),
        ),
        (
            variant(middle, "classic", TEXT, peers=own),
            variant(large, "classic", TEXT, Goal("deltalake", 3), Goal(_ARROW, 1 / 1.3), less_memory),
            variant(
                large,
                "classic, struct statistics",
                {},
                Goal("deltalake", 1.7),
                Goal(_ARROW, 1 / 1.3),
                less_memory,
                struct_stats=True,
            ),
            variant(large, "classic, struct statistics from text", {}, less_memory, peers=own),
            variant(large, full, {**TEXT, **V2}, Goal("deltalake", 3), less_memory, kind="v2", peers=own),
            variant(
                large,
                "V2, 1 % changed",
                {**TEXT, **V2},
                Growth(f"{size(large)} files, {full}", 0.1),
                kind="v2",
                peers=(OURS,),
                changed=large // 100,
            ),
        ),
    )


def copied(location: str, properties: dict[str, str]) -> tuple[Any, Path]:
    """A copy of a log that may be written to, whose table has these properties; and what removes it in the end."""
    from benchmarks.synthetic_log import metadata_line

    folder = tempfile.TemporaryDirectory(dir=Path(location).parent)
    table = Path(folder.name, "table")
    shutil.copytree(location, table)
    value = json.loads(metadata_line())
    value["metaData"]["configuration"] = properties
    (table / "_delta_log" / f"{LAST_VERSION + 1:020d}.json").write_text(json.dumps(value) + "\n")
    return folder, table


def live_files(table: Path) -> int:
    from pyspark_delta.snapshot import Snapshot

    number: int = Snapshot.load(str(table)).files(("path",)).num_rows
    return number


def ours(location: str, properties: dict[str, str], changed: int) -> Prepared:
    from pyspark_delta.features import all_features
    from pyspark_delta.snapshot import Snapshot

    all_features()  # imports them, which is not timed
    folder, table = copied(location, properties)
    if changed:
        Snapshot.load(str(table)).checkpoint()
        _replace_files(table, changed)
    return Prepared(lambda: (Snapshot.load(str(table)).checkpoint(), folder), lambda _: live_files(table))


def deltalake(location: str, properties: dict[str, str], changed: int) -> Prepared:
    from deltalake import DeltaTable

    folder, table = copied(location, properties)
    return Prepared(lambda: (DeltaTable(str(table)).create_checkpoint(), folder), lambda _: live_files(table))


def deltalake_loaded(location: str, properties: dict[str, str], changed: int) -> Prepared:
    from deltalake import DeltaTable

    folder, table = copied(location, properties)
    loaded = DeltaTable(str(table))
    return Prepared(lambda: (loaded.create_checkpoint(), folder), lambda _: live_files(table))


def arrow(location: str, properties: dict[str, str], changed: int) -> Prepared:
    """The least that a writer does: the old checkpoint read and written again, no commits, no reconciliation."""
    import pyarrow.parquet as pq

    folder = tempfile.TemporaryDirectory(dir=Path(location).parent)
    (checkpoint,) = Path(location, "_delta_log").glob("*.checkpoint.parquet")

    def rewrite() -> object:
        file = pq.ParquetFile(checkpoint)
        target = Path(folder.name, "checkpoint.parquet")
        with pq.ParquetWriter(target, file.schema_arrow, compression="zstd", compression_level=1) as writer:
            for batch in file.iter_batches(50_000):
                writer.write_batch(batch)
        return folder

    return Prepared(rewrite)


def _replace_files(table: Path, number: int) -> None:
    """A commit that replaces the files of some days by others."""
    from pyspark_delta.snapshot import Snapshot

    paths = sorted(Snapshot.load(str(table)).files(("path",))["path"].to_pylist())[:number]
    now = int(time.time() * 1000)
    lines = []
    for path in paths:
        values = {"p_date": path[len("p_date=") :].partition("/")[0]}
        removed = {"path": path, "deletionTimestamp": now, "dataChange": True, "partitionValues": values, "size": 1}
        added = {"path": f"{path}.new", "partitionValues": values, "size": 1, "modificationTime": 1, "dataChange": True}
        lines += [json.dumps(line, separators=(",", ":")) for line in ({"remove": removed}, {"add": added})]
    (table / "_delta_log" / f"{LAST_VERSION + 2:020d}.json").write_text("\n".join(lines) + "\n")
