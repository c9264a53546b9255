"""Whether a condition or a value may stand in a statement: checked before anything is read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.syntax import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_delta.spark.engine.dml.target import Condition, Target

# Functions whose value for a row may be another one when it is computed again.
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


def check_condition(target: Target, condition: Condition, statement: str) -> None:
    """Raise what Spark says about a condition that is none on the columns of the table.

    Raises InvalidPredicateError for one that does not always say the same about a row.
    """
    check_deterministic(condition, statement)
    frame = target.empty().where(condition)
    _ = frame.schema
    check_analyzed(frame, condition, statement)


def check_deterministic(condition: Condition, statement: str) -> None:
    """Raise InvalidPredicateError for a function whose value changes. Columns are looked at by their names alone."""
    if isinstance(condition, str):
        try:
            found = {_name(function) for function in parse(condition).find_all(exp.Func)} & _CHANGING
        except InvalidPredicateError:
            return  # Spark says what is wrong with it
    else:
        text = str(condition).lower()
        found = {name for name in _CHANGING if f"{name}(" in text}
    if found:
        raise _not_deterministic(str(condition), statement, f"{min(found)}()")


def check_analyzed(frame: DataFrame, condition: Condition, statement: str) -> None:
    """The same for a frame that is filtered by the condition, where Spark's own answer can be had."""
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return
    analyzed = plan.queryExecution().analyzed()
    if not analyzed.expressions().isEmpty() and not analyzed.expressions().head().deterministic():
        raise _not_deterministic(str(condition), statement, "a part")


def _name(function: exp.Func) -> str:
    return (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()


def _not_deterministic(condition: str, statement: str, what: str) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"The condition '{condition}' of {statement} is not deterministic: {what} may be different each time it is "
        "computed, so it is not certain which rows are meant. Compute it once, into a column, and use that.",
        error_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        sqlstate="0AKDC",
    )
