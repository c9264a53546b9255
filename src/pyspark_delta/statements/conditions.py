"""Checks of the conditions of a statement: they are deterministic, and name columns of the table."""

from __future__ import annotations

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.name_resolution import find_fields, suggestion
from pyspark_delta.expressions.operators import function_name
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.types import StructType
from pyspark_delta.statements.target import Condition

# Functions whose value for a row may change when it is computed again.
_CHANGING = {
    "rand",
    "random",
    "randn",
    "uuid",
    "shuffle",
    "monotonically_increasing_id",
    "spark_partition_id",
    "randstr",
    "uniform",
}


def check_deterministic(condition: Condition, statement: str) -> None:
    """Raise InvalidPredicateError for a function that is not deterministic. Columns are checked by name alone."""
    if isinstance(condition, str):
        try:
            found = {function_name(function) for function in parse(condition).find_all(exp.Func)} & _CHANGING
        except InvalidPredicateError:
            return  # Spark reports what is wrong with it
    else:
        text = str(condition).lower()
        found = {name for name in _CHANGING if f"{name}(" in text}
    if found:
        raise not_deterministic(str(condition), statement, f"{min(found)}()")


def check_columns(condition: str, schema: StructType, alias: str | None) -> None:
    """Raise InvalidPredicateError for a condition in SQL that cannot be parsed, or that names an unknown column.

    `alias` is the name of the table.
    """
    for column in parse(condition).find_all(exp.Column):
        parts = [part.name for part in column.parts]
        is_qualified = alias is not None and len(parts) > 1 and parts[0].casefold() == alias.casefold()
        if find_fields(parts, schema) is None and not (is_qualified and find_fields(parts[1:], schema) is not None):
            raise InvalidPredicateError(
                f"There is no column '{'.'.join(parts)}' in the table. {suggestion(parts, schema)}",
                column=".".join(parts),
            )


def not_deterministic(condition: str, statement: str, what: str) -> InvalidPredicateError:
    """Return the error for a condition that is not deterministic; `what` is the part that is not."""
    return InvalidPredicateError(
        f"The condition '{condition}' of {statement} is not deterministic: {what} can differ each time it is computed, "
        "so the rows that match are not certain. Compute it once, into a column, and use that.",
        error_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        sqlstate="0AKDC",
    )
