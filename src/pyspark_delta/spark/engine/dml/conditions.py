"""Checks conditions with Spark's analyzer before anything is read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.statements.conditions import check_deterministic, not_deterministic
from pyspark_delta.statements.target import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_condition(target: SparkTarget, condition: Condition, statement: str) -> None:
    """Check that a condition is valid on the columns of the table, and deterministic.

    Raises Spark's own error for an invalid condition, and InvalidPredicateError for one that is not deterministic.
    """
    check_deterministic(condition, statement)
    frame = target.empty().where(condition)
    _ = frame.schema
    check_analyzed(frame, condition, statement)


def check_analyzed(frame: DataFrame, condition: Condition, statement: str) -> None:
    """Raise InvalidPredicateError if Spark's analyzer finds that a condition is not deterministic.

    `frame` is filtered by the condition. Only a classic session has the analyzed plan: on Spark Connect, nothing is
    checked.
    """
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return
    analyzed = plan.queryExecution().analyzed()
    if not analyzed.expressions().isEmpty() and not analyzed.expressions().head().deterministic():
        raise not_deterministic(str(condition), statement, "a part")
