"""UPDATE: gives some columns new values in the rows for which a condition is true.

One job finds the rows, writes them with their new values to new files, and records them as deleted from their old
files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import orjson
import pyarrow as pa
import pyspark.sql.functions as sf

from pyspark_delta.engines.arrow.rewriting import by_partition
from pyspark_delta.engines.arrow.row_search import search_rows
from pyspark_delta.engines.arrow.update import ArrowUpdate, ExactCondition
from pyspark_delta.engines.contract import NONE, SPARK, CannotRun, Done, RowEngine, answer, first_done
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows, RowAction
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf import arguments
from pyspark_delta.spark.engine.dml.assignments import Assigned, assign, fill_defaults
from pyspark_delta.spark.engine.dml.changed import ACTION, ChangeFrame, generated, job_of, old_name
from pyspark_delta.spark.engine.dml.conditions import check_condition
from pyspark_delta.spark.engine.dml.execution import milliseconds_since
from pyspark_delta.spark.engine.dml.files import delete_from_files
from pyspark_delta.spark.engine.dml.job import change_rows
from pyspark_delta.spark.engine.dml.statement import Found, Staged
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.write.rules import unfit_name
from pyspark_delta.spark.frames.column_text import value_text
from pyspark_delta.spark.frames.quoting import quoted
from pyspark_delta.statements.assignments import check_no_identity, resolve_assignments
from pyspark_delta.statements.outcome import draft_change, file_metrics
from pyspark_delta.statements.target import FILE, ROW, Candidates, Condition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_UPDATE = (RowAction.UPDATE,)


@dataclass(frozen=True)
class _Prepared:
    """A resolved statement: its candidate files, and the new values by column."""

    target: SparkTarget
    candidates: Candidates
    condition: Condition | None
    resolved: Mapping[tuple[str, ...], Column | str]
    assigned: Mapping[str, Assigned]

    def engines(self) -> list[tuple[str, RowEngine[Changed]]]:
        """Return the engines in the order in which they are asked."""
        target = self.target
        arrow: RowEngine[Changed] = ArrowUpdate(target, self.candidates, self._exact(), self._texts)
        return target.engines(arrow, _SparkUpdate(self))

    def _exact(self) -> ExactCondition | None:
        if not self.target.cost.uses_arrow:
            return None
        if self.condition is None:
            return ExactCondition(None)
        exact = self.target.exact_condition(self.target.text(self.condition))
        return None if exact is None else ExactCondition(exact)

    def _texts(self) -> dict[tuple[str, ...], str | None]:
        return {path: value_text(self.target.empty(), value) for path, value in self.resolved.items()}


@dataclass(frozen=True)
class Update:
    """An UPDATE statement: `assignments` are the new values by column; without a condition all rows get them."""

    assignments: Mapping[str, Column | str]
    condition: Condition | None = None
    alias: str | None = None
    name: ClassVar[str] = "UPDATE"
    counts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        arguments.check_condition("condition", self.condition)

    def stage(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows and write them with their new values; return the draft of the commit.

        Raises AppendOnlyTableError, InvalidOperationError and SchemaMismatchError for the assignments,
        ConstraintViolationError, and Spark's own errors about condition and values.
        """
        start = time.monotonic()
        prepared = self._prepare(spark, snapshot, declared)
        target = prepared.target
        done = first_done("UPDATE", prepared.engines(), lambda engine: engine.change())
        files, rows, reads = done.value.files, done.value.rows, done.value.reads
        scanned = milliseconds_since(start)
        changes = delete_from_files(target, files, rows, files.slice(0, 0))
        if changes.is_nothing:
            return Staged(None, (0,), reads=reads)
        updated = rows.counts[0]
        metrics = {
            **file_metrics(changes, with_updated=True),
            "numUpdatedRows": updated,
            "executionTimeMs": milliseconds_since(start),
        }
        metrics["scanTimeMs"], metrics["rewriteTimeMs"] = scanned, metrics["executionTimeMs"] - scanned
        operation = Operation("UPDATE", self._parameters(target), metrics, done.engine)
        return Staged(draft_change(target, changes, operation, reads, target.client), (updated,), changes.written)

    def find(self, spark: SparkSession, snapshot: Snapshot) -> Found:
        """Find the rows to change. Raises as `stage`, except for values that break a rule."""
        prepared = self._prepare(spark, snapshot)
        done = first_done("UPDATE", prepared.engines(), lambda engine: engine.find())
        files, rows = done.value.files, done.value.rows
        found = Done(rows, done.engine, done.declined)
        return Found(prepared.target, files, files.slice(0, 0), found, done.value.reads, rows.deletions, rows.deletions)

    def _prepare(
        self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None
    ) -> _Prepared:
        target = SparkTarget.of(spark, snapshot, self.alias, declared)
        check_removable(target.configuration, "UPDATE")
        resolved = self._resolved(target)
        assigned = assign(target.empty(), target.snapshot.schema, resolved, lambda name: sf.col(quoted(name)))
        predicate = None
        if self.condition is not None:
            check_condition(target, self.condition, "UPDATE")
            predicate = target.predicate(target.text(self.condition))
        return _Prepared(target, target.candidates(predicate), self.condition, resolved, assigned)

    def _resolved(self, target: SparkTarget) -> dict[tuple[str, ...], Column | str]:
        schema = target.snapshot.schema
        given = fill_defaults(self.assignments, target.configuration, self.alias, "UPDATE")
        resolved = resolve_assignments(schema, given, self.alias, "UPDATE")
        check_no_identity(schema, resolved, "UPDATE")
        return resolved

    def _parameters(self, target: SparkTarget) -> dict[str, str]:
        if self.condition is None:
            return {"predicate": orjson.dumps([]).decode()}
        return {"predicate": orjson.dumps([target.text(self.condition)]).decode()}


class _SparkUpdate:
    """UPDATE as a Spark job."""

    def __init__(self, prepared: _Prepared) -> None:
        self._prepared, self._target, self._reads = prepared, prepared.target, prepared.candidates.reads

    def find(self) -> Done[Changed]:
        files = self._prepared.candidates.all
        frame = self._where(self._target.rows(files)).select(sf.lit(0), sf.col(FILE), sf.col(ROW))
        return Done(Changed(files, change_rows(frame, ChangeContext(_UPDATE)), self._reads), SPARK)

    def change(self) -> Done[Changed]:
        target = self._target
        files = by_partition(self._files_with_rows(), target.context)
        if not files.num_rows:
            values = [one.value for one in self._prepared.assigned.values()]
            _ = target.empty().select(*values).schema  # Spark rejects the cast
            return Done(Changed(files, ChangedRows.nothing(len(_UPDATE)), self._reads), NONE)
        changing = self._changing(target.rows(files), self._prepared.assigned)
        rows = change_rows(*job_of(target, changing, has_changes=target.has_feed))
        return Done(Changed(files, rows, self._reads), SPARK)

    def _files_with_rows(self) -> pa.Table:
        """Return the candidate files with rows to update, if Arrow can find them by the columns of the condition."""
        candidates, exact = self._prepared.candidates, self._prepared._exact()
        if exact is None or exact.condition is None or candidates.partially_matched.num_rows < 2:
            return candidates.all
        condition = exact.condition
        found = answer(lambda: search_rows(self._target, candidates.partially_matched, condition))
        if isinstance(found, CannotRun):  # Spark reports the row for which the condition fails
            return candidates.all
        met = candidates.partially_matched.take(pa.array(sorted(found.value), pa.int64()))
        return replace(candidates, partially_matched=met).all

    def _where(self, rows: DataFrame) -> DataFrame:
        condition = self._prepared.condition
        return rows if condition is None else rows.where(condition)

    def _changing(self, rows: DataFrame, assigned: Mapping[str, Assigned]) -> ChangeFrame:
        target, rows = self._target, self._where(rows)
        names = target.context.schema.names
        columns = [(assigned[name].value if name in assigned else sf.col(quoted(name))).alias(name) for name in names]
        if target.has_feed:
            columns += [sf.col(quoted(name)).alias(old_name(name)) for name in names]
        unfit = [one.field for one in assigned.values() if one.unfit is not None]
        columns += [one.unfit.alias(unfit_name(one.field)) for one in assigned.values() if one.unfit is not None]
        columns += [sf.lit(0).alias(ACTION), sf.col(FILE), sf.col(ROW)]
        if target.has_row_ids:
            columns.append(sf.col(ROW_ID_COLUMN))
        frame = generated(target, rows.select(*columns), dict.fromkeys(assigned, True))
        return ChangeFrame(frame, _UPDATE, unfit)
