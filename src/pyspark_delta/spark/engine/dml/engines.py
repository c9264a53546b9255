"""The engines of a session: Arrow for what it computes exactly, then Spark, which runs every statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pyspark_delta.engines.arrow.delete import ArrowDelete
from pyspark_delta.engines.arrow.engines import rewrite
from pyspark_delta.engines.arrow.update import ArrowUpdate
from pyspark_delta.engines.contract import ARROW, SPARK, Done, RowEngine
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf import arguments
from pyspark_delta.spark.engine.dml import assignments
from pyspark_delta.spark.engine.dml.conditions import check_condition, value_reads
from pyspark_delta.spark.engine.dml.row_engines import SparkDelete, SparkUpdate
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.write.job import write_kept
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.statements.contract import Rewriter
from pyspark_delta.statements.delete import Delete, Truncate
from pyspark_delta.statements.target import Candidates, Condition, RowCondition
from pyspark_delta.statements.update import Update
from pyspark_delta.write.written import Written

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

EngineT = TypeVar("EngineT")


def delete_statement(
    spark: SparkSession,
    condition: Condition | None = None,
    alias: str | None = None,
    qualifier: tuple[str, ...] = (),
) -> Delete:
    """Return a DELETE for a session; the condition is SQL text or a Column.

    `alias` and `qualifier` as in `SparkTarget`. Raises TypeError for a condition of any other type.
    """
    arguments.check_condition("condition", condition)
    return Delete(partial(_open, spark, qualifier), condition, alias)


def truncate_statement(spark: SparkSession) -> Truncate:
    """Return a TRUNCATE TABLE for a session."""
    return Truncate(partial(_open, spark, ()))


def update_statement(
    spark: SparkSession,
    assigned: Mapping[str, Column | str],
    condition: Condition | None = None,
    alias: str | None = None,
    qualifier: tuple[str, ...] = (),
) -> Update:
    """Return an UPDATE for a session; the condition and the values are SQL text or Columns.

    `alias` and `qualifier` as in `SparkTarget`. Raises TypeError for a condition of any other type.
    """
    arguments.check_condition("condition", condition)
    return Update(partial(_open, spark, qualifier), assigned, condition, alias)


@dataclass(frozen=True)
class SparkEngines:
    """The engines of one attempt (`statements.contract.Engines`)."""

    target: SparkTarget

    def resolve(self, condition: Condition, statement: str) -> RowCondition:
        """Check a condition with Spark's analyzer. Raises as `check_condition`."""
        reads = check_condition(self.target, condition, statement)
        return RowCondition(condition, self.target.text(condition), reads)

    def is_default(self, value: Condition) -> bool:
        """Return True if a new value is SQL's word DEFAULT."""
        return assignments.is_default(value)

    def delete(
        self, files: pa.Table, condition: RowCondition, context: ChangeContext
    ) -> Sequence[tuple[str, RowEngine[ChangedRows]]]:
        """Return the engines of a DELETE."""
        arrow: RowEngine[ChangedRows] = ArrowDelete(self.target, files, condition.text, context)
        return in_order(self.target, arrow, SparkDelete(self.target, files, condition.given, context))

    def update(
        self, candidates: Candidates, condition: RowCondition | None, values: Mapping[tuple[str, ...], Condition]
    ) -> Sequence[tuple[str, RowEngine[Changed]]]:
        """Return the engines of an UPDATE. Raises SchemaMismatchError, and Spark's own errors about a value."""
        target = self.target
        candidates = candidates.reading(value_reads(target, values.values(), "UPDATE"))

        def texts() -> dict[tuple[str, ...], str | None]:
            return {path: target.value_text(value) for path, value in values.items()}

        spark = SparkUpdate.of(target, candidates, condition, values)
        text = None if condition is None else condition.text
        arrow: RowEngine[Changed] = ArrowUpdate(target, candidates, text, texts)
        return in_order(target, arrow, spark)

    def rewriters(self) -> Sequence[tuple[str, Rewriter]]:
        """Return the functions that rewrite files: Arrow's, then Spark's for a file that only Spark can read."""
        return [(ARROW, partial(rewrite, self.target)), (SPARK, self._rewrite)]

    def _rewrite(self, files: pa.Table) -> Done[Written]:
        target = self.target
        kept = read_files(target.spark, target.source, files, row_tracking=target.has_row_ids)
        return Done(write_kept(kept, target.configuration, target.context), SPARK)


def in_order(target: SparkTarget, arrow: EngineT, spark: EngineT) -> list[tuple[str, EngineT]]:
    """Return the engines in the order in which a statement asks them; Spark alone if the cost model excludes Arrow."""
    return [(ARROW, arrow), (SPARK, spark)] if target.cost.uses_arrow else [(SPARK, spark)]


def _open(
    spark: SparkSession,
    qualifier: tuple[str, ...],
    snapshot: Snapshot,
    alias: str | None,
    declared: TableConfiguration | None,
) -> SparkEngines:
    return SparkEngines(SparkTarget.of(spark, snapshot, alias, declared, qualifier))
