"""The contract of statements: what they find, and what they stage for their commit."""

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
    """The rows that a statement changes, found without writing anything.

    `rows` refer to files by their position in `candidates`. The files `removed_whole` are removed without reading them.
    `affected` is the number of changed rows, -1 if it is not known; `new_rows` is the number of rows written with new
    values.
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
    """A statement whose files are written. `draft` names them; it is None if there is nothing to commit.

    `written` are the paths of the new files, as in the log. `result` are the counts of affected rows for the caller.
    `reads` is what a statement without a draft depends on. `source_reads` is what the source of a MERGE reads from the
    table itself; it is not among the reads of the draft.
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
        """The number of counts in its result."""

    def find(self, spark: SparkSession, snapshot: Snapshot) -> Found:
        """Find the rows to change, without writing anything."""

    def stage(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Write files; return the draft of the commit.

        `declared` is the configuration that the same commit declares before the statement, if any.
        """
