"""`VALUES` of INSERT as Arrow data: each value as the column of the table stores it, computed with Spark's results."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError, InvalidPredicateError
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.exact import exact_value, inexact_reason
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.values import SqlText
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import StructField, StructType

_NO_COLUMNS = StructType(())
_ONE_ROW = pa.record_batch([pa.nulls(1)], names=["_"])
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
    expression = exact_value(text, field.type, _NO_COLUMNS, _no_column, _UTC)
    if expression is None:
        reason = inexact_reason(text, _NO_COLUMNS, _no_column, _UTC, field.type)
        raise InvalidPredicateError(
            f"The value {text} cannot be stored in the column '{field.name}' of type {field.type}"
            f"{f': {reason}' if reason else ''}. Give a literal of that type, or a cast to it."
        )
    return compute(expression, _ONE_ROW).cast(to_arrow(field.type, all_nullable=True))


def _no_column(parts: Sequence[str]) -> None:
    return None
