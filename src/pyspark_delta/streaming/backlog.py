"""What a stream has still to read, from what its planner knows already."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import pyarrow.compute as pc

from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import ENABLE_EXPIRED_LOG_CLEANUP, LOG_RETENTION
from pyspark_delta.streaming.admission import Sizes
from pyspark_delta.streaming.commit_log import CommitLog
from pyspark_delta.streaming.contents import C, Contents
from pyspark_delta.streaming.initial import InitialFiles
from pyspark_delta.streaming.offset import Offset

_LATE = 0.8  # of the retention of the log


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is outstanding: versions that are not complete, the age of the oldest of them, and their files.

    Files and bytes are those of the commits that were read, so there may be more of them. The age is in ms since the
    commit; 0 if nothing is outstanding, or the commit is not known.
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


def backlog(log: CommitLog[C], contents: Contents[C], initial: InitialFiles | None, position: Offset) -> Backlog:
    """Return what is outstanding after `position`."""
    sizes: list[Sizes] = []
    if position.initial and initial is not None and initial.version == position.version:
        sizes.append(initial.sizes.slice(position.next_index))
    for version, commit in log.known().items():
        begun = version == position.version
        if version > position.version or (begun and not position.initial):
            with suppress(DeltaError):  # the next batch raises it
                sizes.append(contents.sizes(commit).slice(position.next_index if begun else 0))
    versions = max(0, log.latest_version - position.version + 1)
    modified = log.modified(position.version) if versions else None
    return Backlog(
        files=sum(len(one.files) if one.counted is None else one.counted.true_count for one in sizes),
        bytes=sum(_bytes(one) for one in sizes),
        versions=versions,
        oldest_age_ms=0 if modified is None else max(0, time.time_ns() // 1_000_000 - modified),
    )


def _bytes(sizes: Sizes) -> int:
    counted = sizes.files if sizes.counted is None else sizes.files.filter(sizes.counted)
    return pc.sum(counted).as_py() or 0


def warns_of_cleanup(log: CommitLog[C], configuration: TableConfiguration, position: Offset) -> bool:
    """Warn if log clean-up is about to remove commits after `position`, and return if it did."""
    properties = configuration.properties
    modified = log.modified(position.version) if ENABLE_EXPIRED_LOG_CLEANUP.of(properties) else None
    if modified is None:
        return False
    age, retention = timedelta(milliseconds=time.time_ns() // 1_000_000 - modified), LOG_RETENTION.of(properties)
    if age < retention * _LATE:
        return False
    warnings.warn(
        f"The stream of '{configuration.location}' is at version {position.version}, which was committed "
        f"{_days(age)} ago. Log clean-up may remove commits after {_days(retention)}; the stream would then end with "
        "an error. Read faster, with a larger maxFilesPerTrigger, or raise the table property "
        "delta.logRetentionDuration.",
        DeltaWarning,
        stacklevel=2,
    )
    return True


def _days(span: timedelta) -> str:
    return f"{span / timedelta(days=1):.1f} days"
