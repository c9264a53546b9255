"""The rules of a table as Catalyst expressions on a frame: computed columns, identity numbers, violated conditions.

A row that violates a condition does not raise an exception in the JVM. Instead the frame gets a column that names the
violated condition and is null for valid rows; the worker that writes the rows raises the error. So the error keeps its
class on every kind of session, Spark does not retry the task, and rows that are not written cannot cause an error even
if Spark's optimizer moves expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.data.violations import WatchedCheck, watch
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, ComputedKind, RowCheck
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.text_lengths import DECLARED_TYPE, padded_length
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.spark.conf.strings import as_stored
from pyspark_delta.spark.engine.write.alignment import align, fitted_columns, spark_type
from pyspark_delta.spark.frames.catalyst.columns import try_cast
from pyspark_delta.spark.frames.char_columns import padded_column
from pyspark_delta.spark.frames.plain_columns import aliased, named_columns
from pyspark_delta.transaction.row_rules import RowRules
from pyspark_delta.write.new_rows import computed_columns, empty_partition_values, plan_new_rows, row_checks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HIDDEN = "__pyspark_delta_"
_VIOLATION = f"{_HIDDEN}violation"
_UNFIT = f"{_HIDDEN}unfit_"
_TASK, _ROW, _TASK_BITS, _ROW_BITS, _POSITION = (
    f"{_HIDDEN}number_{name}" for name in ("task", "row", "task_bits", "row_bits", "position")
)
# Each block of 2**4 rows of a task gets consecutive numbers.
_FIRST_RUN_BITS = 4


@dataclass(frozen=True, slots=True)
class RuledFrame:
    """A frame to which the rules have been applied, and its context.

    The frame has the columns of the context by position and, if the context has checks, the column of violations.
    """

    frame: DataFrame
    context: WriteContext


def check_changed(
    frame: DataFrame,
    context: WriteContext,
    rules: RowRules,
    unfit: Sequence[StructField],
    carried: Sequence[str],
    numbered: tuple[ComputedColumn, ...] = (),
) -> RuledFrame:
    """Apply the rules to rows that a statement changes.

    The frame has every column of the table, also computed ones, with values of the table's types. For each field of
    `unfit`, it has a column `unfit_name` with the text of a value that could not be cast. `numbered` are the identity
    columns with new numbers (`number_rows`). The result has the columns of the table, those named in `carried`, and the
    column of violations if there are checks.
    """
    table = context.schema
    context = replace(context, numbered=numbered)
    given = tuple(computed_columns(rules, table).values())
    checks = [watch(check, table.names) for check in row_checks(rules, given, numbered, context)]
    if not (unfit or checks):
        return RuledFrame(frame.select(*named_columns(frame.sparkSession, (*table.names, *carried))), context)
    frame, checks = _violations(as_readers_get(frame, context), table, unfit, checks, carried)
    return RuledFrame(frame, replace(context, checks=tuple(checks)))


def unfit_name(field: StructField) -> str:
    """Return the name of the column for values of a field that could not be cast to its type."""
    return _UNFIT + field.name


def apply_rules(frame: DataFrame, data: StructType, context: WriteContext, rules: RowRules) -> RuledFrame:
    """Apply the rules to new rows; return them with the columns of the table. `data` is the schema of the frame.

    Raises InvalidOperationError for values given to a column that only the table numbers, and ConstraintViolationError
    if the frame lacks a NOT NULL column.
    """
    table, planned = context.schema, plan_new_rows(data, context, rules)
    if not rules:
        return RuledFrame(align(frame, data, table), context)
    absent, narrowed, numbered = planned.absent, planned.narrowed, planned.numbered
    checks = [watch(check, table.names) for check in planned.checks]
    frame = as_readers_get(_given_and_defaults(frame, data, table, absent, narrowed), context)
    frame = _numbered(frame, numbered)
    frame = as_readers_get(_generated(frame, table, absent), context, tuple(absent))
    if narrowed or checks:
        frame, checks = _violations(frame, table, narrowed, checks)
    return RuledFrame(frame, replace(context, checks=tuple(checks), numbered=numbered))


def as_readers_get(frame: DataFrame, context: WriteContext, among: Sequence[str] | None = None) -> DataFrame:
    """Return the frame with values as readers get them; conditions and generated columns must see the same.

    Empty strings and empty binary values of partition columns are null (C416), and texts of char(n) columns are padded.
    `among` are the columns to change; by default, those of the frame.
    """
    changed = frame.columns if among is None else among
    names = set(empty_partition_values(context)).intersection(changed)
    values = {name: sf.col(quoted(name)) for name in sorted(names)}
    stored = {name: sf.when(sf.octet_length(value) > 0, value) for name, value in values.items()}
    return _padded(frame.withColumns(stored) if stored else frame, context.schema, changed)


def _padded(frame: DataFrame, table: StructType, changed: Sequence[str]) -> DataFrame:
    """Pad the texts of the char(n) columns among those named in `changed`."""
    padded: dict[str, Column] = {}
    for field in table:
        length = padded_length(field)
        if length is not None and field.name in changed:
            # Spark pads a constant that is compared with a column of this metadata.
            declared = {DECLARED_TYPE: field.metadata[DECLARED_TYPE]}
            padded[field.name] = padded_column(field.name, length).alias(field.name, metadata=declared)
    if not padded:
        return frame
    columns = zip(frame.columns, named_columns(frame.sparkSession, frame.columns), strict=True)
    return frame.select(*(padded.get(name, column) for name, column in columns))


def _given_and_defaults(
    frame: DataFrame,
    data: StructType,
    table: StructType,
    absent: Mapping[str, ComputedColumn],
    narrowed: Sequence[StructField],
) -> DataFrame:
    """Return the columns of the frame, cast to the types of the table, and defaults for missing columns.

    A value that does not fit a column of `narrowed` is null there; an additional column `unfit_name` has its text.
    """
    values = fitted_columns(frame.sparkSession, data, (field for field in table if field.name not in absent))
    columns: list[Column] = []
    for field in table:
        column = absent.get(field.name)
        if column is None:
            value = values[field.name]
            value = try_cast(value, spark_type(field.type)) if field in narrowed else value
            columns.append(aliased(value, field.name))
        elif column.kind is ComputedKind.DEFAULT:
            columns.append(
                sf.expr(as_stored(frame.sparkSession, column.expression)).cast(spark_type(field.type)).alias(field.name)
            )
    for field in narrowed:
        value = values[field.name]
        unfit = value.isNotNull() & try_cast(value, spark_type(field.type)).isNull()
        columns.append(sf.when(unfit, value.cast("string")).alias(_UNFIT + field.name))
    return frame.select(*columns)


def _numbered(frame: DataFrame, numbered: Sequence[ComputedColumn]) -> DataFrame:
    """Return the frame with identity columns: task and row determine a position, and the position the number.

    No task knows how many tasks there are. So positions are assigned in runs that double in length, by task and by row.
    The numbers of a task ascend. The highest position is about ten times the number of rows if tasks have equally many
    rows, and more if they do not.
    """
    if not numbered:
        return frame
    columns = named_columns(frame.sparkSession, frame.columns)
    frame = frame.select("*", sf.spark_partition_id().alias(_TASK), _row_of_task().alias(_ROW))
    unit = f"(shiftright({_ROW}, {_FIRST_RUN_BITS}) + 1)"
    frame = frame.select(
        "*",
        sf.expr(f"cast(floor(log2({_TASK} + 1.5D)) as int)").alias(_TASK_BITS),
        sf.expr(f"cast(floor(log2({unit} + 0.5D)) as int)").alias(_ROW_BITS),
    )
    both = f"({_TASK_BITS} + {_ROW_BITS})"
    shorter = f"({both} - 1) * shiftleft(1L, {both}) + 1"  # positions of all shorter runs
    fewer = f"{_TASK_BITS} * shiftleft(1L, {both})"
    tasks = f"({_TASK} + 1 - shiftleft(1L, {_TASK_BITS})) * shiftleft(1L, {_ROW_BITS})"
    run = f"{shorter} + {fewer} + {tasks} + {unit} - shiftleft(1L, {_ROW_BITS})"
    within = f"({_ROW} & {(1 << _FIRST_RUN_BITS) - 1})"
    frame = frame.select(*columns, sf.expr(f"shiftleft({run}, {_FIRST_RUN_BITS}) + {within}").alias(_POSITION))
    numbers = [_number(c).alias(c.name) for c in numbered]
    return frame.select(*columns, *numbers)


def number_rows(frame: DataFrame, numbered: Mapping[ComputedColumn, Column]) -> DataFrame:
    """Give identity columns new numbers in the rows for which their condition is true; other rows keep theirs."""
    hidden = {replace(column, name=f"{_HIDDEN}number_{column.name}"): column for column in numbered}
    frame = _numbered(frame, tuple(hidden))
    values = {
        column.name: sf.when(numbered[column], sf.col(quoted(number.name))).otherwise(sf.col(quoted(column.name)))
        for number, column in hidden.items()
    }
    return frame.withColumns(values) if values else frame


def _number(column: ComputedColumn) -> Column:
    """Return the number for a position; null when it is beyond 64 bits."""
    if not -(1 << 63) <= column.start < 1 << 63:
        return sf.lit(None).cast("long")
    return sf.expr(f"try_add({column.start}L, try_multiply({_POSITION}, {column.step}L))")


def _row_of_task() -> Column:
    return sf.monotonically_increasing_id().bitwiseAND(sf.lit((1 << 33) - 1))


def _generated(frame: DataFrame, table: StructType, absent: Mapping[str, ComputedColumn]) -> DataFrame:
    """Return the frame with the columns of the table in order; generated columns are computed from the others."""
    columns = []
    for field, value in zip(table, named_columns(frame.sparkSession, table.names), strict=True):
        column = absent.get(field.name)
        if column is not None and column.kind is ComputedKind.GENERATED:
            columns.append(
                sf.expr(as_stored(frame.sparkSession, column.expression)).cast(spark_type(field.type)).alias(field.name)
            )
        else:
            columns.append(value)
    columns += named_columns(frame.sparkSession, (name for name in frame.columns if name.startswith(_UNFIT)))
    return frame.select(*columns)


def _violations(
    frame: DataFrame,
    table: StructType,
    narrowed: Sequence[StructField],
    checks: list[WatchedCheck],
    carried: Sequence[str] = (),
) -> tuple[DataFrame, list[WatchedCheck]]:
    """Return the frame with a column for the first violated condition of a row, and the conditions by number.

    The column is JSON: the number of the condition and the values of its columns as text. It is null for valid rows.
    """
    spark = frame.sparkSession
    numbered: list[WatchedCheck] = []
    broken: Column | None = None

    def add(watched: WatchedCheck, passes: Column, shown: Sequence[Column]) -> None:
        nonlocal broken
        found = sf.to_json(sf.array(sf.lit(str(len(numbered))), *(value.cast("string") for value in shown)))
        broken = sf.when(~passes, found) if broken is None else broken.when(~passes, found)
        numbered.append(watched)

    for field in narrowed:
        unfit = sf.col(quoted(_UNFIT + field.name))
        check = RowCheck(field.name, f"fits the type {field.type}", CheckKind.RANGE)
        add(WatchedCheck(check, (field.name,)), unfit.isNull(), [unfit])
    for watched in checks:
        condition = watched.check.condition
        if watched.check.kind is not CheckKind.REPLACED:  # which the user has given for this write
            condition = as_stored(spark, condition)
        passes = sf.coalesce(sf.expr(condition), sf.lit(False))
        add(watched, passes, named_columns(spark, watched.columns))
    columns = named_columns(spark, (*table.names, *carried))
    assert broken is not None
    return frame.select(*columns, broken.alias(_VIOLATION)), numbered
