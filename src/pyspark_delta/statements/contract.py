"""The contracts of statements: what a statement finds and stages, and the engines that it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from pyspark_delta.engines.contract import CannotRun, Done, RowEngine
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.target import Candidates, Condition, RowCondition, Target
from pyspark_delta.write.written import Written


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
    `version` is the committed one, and `configuration` what the table declares then. `reads` is what a statement
    without a draft depends on, and `record` the draft that only records its application transaction, if it has one.
    `source_reads` is what the source of a MERGE reads from the table itself; it is not among the reads of the draft.
    """

    draft: CommitDraft | None
    result: Sequence[int]
    written: Sequence[str] = field(default_factory=tuple)
    reads: ReadSet = field(default_factory=ReadSet)
    source_reads: ReadSet = field(default_factory=ReadSet)
    version: int | None = None
    configuration: TableConfiguration | None = None
    record: CommitDraft | None = None


def unchanged(draft: CommitDraft, result: Sequence[int]) -> Staged:
    """Return a statement that changes no row. `draft` names no files."""
    return Staged(None, result, reads=draft.reads, record=draft)


class Statement(Protocol):
    """DELETE, UPDATE or MERGE."""

    @property
    def name(self) -> str:
        """The name of the operation."""

    @property
    def counts(self) -> int:
        """The number of counts in its result."""

    def find(self, snapshot: Snapshot) -> Found:
        """Find the rows to change, without writing anything."""

    def stage(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Write files; return the draft of the commit.

        `declared` is the configuration that the same commit declares before the statement, if any.
        """


# --------------------------------------------------------------------------------------------------------- engines
Rewriter: TypeAlias = Callable[[pa.Table], Done[Written] | CannotRun]
"""Writes the rows of files that their deletion vectors do not delete to new files."""


class Engines(Protocol):
    """What runs one attempt of a statement on one version of a table.

    Engines are returned by name, in the order in which the statement asks them.
    """

    @property
    def target(self) -> Target:
        """The table."""

    def resolve(self, condition: Condition, statement: str) -> RowCondition:
        """Check a condition on the rows of the table.

        Raises InvalidPredicateError for a condition that is not deterministic, and errors about its syntax and columns.
        """

    def is_default(self, value: Condition) -> bool:
        """Return True if a new value is SQL's word DEFAULT."""

    def delete(
        self, files: pa.Table, condition: RowCondition, context: ChangeContext
    ) -> Sequence[tuple[str, RowEngine[ChangedRows]]]:
        """Return the engines that delete the rows of some files that meet a condition."""

    def update(
        self, candidates: Candidates, condition: RowCondition | None, values: Mapping[tuple[str, ...], Condition]
    ) -> Sequence[tuple[str, RowEngine[Changed]]]:
        """Return the engines that give rows of candidate files new values, by the path of their column.

        Raises SchemaMismatchError for a value of a type that its column cannot take, and errors about its syntax.
        """

    def rewriters(self) -> Sequence[tuple[str, Rewriter]]:
        """Return what rewrites files that keep some of their rows."""


OpenEngines: TypeAlias = Callable[[Snapshot, str | None, TableConfiguration | None], Engines]
"""Opens a version of a table for an attempt: with the name of the table in conditions, and the configuration that the
commit declares before the statement if it differs.

Raises UnsupportedFeatureError for a table that cannot be written to.
"""
