"""Checks conditions with Spark's analyzer before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
from pyspark.sql.utils import is_remote

from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.frame_reads import frame_reads
from pyspark_delta.statements.conditions import check_deterministic, not_deterministic
from pyspark_delta.statements.target import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_condition(target: SparkTarget, condition: Condition, statement: str) -> ReadSet:
    """Check that a condition is valid on the columns of the table, and deterministic.

    Return what its subqueries read from the table itself. Raises as `subquery_reads`, Spark's own error for an invalid
    condition, and InvalidPredicateError for one that is not deterministic.
    """
    check_deterministic(condition, statement)
    frame = target.empty().where(condition)
    _ = frame.schema
    check_analyzed(frame, condition, statement)
    return subquery_reads(target, frame, statement)


def value_reads(target: SparkTarget, values: Iterable[Condition], statement: str) -> ReadSet:
    """Return what subqueries in new values read from the table itself. Raises as `subquery_reads`."""
    unclear = [value for value in values if not isinstance(value, str) or "select" in value.lower()]
    if not unclear or is_remote():
        return ReadSet()
    columns = [sf.expr(value) if isinstance(value, str) else value for value in unclear]
    return subquery_reads(target, target.empty().select(*columns), statement)


def subquery_reads(target: SparkTarget, frame: DataFrame, statement: str) -> ReadSet:
    """Return what subqueries in expressions on a frame read from the table itself. On Spark Connect, nothing is found.

    Raises ConcurrentAppendError and ConcurrentDeleteReadError as `frame_reads`.
    """
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None or plan.queryExecution().analyzed().subqueriesAll().isEmpty():
        return ReadSet()
    return frame_reads(target.spark, frame, target.snapshot, statement, IsolationLevel.SERIALIZABLE)


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
