"""Checks of removed files: how far back a version has all of its files (F10, T05)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import counted
from pyspark_delta.errors import DeltaError
from pyspark_delta.log.history import readable_versions
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live_files import Array
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.maintenance.vacuum.removes import named_paths
from pyspark_delta.protocol.properties import DELETED_FILE_RETENTION
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import join
from pyspark_delta.storage.percent import resolve_column

Sizes = Callable[[pa.Array], Array]
"""The sizes of files at some locations, -1 for those that do not exist."""

_BATCH = 10_000
_TOGETHER = 200  # commits that are parsed together


def check_removed(snapshot: Snapshot, log: TableLog, sizes: Sizes, now: int, findings: Findings) -> None:
    """Check that earlier versions have their files (F10 within the retention, T05). Raises StorageError."""
    wants_young = findings.wants("F10")
    lost, example = _lost_tombstones(snapshot, sizes, now) if wants_young else (0, "")
    if not lost and not findings.wants("T05"):
        return
    first = min(readable_versions(log.listing), default=snapshot.version)
    oldest, needed = _oldest_complete(snapshot, log, sizes, first)
    if lost:
        findings.add(
            "F10",
            f"{counted(lost, 'file')} that were removed within the retention do not exist any more, such as "
            f"'{example}': the oldest version that can be read completely is {oldest}.",
            version=snapshot.version,
        )
    if oldest > first:
        findings.add(
            "T05",
            f"The log reaches back to version {first}, and files such as '{needed}' are gone: the oldest version that "
            f"can be read completely is {oldest}.",
            version=snapshot.version,
        )


def _lost_tombstones(snapshot: Snapshot, sizes: Sizes, now: int) -> tuple[int, str]:
    """Return how many files that were removed within the retention do not exist, and the path of one."""
    cutoff = now - DELETED_FILE_RETENTION.of(snapshot.properties) // timedelta(milliseconds=1)
    removed = snapshot.tombstones(("path", "deletion_timestamp"))
    removed = removed.filter(pc.greater_equal(pc.fill_null(removed["deletion_timestamp"], 0), cutoff))
    lost, example = 0, ""
    for batch in sliced(removed.to_batches()):
        gone = np.flatnonzero(sizes(resolve_column(snapshot.location, batch.column("path"))) == -1)
        lost += len(gone)
        example = example or (batch.column("path")[int(gone[0])].as_py() if len(gone) else "")
    return lost, example


def _oldest_complete(snapshot: Snapshot, log: TableLog, sizes: Sizes, first: int) -> tuple[int, str]:
    """Return the oldest version from which on no removed file is gone, and a file that the one before lacks.

    A file that version n removes is needed by n-1. The newest commits are read first, up to a file that is gone.
    """
    versions = sorted((v for v in log.listing.commits if v > first), reverse=True)
    for start in range(0, len(versions), _TOGETHER):
        block = versions[start : start + _TOGETHER]
        if _lost(snapshot, log, sizes, block) is not None:
            for version in block:
                path = _lost(snapshot, log, sizes, [version])
                if path:  # a commit that cannot be read is a finding of its own
                    return version, path
    return first, ""


def _lost(snapshot: Snapshot, log: TableLog, sizes: Sizes, versions: Sequence[int]) -> str | None:
    """Return a file that commits remove and that is gone; None without one, and "" if a commit cannot be read."""
    commits = [CommitFile(version, log.listing.commits[version]) for version in versions]
    try:
        for batch in named_paths(snapshot, commits, "remove"):
            gone = np.flatnonzero(sizes(pc.binary_join_element_wise(join(snapshot.location, ""), batch, "")) == -1)
            if len(gone):
                return str(batch[int(gone[0])].as_py())
    except DeltaError:
        return ""
    return None


def sliced(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Yield batches of at most ten thousand rows."""
    for batch in batches:
        for start in range(0, len(batch), _BATCH):
            yield batch.slice(start, _BATCH)
