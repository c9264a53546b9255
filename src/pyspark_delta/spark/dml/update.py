"""UPDATE: rows for which a condition is true get new values in some columns.

One job finds the rows, writes them with their new values to new files, and crosses them off the files that they are
from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import orjson
import pyspark.sql.functions as sf

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.dml.assignments import (
    Assigned,
    assign,
    check_no_identity,
    fill_defaults,
    resolve_assignments,
)
from pyspark_delta.spark.dml.changed import ACTION, ChangeFrame, generated, job_of, old_name
from pyspark_delta.spark.dml.conditions import check_condition
from pyspark_delta.spark.dml.execution import Staged, milliseconds_since
from pyspark_delta.spark.dml.job import ChangedRows, change_rows
from pyspark_delta.spark.dml.outcome import draft_change, file_metrics, require_removable, settle_files
from pyspark_delta.spark.dml.plan import Found
from pyspark_delta.spark.dml.row_search import with_files_met
from pyspark_delta.spark.dml.target import FILE, ROW, Candidates, Condition, Target
from pyspark_delta.spark.dml.task import ChangeContext, RowAction
from pyspark_delta.spark.quoting import quoted
from pyspark_delta.spark.write.rules import unfit_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_UPDATE = (RowAction.UPDATE,)


@dataclass(frozen=True)
class Update:
    """An UPDATE statement: `assignments` are the new values by column; without a condition all rows get them."""

    assignments: Mapping[str, Column | str] = field(default_factory=dict)
    condition: Condition | None = None
    alias: str | None = None
    name: ClassVar[str] = "UPDATE"
    counts: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.assignments:
            raise InvalidOptionError("update needs the new values: set={'column': 'expression'}, found none.")

    def stage(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows and write them with their new values; the draft of the commit.

        Raises AppendOnlyTableError, InvalidOperationError and SchemaMismatchError for the assignments,
        ConstraintViolationError, and what Spark says about condition and values.
        """
        start = time.monotonic()
        target, candidates, assigned = self._look(spark, snapshot, declared)
        files = candidates.all
        if not files.num_rows:
            _ = target.empty().select(*(one.value for one in assigned.values())).schema  # casts that Spark refuses
            return Staged(None, (0,), reads=candidates.reads)
        frame, context = job_of(
            target, self._changing(target, target.rows(files), assigned), has_changes=target.has_feed
        )
        rows = change_rows(frame, context)
        scanned = milliseconds_since(start)
        changes = settle_files(target, files, rows, files.slice(0, 0))
        if changes.is_nothing:
            return Staged(None, (0,), reads=candidates.reads)
        updated = rows.counts[0]
        metrics = {
            **file_metrics(changes, with_marked=True),
            "numUpdatedRows": updated,
            "executionTimeMs": milliseconds_since(start),
        }
        metrics["scanTimeMs"], metrics["rewriteTimeMs"] = scanned, metrics["executionTimeMs"] - scanned
        draft = draft_change(target, changes, Operation("UPDATE", self._parameters(target), metrics), candidates.reads)
        return Staged(draft, (updated,), changes.written)

    def find(self, spark: SparkSession, snapshot: Snapshot) -> Found:
        """The rows that would change. Raises as `stage`, but not for values that break a rule."""
        target, candidates, _ = self._look(spark, snapshot)
        files = candidates.all
        rows = ChangedRows.nothing(len(_UPDATE))
        if files.num_rows:
            frame = self._where(target.rows(files)).select(sf.lit(0), sf.col(FILE), sf.col(ROW))
            rows = change_rows(frame, ChangeContext(_UPDATE))
        return Found(target, files, files.slice(0, 0), rows, candidates.reads, rows.crossed_off, rows.crossed_off)

    def _look(
        self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None
    ) -> tuple[Target, Candidates, dict[str, Assigned]]:
        target = Target.of(spark, snapshot, self.alias, declared)
        require_removable(target, "UPDATE")
        assigned = self._assigned(target)
        if self.condition is not None:
            check_condition(target, self.condition, "UPDATE")
        predicate = None if self.condition is None else target.predicate(self.condition)
        candidates = target.candidates(predicate)
        return target, candidates if predicate is None else with_files_met(target, candidates, predicate), assigned

    def _where(self, rows: DataFrame) -> DataFrame:
        return rows if self.condition is None else rows.where(self.condition)

    def _assigned(self, target: Target) -> dict[str, Assigned]:
        schema = target.snapshot.schema
        given = fill_defaults(self.assignments, target.configuration, self.alias, "UPDATE")
        resolved = resolve_assignments(schema, given, self.alias, "UPDATE")
        check_no_identity(schema, resolved, "UPDATE")
        return assign(target.empty(), schema, resolved, lambda name: sf.col(quoted(name)))

    def _changing(self, target: Target, rows: DataFrame, assigned: Mapping[str, Assigned]) -> ChangeFrame:
        rows = self._where(rows)
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

    def _parameters(self, target: Target) -> dict[str, str]:
        if self.condition is None:
            return {"predicate": orjson.dumps([]).decode()}
        return {"predicate": orjson.dumps([target.text(self.condition)]).decode()}
