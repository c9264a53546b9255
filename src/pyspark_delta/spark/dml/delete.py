"""DELETE: rows for which a condition is true leave the table.

Files of which every row meets the condition, by partition values and statistics, go without a look at them. Of the
others, one job finds the rows.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import orjson
import pyarrow as pa
import pyspark.sql.functions as sf

from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark import arguments
from pyspark_delta.spark.dml.conditions import check_condition
from pyspark_delta.spark.dml.execution import Staged, milliseconds_since
from pyspark_delta.spark.dml.job import ChangedRows, change_rows
from pyspark_delta.spark.dml.outcome import draft_change, file_metrics, settle_files
from pyspark_delta.spark.dml.plain import LEFT_TO_SPARK
from pyspark_delta.spark.dml.plain.changing import PlainChange, change_files
from pyspark_delta.spark.dml.plan import Found
from pyspark_delta.spark.dml.row_search import search_rows
from pyspark_delta.spark.dml.target import FILE, ROW, Candidates, Condition, Target
from pyspark_delta.spark.dml.task import ChangeContext, RowAction
from pyspark_delta.spark.quoting import quoted
from pyspark_delta.spark.write.change_data import change_context
from pyspark_delta.spark.write.replacement import count_rows
from pyspark_delta.spark.write.rewriting import by_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELETE = (RowAction.DELETE,)


@dataclass(frozen=True)
class Delete:
    """A DELETE statement; without a condition every row goes."""

    condition: Condition | None = None
    alias: str | None = None
    name: ClassVar[str] = "DELETE"
    counts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        arguments.check_condition("condition", self.condition)

    def stage(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows and write what takes their place; the draft of the commit.

        Raises AppendOnlyTableError, InvalidPredicateError, and what Spark says about the condition.
        """
        start = time.monotonic()
        target, candidates = self._look(spark, snapshot, declared)
        writes_changes = target.has_feed and not target.uses_vectors and candidates.partly.num_rows > 0
        if writes_changes:  # change data files stand for all changes of a commit (C169), so all rows are looked at
            files = by_partition(candidates.all, target.context)
            candidates = Candidates(files.slice(0, 0), files, candidates.reads)
        rows = self._find(target, candidates.partly, writes_changes=writes_changes)
        scanned = milliseconds_since(start)
        changes = settle_files(target, candidates.partly, rows, candidates.inside)
        deleted = _deleted(candidates, rows)
        if changes.is_nothing:
            return Staged(None, (0,), reads=candidates.reads)
        metrics = file_metrics(changes)
        if deleted is not None:
            metrics["numDeletedRows"] = deleted
        metrics["executionTimeMs"] = milliseconds_since(start)
        metrics["scanTimeMs"], metrics["rewriteTimeMs"] = scanned, metrics["executionTimeMs"] - scanned
        operation = Operation("DELETE", {"predicate": self._text(target)}, metrics)
        draft = draft_change(target, changes, operation, candidates.reads)
        return Staged(draft, (-1 if deleted is None else deleted,), changes.written)

    def find(self, spark: SparkSession, snapshot: Snapshot) -> Found:
        """The rows that would go. Raises as `stage`."""
        target, candidates = self._look(spark, snapshot)
        rows = self._find(target, candidates.partly, writes_changes=False)
        deleted = _deleted(candidates, rows)
        affected = -1 if deleted is None else deleted
        return Found(target, candidates.partly, candidates.inside, rows, candidates.reads, affected)

    def _look(
        self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None
    ) -> tuple[Target, Candidates]:
        target = Target.of(spark, snapshot, self.alias, declared)
        check_removable(target.configuration, "DELETE")
        if self.condition is not None:
            check_condition(target, self.condition, "DELETE")
        predicate = None if self.condition is None else target.predicate(self.condition)
        return target, target.candidates(predicate)

    def _find(self, target: Target, files: pa.Table, *, writes_changes: bool) -> ChangedRows:
        if not files.num_rows or self.condition is None:
            return ChangedRows.nothing(len(_DELETE))
        context = ChangeContext(_DELETE)
        if writes_changes:
            context = ChangeContext(_DELETE, target.context.schema, changes=change_context(target.context))
        exact = target.exact_condition(self.condition)
        if exact is not None:
            with suppress(*LEFT_TO_SPARK):  # Spark says what becomes of a row that it cannot be computed for
                if writes_changes:
                    return change_files(target, files, exact, PlainChange(context, context.columns))
                return ChangedRows.only_gone(search_rows(target, files, exact))
        columns = [sf.col(quoted(name)) for name in context.columns.names]
        frame = target.rows(files).where(self.condition).select(*columns, sf.lit(0), sf.col(FILE), sf.col(ROW))
        return change_rows(frame, context)

    def _text(self, target: Target) -> str:
        text = "true" if self.condition is None else target.text(self.condition)
        return orjson.dumps([text]).decode()


def _deleted(candidates: Candidates, rows: ChangedRows) -> int | None:
    """How many rows go; None where a file leaves whose number of rows nobody knows."""
    known = count_rows(candidates.inside)
    return None if known is None else known + rows.crossed_off
