"""DELETE and UPDATE as Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as sf

from pyspark_delta.engines.arrow.row_search import search_rows
from pyspark_delta.engines.contract import NONE, SPARK, CannotRun, Done, answer
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows, RowAction
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.engine.dml.assignments import Assigned, assign
from pyspark_delta.spark.engine.dml.changed import ACTION, ChangeFrame, generated, job_of, old_name
from pyspark_delta.spark.engine.dml.job import change_rows
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.write.rules import unfit_name
from pyspark_delta.spark.frames.plain_columns import aliased, named_columns
from pyspark_delta.statements.target import FILE, ROW, Candidates, Condition, RowCondition, by_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UPDATE = (RowAction.UPDATE,)


@dataclass(frozen=True)
class SparkDelete:
    """Deletes the rows of some files that meet a condition."""

    target: SparkTarget
    files: pa.Table
    condition: Condition
    context: ChangeContext

    def find(self) -> Done[ChangedRows]:
        """Run the job that finds the rows."""
        return replace(self, context=ChangeContext(self.context.actions)).change()

    def change(self) -> Done[ChangedRows]:
        """Run the job. It also writes the rows to change data files if the context has `changes`."""
        columns = named_columns(self.target.spark, self.context.columns.names)
        frame = self.target.rows(self.files).where(self.condition)
        frame = frame.select(*columns, sf.lit(0), sf.col(FILE), sf.col(ROW))
        return Done(change_rows(frame, self.context), SPARK)


@dataclass(frozen=True)
class SparkUpdate:
    """Updates the rows of candidate files that meet a condition; `assigned` are the new values by column."""

    target: SparkTarget
    candidates: Candidates
    condition: RowCondition | None
    assigned: Mapping[str, Assigned]

    @classmethod
    def of(
        cls,
        target: SparkTarget,
        candidates: Candidates,
        condition: RowCondition | None,
        values: Mapping[tuple[str, ...], Condition],
    ) -> SparkUpdate:
        """Return the engine for new values by the path of their column. Raises as `assign`."""
        assigned = assign(target.empty(), target.snapshot.schema, values, lambda name: sf.col(quoted(name)))
        return cls(target, candidates, condition, assigned)

    def find(self) -> Done[Changed]:
        """Run the job that finds the rows."""
        files = self.candidates.all
        frame = self._where(self.target.rows(files)).select(sf.lit(0), sf.col(FILE), sf.col(ROW))
        return Done(Changed(files, change_rows(frame, ChangeContext(_UPDATE)), self.candidates.reads), SPARK)

    def change(self) -> Done[Changed]:
        """Run the job that finds the rows and writes their new values."""
        target, reads = self.target, self.candidates.reads
        files = by_partition(self._files_with_rows(), target.context)
        if not files.num_rows:
            values = [one.value for one in self.assigned.values()]
            _ = target.empty().select(*values).schema  # Spark raises its error about an invalid cast
            return Done(Changed(files, ChangedRows.nothing(len(_UPDATE)), reads), NONE)
        changing = self._changing(target.rows(files))
        rows = change_rows(*job_of(target, changing, has_changes=target.has_feed))
        return Done(Changed(files, rows, reads), SPARK)

    def _files_with_rows(self) -> pa.Table:
        """Return the candidate files with rows to update; all of them if Arrow cannot evaluate the condition."""
        candidates, target = self.candidates, self.target
        if self.condition is None or not target.cost.uses_arrow or candidates.partially_matched.num_rows < 2:
            return candidates.all
        condition = target.exact_condition(self.condition.text)
        if condition is None:
            return candidates.all
        found = answer(lambda: search_rows(target, candidates.partially_matched, condition))
        if isinstance(found, CannotRun):  # such as a condition that fails for a row: Spark then raises its error
            return candidates.all
        met = candidates.partially_matched.take(pa.array(sorted(found.value), pa.int64()))
        return replace(candidates, partially_matched=met).all

    def _where(self, rows: DataFrame) -> DataFrame:
        return rows if self.condition is None else rows.where(self.condition.given)

    def _changing(self, rows: DataFrame) -> ChangeFrame:
        target, assigned, rows = self.target, self.assigned, self._where(rows)
        spark, names = target.spark, target.context.schema.names
        old = named_columns(spark, names)
        columns = [
            aliased(assigned[name].value, name) if name in assigned else value
            for name, value in zip(names, old, strict=True)
        ]
        if target.has_feed:
            columns += [aliased(value, old_name(name)) for name, value in zip(names, old, strict=True)]
        unfit = [one.field for one in assigned.values() if one.unfit is not None]
        columns += [one.unfit.alias(unfit_name(one.field)) for one in assigned.values() if one.unfit is not None]
        columns += [sf.lit(0).alias(ACTION), sf.col(FILE), sf.col(ROW)]
        if target.has_row_ids:
            columns.append(sf.col(ROW_ID_COLUMN))
        frame = generated(target, rows.select(*columns), dict.fromkeys(assigned, True))
        return ChangeFrame(frame, _UPDATE, unfit)
