"""`VALUES` of INSERT as Arrow data: each value as the column of the table stores it, computed with Spark's results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError, InvalidPredicateError
from pyspark_delta.expressions.evaluate import compute_constant
from pyspark_delta.expressions.exact import exact_value, inexact_reason
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.values import SqlText
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import TIMESTAMP, ArrayType, DataType, MapType, StructField, StructType

_NO_COLUMNS = StructType(())
_UTC = "UTC"


def rows_of_values(query: SqlText) -> list[list[str]] | None:
    """Return the rows of `VALUES (a, b), ...` as texts; None for another query."""
    reader = Reader(query.text)
    if not reader.accept("VALUES"):
        return None
    rows = [_row(reader)]
    while reader.accept(","):
        rows.append(_row(reader))
    return rows if reader.ended else None


def _row(reader: Reader) -> list[str]:
    if not reader.accept("("):
        return [_expression(reader)]
    found = [_expression(reader)]
    while reader.accept(","):
        found.append(_expression(reader))
    reader.expect(")")
    return found


def _expression(reader: Reader) -> str:
    return reader.cut("a value", lambda at: at.at(",")).text


def columns_of_values(rows: Sequence[Sequence[str]], fields: Sequence[StructField]) -> pa.Table:
    """Return the rows as columns; a column whose values are all DEFAULT is left out.

    Raises InvalidOperationError for rows of another length, and InvalidPredicateError for a value that cannot be
    computed or does not fit the type of its column.
    """
    for row in rows:
        check_arity(len(row), [field.name for field in fields])
    columns = {}
    for place, field in enumerate(fields):
        texts = [row[place] for row in rows]
        defaults = [text.upper() == "DEFAULT" for text in texts]
        if all(defaults):
            continue
        if any(defaults):
            raise InvalidOperationError(
                f"The column '{field.name}' has DEFAULT in some rows only. Insert these rows with statements of their "
                "own.",
                error_class="DELTA_UNSUPPORTED_DEFAULT_VALUE",
            )
        columns[field.name] = pa.concat_arrays([constant(text, field) for text in texts])
    if not columns:
        raise InvalidOperationError("Every value is DEFAULT. Give the value of at least one column.")
    return pa.table(columns)


def check_arity(given: int, names: Sequence[str]) -> None:
    """Raise InvalidOperationError unless there is one value for each column."""
    if given != len(names):
        raise InvalidOperationError(
            f"{given} values are given for {len(names)} columns: {', '.join(names)}. Give a value for each, or list "
            "the columns that you give.",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            sqlstate="42802",
        )


def constant(text: str, field: StructField) -> pa.Array:
    """Return one value as a column stores it. Raises InvalidPredicateError."""
    if isinstance(field.type, ArrayType | MapType | StructType):
        nested = _nested(text, field)
        if nested is not None:
            return nested
    expression = exact_value(text, field.type, _NO_COLUMNS, _no_column, _UTC)
    if expression is None:
        reason = inexact_reason(text, _NO_COLUMNS, _no_column, _UTC, field.type)
        raise InvalidPredicateError(
            f"The value {text} cannot be stored in the column '{field.name}' of type {field.type}"
            f"{f': {reason}' if reason else ''}. Give a literal of that type, or a cast to it."
        )
    return compute_constant(expression).cast(to_arrow(field.type, all_nullable=True))


def computed_time(text: str) -> datetime:
    """Return the point in time that an expression of constants has. Raises InvalidOperationError."""
    expression = exact_value(text, TIMESTAMP, _NO_COLUMNS, _no_column, _UTC)
    if expression is None:
        reason = inexact_reason(text, _NO_COLUMNS, _no_column, _UTC, TIMESTAMP)
        raise InvalidOperationError(
            f"The time {text} is not computed without Spark: {reason}. Give a literal, such as TIMESTAMP AS OF "
            "'2026-01-31', or current_timestamp() plus or minus an interval.",
            error_class="DELTA_TIMESTAMP_INVALID",
        )
    try:
        found = compute_constant(expression)[0].as_py()
    except (ArithmeticError, ValueError):  # Python has no value for it
        found = None
    if found is None:
        raise InvalidOperationError(
            f"The time {text} is NULL, or not in the years 1 to 9999. Give a time of the table's history.",
            error_class="DELTA_TIMESTAMP_INVALID",
        )
    return cast(datetime, found)


def _nested(text: str, field: StructField) -> pa.Array | None:
    """Return the value of `array(...)`, `map(key, value, ...)`, `struct(...)` or `named_struct(name, value, ...)`.

    None for any other text, or if there is another number of values than the type has.
    """
    reader = Reader(text)
    name = reader.name().lower() if reader.at_name() else ""
    if not reader.accept("("):
        return None
    values = [] if reader.at(")") else [_expression(reader)]
    while reader.accept(","):
        values.append(_expression(reader))
    if not reader.accept(")") or not reader.ended:
        return None
    arrow_type = to_arrow(field.type, all_nullable=True)

    def inner(value: str, data_type: DataType, part: str) -> Any:
        return constant(value, StructField(f"{field.name}.{part}", data_type))[0].as_py()

    match field.type:
        case ArrayType(element) if name == "array":
            found: Any = [inner(value, element, "element") for value in values]
        case MapType(key, value_type) if name == "map" and len(values) % 2 == 0:
            keys = [inner(value, key, "key") for value in values[::2]]
            found = list(zip(keys, [inner(value, value_type, "value") for value in values[1::2]], strict=True))
        case StructType(members) if name in ("struct", "named_struct"):
            given = values[1::2] if name == "named_struct" else values
            if len(given) != len(members):
                return None
            pairs = zip(members, given, strict=True)
            found = {member.name: inner(value, member.type, member.name) for member, value in pairs}
        case _:
            return None
    return pa.array([found], arrow_type)


def _no_column(parts: Sequence[str]) -> None:
    return None
