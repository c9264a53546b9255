"""Writes Arrow batches to a table: new rows, and the rows that stay where a condition replaces others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta import progress
from pyspark_delta.data.conform import conform
from pyspark_delta.data.partitions import as_readers_get
from pyspark_delta.data.parts import ROWS_AT_ONCE, write_in_any_order, write_side_by_side
from pyspark_delta.data.reader import read_tasks, tasks_of
from pyspark_delta.data.writer import WriteContext, WrittenFile, written_files
from pyspark_delta.engines.arrow.new_rows import bind_new_rows, check_rows
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.scan.planner import KEPT_ROW_TRACKING_FIELDS, read_context
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.write.change_data import CHANGE_TYPE, change_context, change_files
from pyspark_delta.write.engine import MatchedRows, WritePlan
from pyspark_delta.write.optimized import asks_for_optimized_write
from pyspark_delta.write.replacement import Replaced
from pyspark_delta.write.selection import Where
from pyspark_delta.write.written import Written, has_row_ids, with_row_ids


def stored_rows(plan: WritePlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return new rows with the columns of the table, as readers get them, for tables without computed columns.

    Raises ConstraintViolationError for a value that does not fit, and for a row that does not meet the condition of
    replaceWhere.
    """
    rows = as_readers_get(plan.context, conform(batch, plan.data, plan.context.schema))
    selection = plan.selection
    if isinstance(selection, Where) and selection.check:
        check_rows(RowCheck("replaceWhere", selection.text, CheckKind.REPLACED), selection.predicate, rows)
    return rows


class ArrowRows:
    """The rows of a stream of batches, as `RowWriter` says. This process writes them, with threads.

    `reads` returns what the rows are read from, if it is the table itself; `total` is their number, if it is known. The
    stream is read once. If the rows have to be written again, after a lost race for identity values, they are read from
    the files of the first attempt.
    """

    engine = ""  # the history names the package alone

    def __init__(
        self,
        batches: Iterable[pa.RecordBatch],
        reads: Callable[[Snapshot, IsolationLevel | None], ReadSet] = lambda snapshot, isolation: ReadSet(),
        total: int | None = None,
    ) -> None:
        self._batches = batches
        self._reads = reads
        self._total = total
        self._earlier: tuple[WritePlan, pa.Table] | None = None

    def source_reads(self, snapshot: Snapshot, isolation: IsolationLevel | None) -> ReadSet:
        """Return what the rows are read from, if it is the table itself."""
        return self._reads(snapshot, isolation)

    def write_new(self, plan: WritePlan) -> Written:
        """Write the rows. Raises as `bind_new_rows`, `BoundRows.rows` and `write_in_any_order`."""
        step = progress.begin("Write rows", self._total, "rows")
        batches, earlier = step.shown(iter(self._batches), len), self._earlier
        if earlier is not None:
            plan, batches = _written_again(plan, *earlier)
        bound = bind_new_rows(plan)
        context = replace(plan.context, numbered=bound.planned.numbered)
        files = written_files(_written(plan, context, bound.rows(batches)))
        self._earlier = plan, files
        return Written.of(files, context)

    def replaced_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> ConditionRows:
        """Return the rows that meet the condition of replaceWhere."""
        return condition_rows(plan, snapshot, new)

    def matched_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> MatchedRows:
        """Raise InvalidOperationError: only Spark joins rows for replaceUsing and replaceOn."""
        refuse_joins()


def condition_rows(plan: WritePlan, snapshot: Snapshot, new: Written) -> ConditionRows:
    """Return the rows that meet the condition of replaceWhere, for `RowWriter.replaced_rows`."""
    assert isinstance(plan.selection, Where)
    return ConditionRows(plan, snapshot, plan.selection.predicate, new)


def refuse_joins() -> NoReturn:
    """Raise InvalidOperationError for replaceUsing and replaceOn."""
    raise InvalidOperationError(
        "The options replaceUsing and replaceOn join rows, which needs Spark. Nothing was committed. Use "
        "Table.merge, or df.write in a Spark session with pyspark-delta.",
        error_class="DELTA_NO_ENGINE_FOR_STATEMENT",
    )


@dataclass(frozen=True)
class ConditionRows:
    """The rows of a table that meet a condition, for `ReplacedRows`. This process reads and writes them."""

    plan: WritePlan
    snapshot: Snapshot
    predicate: Expression
    new: Written

    def write_kept(self, replaced: Replaced) -> Written:
        """Write the rows of partly replaced files that stay, with their ids if the table tracks rows."""
        before, context = self.snapshot.configuration, self.plan.context
        extended = with_row_ids(before, context)
        rows = self._kept(replaced.partly, extended)
        return Written.of(written_files(write_side_by_side(extended, rows)), extended)

    def write_changes(self, replaced: Replaced) -> pa.Table:
        """Write change data files with the replaced rows and the new rows."""
        before, after = self.snapshot.configuration, self.plan.configuration
        gone = (batch.filter(_meets(batch, self.predicate)) for batch in self._read(replaced.removed))
        deleted = _changed(gone, before.schema, "delete", self.plan)
        inserted = _changed(_new_rows(self.plan, self.new.files), after.schema, "insert", self.plan)
        with progress.quietly():  # a cancelled write would leave the files of `write_kept` behind
            return _write_changes(self.plan, chain(deleted, inserted))

    def _kept(self, files: pa.Table, extended: WriteContext) -> Iterator[pa.RecordBatch]:
        before = self.snapshot.configuration
        ids = KEPT_ROW_TRACKING_FIELDS if has_row_ids(before) else ()
        shown, table = StructType((*before.schema, *ids)), StructType((*self.plan.context.schema, *ids))
        for batch in self._read(files, row_ids=bool(ids)):
            kept = conform(batch.filter(pc.invert(_meets(batch, self.predicate))), shown, table)
            yield kept.rename_columns(list(extended.schema.names))

    def _read(self, files: pa.Table, *, row_ids: bool = False) -> Iterator[pa.RecordBatch]:
        context = file_source(self.snapshot).read_context(row_ids=row_ids, time_zone=self.plan.time_zone)
        return read_tasks(context, list(tasks_of(files)))


# ---------------------------------------------------------------------------------------------------- written rows
def _written(plan: WritePlan, context: WriteContext, rows: Iterable[pa.RecordBatch]) -> list[WrittenFile]:
    """Write rows with threads. An optimized write keeps the files of all partitions open until the end."""
    if context.partition_columns and asks_for_optimized_write(plan.options, plan.configuration):
        return write_side_by_side(context, rows, threads=None, at_once=ROWS_AT_ONCE)
    return write_in_any_order(context, rows, at_once=ROWS_AT_ONCE)


def _written_again(plan: WritePlan, earlier: WritePlan, files: pa.Table) -> tuple[WritePlan, Iterator[pa.RecordBatch]]:
    """Return the plan for rows that were written before, and these rows without the numbers that they got."""
    numbered = {column.name for column in bind_new_rows(earlier).planned.numbered}
    schema = StructType(tuple(field for field in earlier.configuration.schema if field.name not in numbered))
    rows = (batch.select(list(schema.names)) for batch in _new_rows(earlier, files))
    return replace(plan, data=schema), rows


def _new_rows(plan: WritePlan, files: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of new files."""
    options, configuration = plan.context.storage_options, plan.configuration
    context = read_context(plan.target.location, configuration, storage_options=options, time_zone=plan.time_zone)
    return read_tasks(context, list(tasks_of(files)))


# --------------------------------------------------------------------------------------------------------- changes
def _changed(
    rows: Iterable[pa.RecordBatch], schema: StructType, change: str, plan: WritePlan
) -> Iterator[pa.RecordBatch]:
    """Yield rows with their change type, in the columns of change data files."""
    shown, table = StructType((*schema, CHANGE_TYPE)), change_context(plan.context).schema
    for batch in rows:
        kinds = pa.repeat(pa.scalar(change), batch.num_rows)
        typed = pa.RecordBatch.from_arrays([*batch.columns, kinds], names=list(shown.names))
        yield conform(typed, shown, table)


def _write_changes(plan: WritePlan, rows: Iterable[pa.RecordBatch]) -> pa.Table:
    return change_files(written_files(write_side_by_side(change_context(plan.context), rows)))


def _meets(rows: pa.RecordBatch, predicate: Expression) -> pa.Array:
    return pc.fill_null(evaluate(predicate, rows), False)
