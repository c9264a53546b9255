"""DELETE: removes the rows for which a condition is true.

Files that match fully by partition values and statistics are removed without reading them. One job finds the rows in
the other files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import orjson
import pyarrow as pa
import pyspark.sql.functions as sf

from pyspark_delta.engines.arrow.delete import ArrowDelete
from pyspark_delta.engines.arrow.rewriting import by_partition
from pyspark_delta.engines.contract import NONE, SPARK, CannotRun, Done, RowEngine, first_done
from pyspark_delta.engines.row_changes import ChangeContext, ChangedRows, RowAction
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf import arguments
from pyspark_delta.spark.engine.dml.conditions import check_condition
from pyspark_delta.spark.engine.dml.execution import milliseconds_since
from pyspark_delta.spark.engine.dml.files import delete_from_files
from pyspark_delta.spark.engine.dml.job import change_rows
from pyspark_delta.spark.engine.dml.statement import Found, Staged
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.frames.quoting import quoted
from pyspark_delta.statements.outcome import draft_change, file_metrics
from pyspark_delta.statements.target import FILE, ROW, Candidates, Condition
from pyspark_delta.write.change_data import change_context
from pyspark_delta.write.replacement import count_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELETE = (RowAction.DELETE,)


@dataclass(frozen=True)
class Delete:
    """A DELETE statement; without a condition it deletes all rows."""

    condition: Condition | None = None
    alias: str | None = None
    name: ClassVar[str] = "DELETE"
    counts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        arguments.check_condition("condition", self.condition)

    def stage(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows, and write the files that replace theirs; return the draft of the commit.

        Raises AppendOnlyTableError, InvalidPredicateError, and Spark's own errors about the condition.
        """
        start = time.monotonic()
        target, candidates = self._look(spark, snapshot, declared)
        writes_changes = target.has_feed and not target.uses_vectors and candidates.partially_matched.num_rows > 0
        if writes_changes:  # change data files hold all changes of a commit (C169), so all rows are read
            files = by_partition(candidates.all, target.context)
            candidates = Candidates(files.slice(0, 0), files, candidates.reads)
        done = self._ask(
            target, candidates.partially_matched, lambda engine: engine.change(), writes_changes=writes_changes
        )
        rows, scanned = done.value, milliseconds_since(start)
        changes = delete_from_files(target, candidates.partially_matched, rows, candidates.fully_matched)
        deleted = _deleted(candidates, rows)
        if changes.is_nothing:
            return Staged(None, (0,), reads=candidates.reads)
        metrics = file_metrics(changes)
        if deleted is not None:
            metrics["numDeletedRows"] = deleted
        metrics["executionTimeMs"] = milliseconds_since(start)
        metrics["scanTimeMs"], metrics["rewriteTimeMs"] = scanned, metrics["executionTimeMs"] - scanned
        operation = Operation("DELETE", {"predicate": self._text(target)}, metrics, done.engine)
        draft = draft_change(target, changes, operation, candidates.reads, target.client)
        return Staged(draft, (-1 if deleted is None else deleted,), changes.written)

    def find(self, spark: SparkSession, snapshot: Snapshot) -> Found:
        """Find the rows to delete. Raises as `stage`."""
        target, candidates = self._look(spark, snapshot)
        done = self._ask(target, candidates.partially_matched, lambda engine: engine.find())
        deleted = _deleted(candidates, done.value)
        affected = -1 if deleted is None else deleted
        return Found(target, candidates.partially_matched, candidates.fully_matched, done, candidates.reads, affected)

    def _look(
        self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None
    ) -> tuple[SparkTarget, Candidates]:
        target = SparkTarget.of(spark, snapshot, self.alias, declared)
        check_removable(target.configuration, "DELETE")
        if self.condition is not None:
            check_condition(target, self.condition, "DELETE")
        predicate = None if self.condition is None else target.predicate(target.text(self.condition))
        return target, target.candidates(predicate)

    def _ask(
        self,
        target: SparkTarget,
        files: pa.Table,
        ask: Callable[[RowEngine[ChangedRows]], Done[ChangedRows] | CannotRun],
        *,
        writes_changes: bool = False,
    ) -> Done[ChangedRows]:
        if not files.num_rows or self.condition is None:
            return Done(ChangedRows.nothing(len(_DELETE)), NONE)
        context = ChangeContext(_DELETE)
        if writes_changes:
            context = ChangeContext(_DELETE, target.context.schema, changes=change_context(target.context))
        exact = target.exact_condition(target.text(self.condition)) if target.cost.uses_arrow else None
        arrow: RowEngine[ChangedRows] = ArrowDelete(target, files, exact, context)
        spark: RowEngine[ChangedRows] = _SparkDelete(target, files, self.condition, context)
        return first_done("DELETE", target.engines(arrow, spark), ask)

    def _text(self, target: SparkTarget) -> str:
        text = "true" if self.condition is None else target.text(self.condition)
        return orjson.dumps([text]).decode()


@dataclass(frozen=True)
class _SparkDelete:
    """DELETE as a Spark job."""

    target: SparkTarget
    files: pa.Table
    condition: Condition
    context: ChangeContext

    def find(self) -> Done[ChangedRows]:
        return _SparkDelete(self.target, self.files, self.condition, ChangeContext(_DELETE)).change()

    def change(self) -> Done[ChangedRows]:
        columns = [sf.col(quoted(name)) for name in self.context.columns.names]
        frame = self.target.rows(self.files).where(self.condition)
        frame = frame.select(*columns, sf.lit(0), sf.col(FILE), sf.col(ROW))
        return Done(change_rows(frame, self.context), SPARK)


def _deleted(candidates: Candidates, rows: ChangedRows) -> int | None:
    """Return the number of deleted rows; None if a removed file does not state its number of rows."""
    known = count_rows(candidates.fully_matched)
    return None if known is None else known + rows.deletions
