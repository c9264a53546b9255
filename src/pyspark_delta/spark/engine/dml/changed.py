"""Builds the frame that the job of an UPDATE or MERGE sends to workers.

The statement provides rows with their new values and actions. This module computes generated columns, and adds the
violated rules, preimages for the change data feed, and row ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.engines.row_changes import ChangeContext, RowAction
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import StructField
from pyspark_delta.spark.conf.strings import as_stored
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.write.alignment import spark_type
from pyspark_delta.spark.engine.write.rules import as_readers_get, check_changed
from pyspark_delta.spark.frames.plain_columns import column_at, named_columns
from pyspark_delta.statements.row_ids import context_of, stored_ids
from pyspark_delta.statements.target import FILE, ROW
from pyspark_delta.transaction.row_rules import row_rules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ACTION = "__pyspark_delta_action"
"""The column with the number of a row's action in `ChangeFrame.actions`."""

_ROWS, _VIOLATION = "__pyspark_delta_rows", "__pyspark_delta_violation"


def old_name(name: str) -> str:
    """Return the name of the column that holds the old value of a column, for preimages."""
    return f"__pyspark_delta_old_{name}"


@dataclass(frozen=True)
class ChangeFrame:
    """The rows that a statement changes, and their actions.

    The frame has, by name: the columns of the table with new values (old values for deleted rows); `ACTION`, `FILE` and
    `ROW`; the row ids if the table tracks rows; the column `old_name` of every column if the job writes preimages; and
    the column `rules.unfit_name` of every field of `unfit`. `numbered` are the identity columns with new numbers.
    """

    frame: DataFrame
    actions: tuple[RowAction, ...]
    unfit: Sequence[StructField] = ()
    numbered: tuple[ComputedColumn, ...] = ()


def generated(target: SparkTarget, frame: DataFrame, given: Mapping[str, Column | bool]) -> DataFrame:
    """Return the frame with generated columns computed from the others.

    `given` maps columns to conditions; a row for which the condition is true keeps its value. True keeps the value in
    all rows. A column that is not in `given` is computed in all rows.
    """
    computed = generated_columns(target)
    found = {name: _computed(target, column, given.get(name, False)) for name, column in computed.items()}
    new = {name: value for name, value in found.items() if value is not None}
    return as_readers_get(frame, target.context).withColumns(new) if new else frame


def generated_columns(target: SparkTarget) -> dict[str, ComputedColumn]:
    """Return the generated columns of a table by name."""
    return {c.name: c for c in row_rules(target.configuration).computed if c.kind is ComputedKind.GENERATED}


def job_of(target: SparkTarget, changing: ChangeFrame, *, has_changes: bool) -> tuple[DataFrame, ChangeContext]:
    """Return the frame and the context of the job. With `has_changes`, the job also writes change data files."""
    schema, carried = target.context.schema, [ACTION, FILE, ROW]
    if target.has_row_ids:
        carried.append(ROW_ID_COLUMN)
    if has_changes:
        carried += [old_name(name) for name in schema.names]
    rules = row_rules(target.configuration)
    ruled = check_changed(changing.frame, target.context, rules, changing.unfit, carried, changing.numbered)
    frame, context = ruled.frame, ruled.context
    is_checked = bool(context.checks)
    if is_checked:
        frame = frame.withColumnRenamed(frame.columns[-1], _VIOLATION)
    spark, actions = target.spark, changing.actions
    checked, action = ([sf.col(_VIOLATION)] if is_checked else []), sf.col(ACTION)
    if has_changes:
        actions = (*actions, RowAction.PREIMAGE)
        frame = _with_preimages(frame, schema.names, actions, is_checked=is_checked, has_ids=target.has_row_ids)
        columns = [column_at(spark, f"{_ROWS}.c{i}") for i in range(len(schema))]
        checked = [sf.col(_ROWS).getField(_VIOLATION)] if is_checked else []
        action = sf.col(_ROWS).getField(ACTION)
    else:
        columns = named_columns(spark, schema.names)
    if target.has_row_ids:
        columns += [sf.col(ROW_ID_COLUMN), sf.lit(None).cast("long")][: len(stored_ids(target))]
    frame = frame.select(*columns, *checked, action.cast("int"), sf.col(FILE), sf.col(ROW))
    return frame, context_of(target, context, actions, has_changes=has_changes)


def _with_preimages(
    frame: DataFrame, names: Sequence[str], actions: Sequence[RowAction], *, is_checked: bool, has_ids: bool
) -> DataFrame:
    """Return a frame in which each updated row occurs twice: after the update, and before it.

    The struct `_ROWS` has the columns of the row, its violation and its action; the file, the position and the row id
    follow it. The last of `actions` is that of preimages, which are not checked.
    """

    def row(columns: Sequence[str], violation: Column, action: Column) -> Column:
        members = [column_at(frame.sparkSession, quoted(name), f"c{i}") for i, name in enumerate(columns)]
        checked = [violation.alias(_VIOLATION)] if is_checked else []
        return sf.struct(*members, *checked, action.alias(ACTION))

    after = row(names, sf.col(_VIOLATION), sf.col(ACTION))
    before = row([old_name(name) for name in names], sf.lit(None).cast("string"), sf.lit(len(actions) - 1))
    updates = [number for number, action in enumerate(actions) if action is RowAction.UPDATE]
    both = sf.when(sf.col(ACTION).isin(updates), sf.array(after, before)).otherwise(sf.array(after))
    locations = (FILE, ROW, ROW_ID_COLUMN) if has_ids else (FILE, ROW)
    return frame.select(sf.explode(both).alias(_ROWS), *(sf.col(name) for name in locations))


def _computed(target: SparkTarget, column: ComputedColumn, given: Column | bool) -> Column | None:
    if given is True:
        return None
    field = target.configuration.schema.find(column.name)
    assert field is not None
    value = sf.expr(as_stored(target.spark, column.expression)).cast(spark_type(field.type))
    return value if given is False else sf.when(given, sf.col(quoted(column.name))).otherwise(value)
