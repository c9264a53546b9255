"""UPDATE: rows for which a condition is true get new values in some columns.

One job finds the rows, writes them with their new values to new files, and crosses them off the files that they are
from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import orjson
import pyarrow as pa
import pyspark.sql.functions as sf

from pyspark_delta.expressions.tree import Expression
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark import arguments
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
from pyspark_delta.spark.dml.outcome import draft_change, file_metrics, settle_files
from pyspark_delta.spark.dml.plain import LEFT_TO_SPARK
from pyspark_delta.spark.dml.plain.changing import change_files
from pyspark_delta.spark.dml.plain.update import plain_update
from pyspark_delta.spark.dml.plan import Found
from pyspark_delta.spark.dml.row_search import search_rows, with_files_met
from pyspark_delta.spark.dml.target import FILE, ROW, Candidates, Condition, Target
from pyspark_delta.spark.dml.task import ChangeContext, RowAction
from pyspark_delta.spark.quoting import quoted
from pyspark_delta.spark.write.rewriting import by_partition
from pyspark_delta.spark.write.rules import unfit_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_UPDATE = (RowAction.UPDATE,)


@dataclass(frozen=True)
class _Look:
    """What a statement is about: the files that may have rows for it, and the new values by column.

    Where the condition `is_exact`, `exact` is that as Arrow computes it; None for all rows.
    """

    target: Target
    candidates: Candidates
    resolved: Mapping[tuple[str, ...], Column | str]
    assigned: Mapping[str, Assigned]
    exact: Expression | None
    is_exact: bool


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
        """Find the rows and write them with their new values; the draft of the commit.

        Raises AppendOnlyTableError, InvalidOperationError and SchemaMismatchError for the assignments,
        ConstraintViolationError, and what Spark says about condition and values.
        """
        start = time.monotonic()
        found = self._look(spark, snapshot, declared)
        target, candidates = found.target, found.candidates
        files, rows = self._change(found)
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
        found = self._look(spark, snapshot)
        files, reads = found.candidates.all, found.candidates.reads
        rows = self._find(found, files) if files.num_rows else ChangedRows.nothing(len(_UPDATE))
        return Found(found.target, files, files.slice(0, 0), rows, reads, rows.crossed_off, rows.crossed_off)

    def _look(self, spark: SparkSession, snapshot: Snapshot, declared: TableConfiguration | None = None) -> _Look:
        target = Target.of(spark, snapshot, self.alias, declared)
        check_removable(target.configuration, "UPDATE")
        resolved = self._resolved(target)
        assigned = assign(target.empty(), target.snapshot.schema, resolved, lambda name: sf.col(quoted(name)))
        if self.condition is None:
            return _Look(target, target.candidates(None), resolved, assigned, None, is_exact=True)
        check_condition(target, self.condition, "UPDATE")
        candidates = target.candidates(target.predicate(self.condition))
        exact = target.exact_condition(self.condition)
        return _Look(target, candidates, resolved, assigned, exact, is_exact=exact is not None)

    def _find(self, found: _Look, files: pa.Table) -> ChangedRows:
        if found.is_exact:
            with suppress(*LEFT_TO_SPARK):
                return ChangedRows.only_gone(search_rows(found.target, files, found.exact))
        frame = self._where(found.target.rows(files)).select(sf.lit(0), sf.col(FILE), sf.col(ROW))
        return change_rows(frame, ChangeContext(_UPDATE))

    def _change(self, found: _Look) -> tuple[pa.Table, ChangedRows]:
        """Write the rows with their new values: by Arrow where it can, else by Spark. And the files they are from."""
        target, candidates = found.target, found.candidates
        plain = plain_update(target, found.resolved) if found.is_exact and candidates.all.num_rows else None
        if plain is not None:
            files = by_partition(candidates.all, target.context)
            with suppress(*LEFT_TO_SPARK):
                return files, change_files(target, files, found.exact, plain)
        if found.exact is not None:
            with suppress(*LEFT_TO_SPARK):  # Spark says what becomes of a row that it cannot be computed for
                candidates = with_files_met(target, candidates, found.exact)
        files = by_partition(candidates.all, target.context)
        if not files.num_rows:
            values = [one.value for one in found.assigned.values()]
            _ = target.empty().select(*values).schema  # casts that Spark refuses
            return files, ChangedRows.nothing(len(_UPDATE))
        changing = self._changing(target, target.rows(files), found.assigned)
        return files, change_rows(*job_of(target, changing, has_changes=target.has_feed))

    def _where(self, rows: DataFrame) -> DataFrame:
        return rows if self.condition is None else rows.where(self.condition)

    def _resolved(self, target: Target) -> dict[tuple[str, ...], Column | str]:
        schema = target.snapshot.schema
        given = fill_defaults(self.assignments, target.configuration, self.alias, "UPDATE")
        resolved = resolve_assignments(schema, given, self.alias, "UPDATE")
        check_no_identity(schema, resolved, "UPDATE")
        return resolved

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
