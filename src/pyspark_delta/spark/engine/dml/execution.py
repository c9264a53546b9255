"""Runs and plans statements with the settings of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.limits import reexecutions
from pyspark_delta.spark.conf.write_defaults import after_commit, with_session_defaults
from pyspark_delta.statements.contract import Statement
from pyspark_delta.statements.execution import execute
from pyspark_delta.statements.plan import ChangePlan, plan_change
from pyspark_delta.write.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AFFECTED = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def run_statement(
    spark: SparkSession, current: Callable[[], Snapshot], statement: Statement, limit: int | None = None
) -> DataFrame:
    """Execute a statement; return its counts as a frame.

    Nothing is done if the session names an application transaction that the table already holds (C180). `limit` is how
    often the statement may run again; the session sets the default. Raises as `execute`.
    """
    transaction = with_session_defaults(spark, WriteOptions()).transaction
    left = reexecutions(spark) if limit is None else limit
    done = execute(current, statement, limit=left, transaction=transaction)
    if done is None or done.draft is not None:
        after_commit(spark)
    return counts_frame(spark, (0,) * statement.counts if done is None else done.result)


def plan_statement(spark: SparkSession, current: Callable[[], Snapshot], statement: Statement) -> ChangePlan[DataFrame]:
    """Return the plan of a statement, which runs without attempts after a conflict. Raises as `plan_change`."""
    return plan_change(current, statement, lambda newest: run_statement(spark, newest, statement, 0))


def counts_frame(spark: SparkSession, result: Sequence[int]) -> DataFrame:
    """Return the counts of a statement as one row: all affected rows, and those by action if it has several."""
    # Spark has the rows of an Arrow table when it plans, so it collects them without a job.
    counted = zip(_AFFECTED, result, strict=False)
    return spark.createDataFrame(pa.table({name: pa.array([count], pa.int64()) for name, count in counted}))
