"""Checks conditions with Spark's analyzer before anything is read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.statements.conditions import check_deterministic, not_deterministic
from pyspark_delta.statements.target import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_condition(target: SparkTarget, condition: Condition, statement: str) -> None:
    """Raise Spark's own error about a condition that is not valid on the columns of the table.

    Raises InvalidPredicateError for a condition that is not deterministic.
    """
    check_deterministic(condition, statement)
    frame = target.empty().where(condition)
    _ = frame.schema
    check_analyzed(frame, condition, statement)


def check_analyzed(frame: DataFrame, condition: Condition, statement: str) -> None:
    """Check a frame that is filtered by the condition in the same way, if Spark's own answer is available."""
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return
    analyzed = plan.queryExecution().analyzed()
    if not analyzed.expressions().isEmpty() and not analyzed.expressions().head().deterministic():
        raise not_deterministic(str(condition), statement, "a part")
