"""Checks that the conditions of a statement are deterministic."""

from __future__ import annotations

from sqlglot import exp

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.syntax import parse
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
            found = {_name(function) for function in parse(condition).find_all(exp.Func)} & _CHANGING
        except InvalidPredicateError:
            return  # Spark reports what is wrong with it
    else:
        text = str(condition).lower()
        found = {name for name in _CHANGING if f"{name}(" in text}
    if found:
        raise not_deterministic(str(condition), statement, f"{min(found)}()")


def _name(function: exp.Func) -> str:
    return (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()


def not_deterministic(condition: str, statement: str, what: str) -> InvalidPredicateError:
    """Return the error for a condition that is not deterministic; `what` is the part that is not."""
    return InvalidPredicateError(
        f"The condition '{condition}' of {statement} is not deterministic: {what} may be different each time it is "
        "computed, so it is not certain which rows are meant. Compute it once, into a column, and use that.",
        error_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        sqlstate="0AKDC",
    )
