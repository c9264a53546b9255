"""A statement: what it finds, what it stages for its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pyspark_delta.engines.contract import Done
from pyspark_delta.engines.row_changes import ChangedRows
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Found:
    """The rows that a statement concerns, found without writing anything.

    The numbers of files in `rows` are positions in `candidates`. The files `removed_whole` are removed without reading
    them. `affected` is the number of changed rows, -1 if it is not known; `new_rows` the number of rows written with
    new values.
    """

    target: Target
    candidates: pa.Table
    removed_whole: pa.Table
    rows: Done[ChangedRows]
    reads: ReadSet
    affected: int
    new_rows: int = 0


@dataclass(frozen=True)
class Staged:
    """A statement whose files are written: the draft that names them, or None where nothing is to be committed.

    `written` are the paths of the new files, as in the log. `result` are the counts of affected rows for the caller.
    `reads` is what a statement that commits nothing has found that out from. `source_reads` is what the source of a
    MERGE reads of the table itself; it is not among the reads of the draft.
    """

    draft: CommitDraft | None
    result: Sequence[int]
    written: Sequence[str] = field(default_factory=tuple)
    reads: ReadSet = field(default_factory=ReadSet)
    source_reads: ReadSet = field(default_factory=ReadSet)


class Statement(Protocol):
    """DELETE, UPDATE or MERGE."""

    @property
    def name(self) -> str:
        """The name of the operation."""

    @property
    def counts(self) -> int:
        """How many counts its result has."""

    def find(self, spark: SparkSession, snapshot: Snapshot) -> Found:
        """The rows that it concerns; nothing is written."""

    def stage(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """The draft of its commit; files are written. `declared` is what the commit declares before it, if anything."""
