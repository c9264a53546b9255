"""What a write needs from its caller: choices of a session, and an engine that writes and reads rows.

The pipeline (`write.pipeline`) decides everything else. Implementations: Spark's job, and the tasks of the Python Data
Source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.row_rules import RowRules, row_rules
from pyspark_delta.transaction.write_plan import FileOptions
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.replacement import Replaced
from pyspark_delta.write.selection import ReplaceWhere, Selection, Where
from pyspark_delta.write.target import Target
from pyspark_delta.write.written import Written


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A micro-batch of a streaming query, for the history: `output_mode` is Append or Complete.

    `plan` identifies the rows that Spark has chosen for it; None if that is unknown.
    """

    query_id: str
    number: int
    output_mode: str
    plan: str | None = None


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write, as the user requested it.

    `mode` is append, overwrite, error, ignore or replace; replace keeps only the id and the history of the table.
    `statement` is the name of the operation if the write creates a table from a query, such as CREATE TABLE AS SELECT.
    `is_managed` says for the history that Spark's catalog owns the files of that table.
    `batch` is the micro-batch that the rows are; None if no streaming query writes them.
    """

    location: str
    mode: str
    options: WriteOptions
    must_exist: bool = False
    statement: str = ""
    is_managed: bool = False
    batch: StreamBatch | None = None


@dataclass(frozen=True)
class WritePlan:
    """A write that has been checked against a version of the table. Nothing is written yet. It is picklable.

    `data` is the schema of the rows to write, `version` that of the table, None if it does not exist. `time_zone`
    applies to times without one when rows are selected.
    """

    request: WriteRequest
    data: StructType
    target: Target
    selection: Selection
    context: WriteContext
    version: int | None
    time_zone: str = "UTC"

    @property
    def configuration(self) -> TableConfiguration:
        """What the table declares after the write."""
        return self.target.configuration

    @property
    def options(self) -> WriteOptions:
        """The options of the write."""
        return self.request.options

    def rules(self) -> RowRules:
        """Return what new rows must meet, with the condition of replaceWhere if they are checked against it."""
        rules, selection = row_rules(self.configuration), self.selection
        if isinstance(selection, Where) and selection.check:
            check = RowCheck("replaceWhere", selection.text, CheckKind.REPLACED)
            return replace(rules, checks=(*rules.checks, check))
        return rules


class WriteSession:
    """What the session of the caller decides about a write. This class is for callers without a session."""

    def __init__(self, time_zone: str = "UTC") -> None:
        self.time_zone = time_zone

    def default_properties(self) -> Mapping[str, str]:
        """Return properties for new tables."""
        return {}

    def file_options(self, configuration: TableConfiguration, options: WriteOptions) -> FileOptions:
        """Return how files are written, by the options and the session."""
        return options.files

    def replace_where(self) -> ReplaceWhere:
        """Return what conditions of replaceWhere may be."""
        return ReplaceWhere()

    def reexecutions(self) -> int:
        """Return how often a write that replaces some rows searches for them again after a conflict."""
        return 0


class ReplacedRows(Protocol):
    """The rows of the table that a write replaces, and those that stay, if both may be in one file."""

    def write_kept(self, replaced: Replaced) -> Written:
        """Write the rows of the partly replaced files that stay, with their ids if the table tracks rows."""

    def write_changes(self, replaced: Replaced) -> pa.Table:
        """Write change data files with the replaced rows and the new rows."""


class MatchedRows(ReplacedRows, Protocol):
    """Replaced rows that are found by matching them to the new rows."""

    def find(self) -> Replaced:
        """Return the files with replaced rows."""


class RowWriter(Protocol):
    """Writes the rows of one write to files."""

    @property
    def engine(self) -> str:
        """The name and version of the engine in the history, such as PySpark/4.1.0."""

    def source_reads(self, snapshot: Snapshot, isolation: IsolationLevel | None) -> ReadSet:
        """Return what the new rows were read from, if it is the table itself.

        Raises ConcurrentAppendError and ConcurrentDeleteReadError if a later commit changed it. `isolation` is that of
        the commit.
        """

    def write_new(self, plan: WritePlan) -> Written:
        """Write the new rows after applying the rules of the plan."""

    def replaced_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> ReplacedRows:
        """Return the rows that meet the condition of replaceWhere (the selection Where)."""

    def matched_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> MatchedRows:
        """Return the rows that match new rows (the selections EqualKeys and On)."""
