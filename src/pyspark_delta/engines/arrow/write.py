"""Writes Arrow batches to a table: new rows, and the rows that stay where a condition replaces others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.conform import conform
from pyspark_delta.data.partitions import null_empty_partitions
from pyspark_delta.data.parts import write_side_by_side
from pyspark_delta.data.reader import read_tasks, tasks_of
from pyspark_delta.data.violations import violation, watch
from pyspark_delta.data.writer import written_files
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.scan.planner import read_context
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.write.engine import WritePlan
from pyspark_delta.write.replacement import Replaced
from pyspark_delta.write.selection import Where
from pyspark_delta.write.written import Written


def stored_rows(plan: WritePlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return new rows with the columns of the table, as readers get them.

    Raises ConstraintViolationError for a value that does not fit, and for a row that does not meet the condition of
    replaceWhere.
    """
    rows = null_empty_partitions(plan.context, conform(batch, plan.data, plan.context.schema))
    selection = plan.selection
    if isinstance(selection, Where) and selection.check and rows.num_rows:
        _check(rows, selection)
    return rows


@dataclass(frozen=True)
class ConditionRows:
    """The rows of a table that meet a condition, for `ReplacedRows`. This process reads and writes them."""

    plan: WritePlan
    snapshot: Snapshot
    predicate: Expression

    def write_kept(self, replaced: Replaced) -> Written:
        """Write the rows of partly replaced files that stay."""
        context = self.plan.context
        return Written.of(written_files(write_side_by_side(context, self._kept(replaced.partly))), context)

    def _kept(self, files: pa.Table) -> Iterator[pa.RecordBatch]:
        snapshot, zone = self.snapshot, self.plan.time_zone
        before = snapshot.configuration
        context = read_context(snapshot.location, before, storage_options=snapshot.storage_options, time_zone=zone)
        shown = StructType(tuple(f for name in context.output if (f := before.schema.find(name)) is not None))
        for batch in read_tasks(context, list(tasks_of(files))):
            yield conform(batch.filter(pc.invert(_meets(batch, self.predicate))), shown, self.plan.context.schema)


def _meets(rows: pa.RecordBatch, predicate: Expression) -> pa.Array:
    return pc.fill_null(evaluate(predicate, rows), False)


def _check(rows: pa.RecordBatch, selection: Where) -> None:
    meets = _meets(rows, selection.predicate)
    if not pc.all(meets).as_py():
        watched = watch(RowCheck("replaceWhere", selection.text, CheckKind.REPLACED), rows.schema.names)
        row = rows.filter(pc.invert(meets)).slice(0, 1).to_pylist()[0]
        raise violation(watched, [None if row[name] is None else str(row[name]) for name in watched.columns])
