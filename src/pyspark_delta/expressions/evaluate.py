"""Three-valued evaluation of an expression over Arrow data, with Spark's results.

NaN equals NaN and is above every number; -0.0 equals 0.0; strings and binaries compare byte by byte; Opaque is
unknown. A condition on one dictionary-encoded column is evaluated once per distinct value.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import ComputationError, InvalidPredicateError
from pyspark_delta.expressions.cast_kernels import cast_values
from pyspark_delta.expressions.comparisons import compare
from pyspark_delta.expressions.functions.registry import compute_call
from pyspark_delta.expressions.text import columns_of, to_sql
from pyspark_delta.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    type_of,
)
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
)

_Data: TypeAlias = pa.RecordBatch | pa.Table | pa.StructArray
_Value: TypeAlias = Any  # pa.Array | pa.Scalar
_ONE_ROW = pa.record_batch([pa.nulls(1)], names=["_"])
_UNKNOWN = pa.nulls(1, pa.bool_())[0]  # pa.scalar would import pandas


def evaluate(expression: Expression, data: _Data) -> pa.BooleanArray:
    """Return a condition over a batch, a table or a struct array: true, false, or null if it is unknown.

    Columns are found by the parts of their path. Raises InvalidPredicateError if one is absent or of another type, and
    ComputationError if a value cannot be computed (overflow).
    """
    if type_of(expression) not in (BOOLEAN, VOID):
        raise InvalidPredicateError(f"'{to_sql(expression)}' is not a condition.")
    if isinstance(data, pa.Table):
        parts = [evaluate(expression, batch) for batch in data.combine_chunks().to_batches()]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.bool_())
    try:
        return _array(_condition(expression, data), data.num_rows if isinstance(data, pa.RecordBatch) else len(data))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ComputationError(f"Cannot evaluate '{to_sql(expression)}': {error}.") from None


def compute(expression: Expression, data: pa.RecordBatch) -> pa.Array:
    """Return the values of an expression for the rows of a batch; a column is returned unchanged.

    Raises as `evaluate`.
    """
    if isinstance(expression, Column):
        return _find(expression, data)
    try:
        value = _evaluate(expression, data)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ComputationError(f"Cannot evaluate '{to_sql(expression)}': {error}.") from None
    return pa.repeat(value, data.num_rows) if isinstance(value, pa.Scalar) else value


def compute_constant(expression: Expression) -> pa.Array:
    """Return the one value of an expression without columns. Raises as `evaluate`."""
    return compute(expression, _ONE_ROW)


def folded(expression: Expression) -> Expression:
    """Return a date or time computed from constants as a constant, by which files can be skipped.

    Any other expression is unchanged. A computation that fails, or whose result Python has no value for, is left for
    the rows that need it.
    """
    if not isinstance(expression, Call) or expression.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return expression
    if not all(isinstance(argument, Literal) for argument in expression.arguments):
        return expression
    try:
        return Literal(compute_constant(expression)[0].as_py(), expression.type)
    except (ComputationError, ArithmeticError, ValueError):
        return expression


def _condition(expression: Expression, data: Any) -> _Value:
    distinct = _by_distinct_value(expression, data)
    return _boolean(_evaluate(expression, data)) if distinct is None else distinct


def _by_distinct_value(expression: Expression, data: Any) -> pa.BooleanArray | None:
    columns = columns_of(expression)
    if len(columns) != 1 or len(columns[0].path) != 1:
        return None
    encoded = _child(data, columns[0].path[0])
    if encoded is None or not pa.types.is_dictionary(encoded.type) or len(encoded.dictionary) >= len(encoded):
        return None
    # An additional null row stands for the rows without a value.
    distinct = pa.concat_arrays([encoded.dictionary, pa.nulls(1, encoded.dictionary.type)])
    try:
        outcomes = evaluate(expression, pa.RecordBatch.from_arrays([distinct], names=[columns[0].path[0]]))
    except ComputationError:
        return None  # perhaps for a value that no row has
    indices = pc.fill_null(encoded.indices, pa.scalar(len(distinct) - 1).cast(encoded.indices.type, safe=True))
    return outcomes.take(indices)


def _array(value: _Value, length: int) -> pa.BooleanArray:
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    if isinstance(value, pa.Scalar):
        return pa.repeat(value if value.type == pa.bool_() else _UNKNOWN, length)
    return value


def _evaluate(expression: Expression, data: Any) -> _Value:
    match expression:
        case Column():
            return _column(expression, data)
        case Literal(value, data_type):
            return pa.scalar(value, to_arrow(data_type))
        case Comparison(op, left, right):
            return compare(op, _evaluate(left, data), _evaluate(right, data))
        case And(operands):
            return _fold(pc.and_kleene, operands, data)
        case Or(operands):
            return _fold(pc.or_kleene, operands, data)
        case Not(operand):
            return pc.invert(_boolean(_evaluate(operand, data)))
        case IsNull(operand):
            return pc.is_null(_operand(operand, data))
        case In():
            return _is_in(expression, data)
        case StartsWith(operand, prefix):
            return pc.starts_with(_evaluate(operand, data), pattern=prefix)
        case Cast(operand, target):
            return cast_values(_evaluate(operand, data), type_of(operand), target)
        case Call(name, arguments):
            return _call(name, arguments, data)
        case Opaque():
            return _UNKNOWN
        case _:
            assert_never(expression)


def _fold(kernel: Any, operands: tuple[Expression, ...], data: Any) -> _Value:
    """Combine conditions from left to right.

    As in Spark, a condition that fails matters only for rows that the conditions before it do not decide.
    """
    result = _condition(operands[0], data)
    for operand in operands[1:]:
        try:
            found = _condition(operand, data)
        except (pa.ArrowInvalid, ComputationError):
            decided = pc.fill_null(result if kernel is pc.or_kleene else pc.invert(result), False)
            found = _on_rows(operand, data, pc.invert(decided))
        result = kernel(result, found)
    return result


def _call(name: str, arguments: tuple[Expression, ...], data: Any) -> _Value:
    try:
        return compute_call(name, [_evaluate(argument, data) for argument in arguments])
    except (pa.ArrowInvalid, ComputationError):
        if name not in ("case", "coalesce"):
            raise
    return compute_call(name, _lazily(name, arguments, data))


def _lazily(name: str, arguments: tuple[Expression, ...], data: Any) -> list[_Value]:
    """Return the arguments of a choice, each computed for the rows alone that need it; null for the others."""
    count = data.num_rows if isinstance(data, pa.RecordBatch) else len(data)
    open_rows = pa.repeat(pa.scalar(True), count)
    found: list[_Value] = []
    for at, argument in enumerate(arguments):
        is_test = name == "case" and at % 2 == 0 and at < len(arguments) - 1
        is_value = name == "case" and at % 2 == 1
        rows = pc.and_(open_rows, pc.fill_null(found[-1], False)) if is_value else open_rows
        value = _on_rows(argument, data, rows)
        found.append(_boolean(value) if is_test else value)
        if is_value:
            open_rows = pc.and_not(open_rows, rows)
        elif name == "coalesce":
            open_rows = pc.and_(open_rows, pc.is_null(value))
    return found


def _on_rows(expression: Expression, data: Any, rows: pa.BooleanArray) -> pa.Array:
    """Return the values of an expression for some rows; null for the others."""
    if isinstance(rows, pa.Scalar):
        rows = pa.repeat(rows, data.num_rows if isinstance(data, pa.RecordBatch) else len(data))
    if not pc.any(rows).as_py():
        return pa.nulls(len(rows), to_arrow(type_of(expression)))  # a constant would fail even for no rows
    value = _evaluate(expression, data.filter(rows))
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, pc.sum(rows).as_py() or 0)
    places = pc.subtract(pc.cumulative_sum(rows.cast(pa.int64())), 1)
    return value.take(pc.if_else(rows, places, pa.scalar(None, pa.int64())))


def _boolean(value: _Value) -> _Value:
    """Return the condition as booleans: NULL without a type is unknown."""
    return value.cast(pa.bool_()) if value.type == pa.null() else value


def _operand(expression: Expression, data: Any) -> _Value:
    """Return a value that is only tested for null: columns of any type."""
    return _find(expression, data) if isinstance(expression, Column) else _evaluate(expression, data)


def _column(column: Column, data: Any) -> pa.Array:
    found = _find(column, data)
    expected = to_arrow(column.type)
    if found.type == expected:
        return found
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    try:
        return found.cast(expected)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ComputationError(
            f"The column '{'.'.join(column.path)}' has type {found.type} in the data, expected {column.type}."
        ) from None


def _find(column: Column, data: Any) -> pa.Array:
    found = _child(data, column.path[0])
    for part in column.path[1:]:
        if found is None or not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            found = None
            break
        found = pc.struct_field(found, [found.type.get_field_index(part)])
    if found is None:
        raise InvalidPredicateError(f"The data has no column '{'.'.join(column.path)}'.", column=column.path)
    return found


def _child(data: Any, name: str) -> pa.Array | None:
    if isinstance(data, pa.StructArray):
        index = data.type.get_field_index(name)
        return None if index < 0 else pc.struct_field(data, [index])
    index = data.schema.get_field_index(name)
    return None if index < 0 else data.column(index)


def _is_in(expression: In, data: Any) -> _Value:
    operand, data_type = _evaluate(expression.operand, data), type_of(expression.operand)
    values = [value.value for value in expression.values]
    known = [value for value in values if value is not None]
    if data_type in (FLOAT, DOUBLE):
        # 0.0 and -0.0 are one value, and NaN is one; membership in Arrow goes by bits.
        known = [math.nan if math.isnan(value) else value + 0.0 for value in known]
        operand = pc.if_else(
            pc.is_nan(operand), pa.scalar(math.nan, operand.type), pc.add(operand, pa.scalar(0.0, operand.type))
        )
    found = pc.is_in(operand, value_set=pa.array(known, to_arrow(data_type)))
    if len(known) < len(values):
        found = pc.if_else(found, True, _UNKNOWN)  # it may equal the NULL
    return pc.if_else(pc.is_null(operand), _UNKNOWN, found)
