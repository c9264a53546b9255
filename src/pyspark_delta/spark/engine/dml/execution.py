"""Runs and plans statements with the settings of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.active import active
from pyspark_delta.spark.conf.arrow import frame_of_changes, frame_of_counts
from pyspark_delta.spark.conf.batches import batch_transaction, is_in_batch
from pyspark_delta.spark.conf.limits import reexecutions
from pyspark_delta.spark.conf.write_defaults import after_commit, resets_version, with_session_defaults
from pyspark_delta.spark.engine.dml.hidden_columns import hidden_columns_explained
from pyspark_delta.spark.engine.write.compaction import auto_compaction, compact_commit
from pyspark_delta.statements.contract import Statement
from pyspark_delta.statements.execution import execute
from pyspark_delta.statements.plan import ChangePlan, plan_change
from pyspark_delta.write.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AFFECTED = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def run_statement(spark: SparkSession, current: Callable[[], Snapshot], statement: Statement) -> DataFrame:
    """Run a statement, and the auto compaction that follows its commit; return its counts as a frame.

    Do nothing, and return counts of 0, if the table already holds the application transaction that the session names
    (C180). Raises as `execute`.
    """
    return _run(spark, current, current, statement, reexecutions(spark))


def _run(
    spark: SparkSession,
    current: Callable[[], Snapshot],
    latest: Callable[[], Snapshot],
    statement: Statement,
    limit: int,
) -> DataFrame:
    """Run a statement on the version that `current` returns; `latest` returns the one after the commit.

    `limit` is how often the statement may run again after a conflict.
    """
    compaction, resets = auto_compaction(spark), resets_version(spark)
    place = (current().location, _text(statement)) if is_in_batch(spark) else ("", "")
    with active(spark), hidden_columns_explained(), batch_transaction(spark, *place) as of_batch:
        transaction = with_session_defaults(spark, WriteOptions(transaction=of_batch)).transaction
        done = execute(current, statement, limit=limit, transaction=transaction)
    if done is None or done.draft is not None:
        after_commit(spark, resets=resets)
    if done is None or done.version is None:
        return counts_frame(spark, (0,) * statement.counts if done is None else done.result)
    compact_commit(spark, compaction, latest, done.version, done.configuration)
    return frame_of_changes(spark, _named(done.result))


def plan_statement(spark: SparkSession, current: Callable[[], Snapshot], statement: Statement) -> ChangePlan[DataFrame]:
    """Return the plan of a statement; its `execute` does not try again after a conflict. Raises as `plan_change`."""
    with active(spark), hidden_columns_explained():
        return plan_change(current, statement, lambda newest: _run(spark, newest, current, statement, 0))


def counts_frame(spark: SparkSession, result: Sequence[int]) -> DataFrame:
    """Return one row with `num_affected_rows`, followed by the counts by action if a statement has several."""
    return frame_of_counts(spark, _named(result))


def _text(statement: Statement) -> str:
    """Return a statement without its engines and its source, which differ between attempts at it."""
    return f"{statement.name} {[value for name, value in vars(statement).items() if name != 'open']}"


def _named(result: Sequence[int]) -> dict[str, int | None]:
    return dict(zip(_AFFECTED, result, strict=False))
