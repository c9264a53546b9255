"""What a stream has still to read, from what its planner knows already."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.streaming.commit_log import CommitLog
from pyspark_delta.streaming.initial import InitialFiles
from pyspark_delta.streaming.offset import Offset


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is outstanding: versions that are not complete, the age of the oldest of them, and their files.

    Files and bytes are those of the commits that were read, so there may be more of them. The age is in ms since the
    commit; 0 if nothing is outstanding.
    """

    files: int
    bytes: int
    versions: int
    oldest_age_ms: int

    def metrics(self) -> dict[str, str]:
        """Return the metrics of the source in the progress of a query."""
        return {
            "numFilesOutstanding": str(self.files),
            "numBytesOutstanding": str(self.bytes),
            "versionsBehind": str(self.versions),
            "oldestCommitAgeMs": str(self.oldest_age_ms),
        }


def backlog(log: CommitLog, initial: InitialFiles | None, position: Offset) -> Backlog:
    """Return what is outstanding after `position`."""
    sizes: list[pa.ChunkedArray | pa.Array] = []
    if position.initial and initial is not None and initial.version == position.version:
        sizes.append(initial.sizes.slice(position.next_index))
    first = position.version + 1 if position.initial else position.version
    for commit in log.known():
        if commit.version >= first:
            is_started = commit.version == position.version
            sizes.append(commit.files["size"].slice(position.next_index if is_started else 0))
    versions = max(0, log.latest_version - position.version + 1)
    modified = log.modified(position.version) if versions else None
    return Backlog(
        files=sum(map(len, sizes)),
        bytes=sum(pc.sum(one).as_py() or 0 for one in sizes),
        versions=versions,
        oldest_age_ms=0 if modified is None else max(0, time.time_ns() // 1_000_000 - modified),
    )
