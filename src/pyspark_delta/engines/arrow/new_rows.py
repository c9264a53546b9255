"""New rows of a write as Arrow computes them: given columns, defaults, identity numbers, generated columns, checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.conform import conform
from pyspark_delta.data.partitions import as_readers_get
from pyspark_delta.data.violations import violation, watch
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.errors import ComputationError, InvalidOperationError
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.expressions.evaluate import compute, evaluate
from pyspark_delta.expressions.exact import exact_condition, exact_value, inexact_reason, names_of_table
from pyspark_delta.expressions.literals import is_utc, zone_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, ComputedKind, RowCheck
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.store_assignment import Cast, cast_of, matched_members
from pyspark_delta.schema.text_lengths import without_lengths
from pyspark_delta.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.write.engine import WritePlan
from pyspark_delta.write.new_rows import NewRows, plan_new_rows
from pyspark_delta.write.selection import Where

_TEXTS = (BYTE, SHORT, INTEGER, LONG, BOOLEAN, DATE)  # Arrow writes their values as Spark does
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_RANGE = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class BoundRows:
    """Turns batches of the schema of the data into rows of the table, in the order of the source."""

    planned: NewRows
    context: WriteContext
    defaults: tuple[tuple[StructField, Expression], ...]
    generated: tuple[tuple[StructField, Expression], ...]
    checks: tuple[tuple[RowCheck, Expression], ...]

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with all columns of the table.

        Raises ConstraintViolationError for a value that does not fit its column and for a row that violates a
        condition, and ComputationError for a value that Arrow cannot compute.
        """
        position = 0
        for batch in batches:
            yield self._finished(batch, position)
            position += batch.num_rows

    def _finished(self, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        rows = conform(batch, self.planned.data, self.context.schema)
        rows = _with_values(rows, self.defaults)
        rows = as_readers_get(self.context, rows)
        for column in self.planned.numbered:
            rows = _with_column(rows, column.name, identity_values(column, position, rows.num_rows))
        if self.generated:
            rows = as_readers_get(self.context, _with_values(rows, self.generated))
        for check, condition in self.checks:
            check_rows(check, condition, rows)
        return rows


def bind_new_rows(plan: WritePlan) -> BoundRows:
    """Bind the rules of a write as Arrow computes them, with one current time for all of them.

    Raises InvalidOperationError for what only Spark computes, and the errors of `plan_new_rows`.
    """
    context, zone = plan.context, plan.time_zone
    planned = plan_new_rows(plan.data, context, plan.rules())
    table = context.schema
    for field, place in matched_members(plan.data, table):
        if place is not None:
            check_cast(plan.data.fields[place].type, field.type, field.name, zone)
    with one_moment():
        defaults = [(_field(table, c), _default(c, table, zone)) for c in _of(planned, ComputedKind.DEFAULT)]
        generated = [(_field(table, c), _generated(c, table, zone)) for c in _of(planned, ComputedKind.GENERATED)]
        checks = [(check, _condition(check, plan)) for check in planned.checks]
    return BoundRows(planned, context, tuple(defaults), tuple(generated), tuple(checks))


def bound_check(check: RowCheck, table: StructType, zone: str) -> Expression | None:
    """Return the condition of a check; None if Arrow does not compute it exactly.

    Lengths are those of the texts to write, which are padded already.
    """
    if check.kind is CheckKind.LENGTH:
        table = without_lengths(table)
    return exact_condition(check.condition, table, names_of_table(table, None), zone)


def check_rows(check: RowCheck, condition: Expression, rows: pa.RecordBatch) -> None:
    """Raise ConstraintViolationError with the values of the first row for which a condition is not true."""
    if not rows.num_rows:
        return
    meets = pc.fill_null(evaluate(condition, rows), False)
    if not pc.all(meets).as_py():
        watched = watch(check, rows.schema.names)
        first = pc.index(meets, pa.scalar(False)).as_py()
        raise violation(watched, [_shown(rows.column(name)[first]) for name in watched.columns])


# --------------------------------------------------------------------------------------------------------- binding
def _of(planned: NewRows, kind: ComputedKind) -> list[ComputedColumn]:
    return [column for column in planned.absent.values() if column.kind is kind]


def _field(table: StructType, column: ComputedColumn) -> StructField:
    found = table.find(column.name)
    assert found is not None
    return found


def default_value(column: ComputedColumn, field: StructField, zone: str) -> Expression | None:
    """Return the default of a column; None if Arrow does not compute it exactly."""
    none = StructType(())
    return exact_value(column.expression, field.type, none, names_of_table(none, None), zone)


def _default(column: ComputedColumn, table: StructType, zone: str) -> Expression:
    found = default_value(column, _field(table, column), zone)
    if found is None:
        none, data_type = StructType(()), _field(table, column).type
        reason = inexact_reason(column.expression, none, names_of_table(none, None), zone, data_type)
        what = f"The default of the column '{column.name}' is {column.expression}"
        raise _not_exact(what, reason, "values for the column")
    return found


def _generated(column: ComputedColumn, table: StructType, zone: str) -> Expression:
    data_type, names = _field(table, column).type, names_of_table(table, None)
    found = exact_value(column.expression, data_type, table, names, zone)
    if found is None:
        reason = inexact_reason(column.expression, table, names, zone, data_type)
        raise _not_exact(f"The column '{column.name}' is generated as {column.expression}", reason)
    return found


def _condition(check: RowCheck, plan: WritePlan) -> Expression:
    table, selection = plan.context.schema, plan.selection
    if check.kind is CheckKind.REPLACED and isinstance(selection, Where):
        return selection.predicate
    found = bound_check(check, table, plan.time_zone)
    if found is None:
        reason = inexact_reason(check.condition, table, names_of_table(table, None), plan.time_zone)
        raise _not_exact(f"The table has the {check.kind.value} '{check.name}', ({check.condition})", reason)
    return found


def _not_exact(what: str, reason: str, given: str = "") -> InvalidOperationError:
    remedy = f"Add {given} to the data, or write" if given else "Write"
    return InvalidOperationError(
        f"{what}, which Arrow does not compute exactly as Spark does: {reason}. Nothing was written. "
        f"{remedy} the rows with "
        "df.write in a Spark session with pyspark-delta.",
        error_class="DELTA_NO_ENGINE_FOR_STATEMENT",
        sqlstate="0A000",
    )


def check_cast(data: DataType, table: DataType, name: str, zone: str) -> None:
    """Raise InvalidOperationError for a cast whose result may differ between Spark and Arrow."""
    cast = cast_of(data, table)
    match data, table:
        case _ if cast in (Cast.KEEP, Cast.NULL, Cast.CHECK):
            return
        case StructType(), StructType():
            for field, place in matched_members(data, table):
                if place is not None:
                    check_cast(data.fields[place].type, field.type, f"{name}.{field.name}", zone)
            return
        case ArrayType(source), ArrayType(target):
            check_cast(source, target, f"{name}.element", zone)
            return
        case MapType(), MapType():
            check_cast(data.key_type, table.key_type, f"{name}.key", zone)
            check_cast(data.value_type, table.value_type, f"{name}.value", zone)
            return
        case _ if table == STRING and data in _TEXTS:
            return
        case _ if table != STRING and (data not in _TIMES or is_utc(zone_of(zone)) or TIMESTAMP not in (data, table)):
            return
    raise InvalidOperationError(
        f"The data has the type {data} for the column '{name}' of type {table}. Arrow does not convert the values as "
        "Spark does. Nothing was written. Cast the column of the data.",
        error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        column=name,
    )


# ------------------------------------------------------------------------------------------------------- computing
def _with_values(rows: pa.RecordBatch, values: Sequence[tuple[StructField, Expression]]) -> pa.RecordBatch:
    """Return the rows with computed columns; all are computed from the columns that the rows have now."""
    computed = []
    for field, value in values:
        try:
            computed.append((field.name, _typed(compute(value, rows), field.type)))
        except ComputationError as error:
            raise ComputationError(f"The value of the column '{field.name}' cannot be computed. {error}") from None
    for name, column in computed:
        rows = _with_column(rows, name, column)
    return rows


def _typed(values: pa.Array, data_type: DataType) -> pa.Array:
    arrow_type = to_arrow(data_type)
    return values if values.type == arrow_type else values.cast(arrow_type)


def _with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return rows.set_column(rows.schema.names.index(name), name, values)


def identity_values(column: ComputedColumn, position: int, count: int) -> pa.Array:
    """Return the numbers of the rows from a position on. Raises ConstraintViolationError beyond 64 bits (C400)."""
    first, last = (column.start + column.step * row for row in (position, position + max(count, 1) - 1))
    if not (_RANGE[0] <= min(first, last) and max(first, last) <= _RANGE[1]):
        check = RowCheck(column.name, f"the next number fits the type {LONG}", CheckKind.RANGE)
        raise violation(watch(check, ()), [])
    rows = pa.array(np.arange(count, dtype=np.int64))
    return pc.add(pc.multiply(rows, pa.scalar(column.step, pa.int64())), pa.scalar(first, pa.int64()))


def _shown(value: Any) -> str | None:
    found = value.as_py()
    if isinstance(found, bool):
        return str(found).lower()
    return None if found is None else str(found)
