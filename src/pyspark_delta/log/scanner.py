"""Scanning a very large checkpoint elsewhere: which row groups can hold requested files, as shares of work.

`pyspark_delta.spark` registers a scanner that runs tasks of a session. Each task needs the store and the place of its
row groups, and returns the files that the request keeps, so that this process never holds the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.log.request import FileRequest
from pyspark_delta.storage import FileStatus, ObjectStore


@dataclass(frozen=True, slots=True)
class CheckpointShare:
    """Row groups of one Parquet file of a checkpoint; it can be pickled."""

    store: ObjectStore
    file: FileStatus
    groups: tuple[int, ...]

    @property
    def part(self) -> ParquetPart:
        """The file, whose footer is read at the first use."""
        return ParquetPart(self.store, self.file)


class CheckpointScanner(Protocol):
    """Scans the shares of a checkpoint in other processes."""

    def takes(self, actions: int) -> bool:
        """Return True if this scanner reads checkpoints with so many actions."""
        ...

    def scan(
        self, shares: Iterable[CheckpointShare], action: str, fields: Sequence[pa.Field], request: FileRequest
    ) -> Iterator[pa.RecordBatch]:
        """Yield the results of `checkpoint_scan.scan_share`, in any order. Raises CorruptLogError."""
        ...


_scanner: CheckpointScanner | None = None


def register_scanner(scanner: CheckpointScanner | None) -> None:
    """Let a scanner read large checkpoints of this process; None removes it."""
    global _scanner
    _scanner = scanner


def scanner_for(actions: int) -> CheckpointScanner | None:
    """Return the scanner that reads so many actions; None if this process does."""
    return _scanner if _scanner is not None and _scanner.takes(actions) else None
