"""The files that a file index returns: those of a snapshot that may match predicates, or chosen files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.scan.file_source import is_staged
from pyspark_delta.scan.planner import select_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.deleted_rows import CHANGES, NUMBERS

# These columns identify an entry: a file may be listed more than once, with other constants or another vector.
_IDENTIFYING = ("path", "deletion_vector", "partition_values", NUMBERS.name, CHANGES.name)


class Listing(Protocol):
    """The files of a table among which an index selects. They do not change while a DataFrame uses the index."""

    @property
    def location(self) -> str:
        """The location of the table."""

    @property
    def storage_options(self) -> Mapping[str, str]:
        """The storage options of the table."""

    @property
    def version(self) -> int | None:
        """The version of the table; None if it is not known."""

    @property
    def identity(self) -> str:
        """A text that identifies the files, together with the location and the version."""

    def select(self, where: Any, *, row_tracking: bool, statistics: bool, time_zone: str) -> pa.Table:
        """Return the files (`actions.columns`) that may hold rows for a predicate; all files if it is None.

        The predicate is bound to the table. `row_tracking` and `statistics` ask for the columns of row ids and `stats`.
        """

    def size_in_bytes(self) -> int:
        """Return the total size of all files in bytes."""


@dataclass(frozen=True, slots=True)
class SnapshotListing:
    """All files of a snapshot."""

    snapshot: Snapshot

    @property
    def location(self) -> str:
        return self.snapshot.location

    @property
    def storage_options(self) -> Mapping[str, str]:
        return self.snapshot.storage_options

    @property
    def version(self) -> int | None:
        return self.snapshot.version

    @property
    def identity(self) -> str:
        # A staged commit may become no version, or a later one.
        id_, commit = self.snapshot.metadata.id, self.snapshot.segment.last_commit
        return f"{id_} {commit.path}" if is_staged(self.snapshot) and commit is not None else id_

    def select(self, where: Any, *, row_tracking: bool, statistics: bool, time_zone: str) -> pa.Table:
        return select_files(self.snapshot, where, row_ids=row_tracking, statistics=statistics, time_zone=time_zone)

    def size_in_bytes(self) -> int:
        return int(self.snapshot.size_in_bytes())


@dataclass(frozen=True)
class ChosenListing:
    """Chosen files, with all columns needed to read them. All of them are read, for any predicate."""

    location: str
    files: pa.Table
    version: int | None = None
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)

    @cached_property
    def identity(self) -> str:
        sink = pa.BufferOutputStream()
        identifying = self.files.select([name for name in _IDENTIFYING if name in self.files.column_names])
        with pa.ipc.new_stream(sink, identifying.schema) as stream:
            stream.write_table(identifying)
        return hashlib.sha256(sink.getvalue()).hexdigest()

    def select(self, where: Any, *, row_tracking: bool, statistics: bool, time_zone: str) -> pa.Table:
        return self.files

    def size_in_bytes(self) -> int:
        return int(pc.sum(self.files["size"]).as_py() or 0)
