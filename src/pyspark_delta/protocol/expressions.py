"""Checks of SQL texts that a table keeps: they can be parsed, and name columns that it has."""

from __future__ import annotations

import json

from pyspark_delta.errors import InvalidOperationError, InvalidPredicateError
from pyspark_delta.expressions.columns import find_fields, suggestion
from pyspark_delta.expressions.references import referenced_columns
from pyspark_delta.schema.types import StructType

INVARIANT = "delta.invariants"


def invariant_condition(text: object) -> str:
    """The SQL of an invariant of a column: within JSON, or as it stands in tables of early writers (C380)."""
    if not isinstance(text, str):
        return ""
    try:
        condition = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        return text
    return str(condition)


def check_expression(text: str, schema: StructType, what: str) -> tuple[tuple[str, ...], ...]:
    """The columns that an expression names, all of which the schema has; `what` begins the messages.

    Raises InvalidPredicateError for a syntax error, InvalidOperationError for a column that is not there.
    """
    try:
        paths = referenced_columns(text)
    except InvalidPredicateError as error:
        raise InvalidPredicateError(f"{what} cannot be parsed. {error.message}") from None
    for path in paths:
        # Below a column, a name may be a key of a map: only the column itself is sure.
        if find_fields(path[:1], schema) is None:
            raise InvalidOperationError(
                f"{what} names the column '{'.'.join(path)}', which the table does not have. "
                f"{suggestion(path, schema)}",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                column=".".join(path),
            )
    return paths
