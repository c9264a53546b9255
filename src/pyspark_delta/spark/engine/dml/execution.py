"""Runs a statement: stages it on the newest version, commits it, and stages it again after a conflict.

A statement that loses to a concurrent commit depends on rows that have changed. It runs again on the version that won,
a limited number of times; after that the conflict is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.errors import CommitConflictError, ConcurrentTransactionError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.reexecution import reexecutions
from pyspark_delta.spark.conf.write_defaults import after_commit, is_done, with_session_defaults
from pyspark_delta.spark.engine.dml.statement import Staged, Statement
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.written import discard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AFFECTED = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def execute(
    spark: SparkSession, current: Callable[[], Snapshot], statement: Statement, limit: int | None = None
) -> Staged:
    """Stage a statement on the newest version and commit it; return what was staged for the successful commit.

    Nothing is done if the session names an application transaction that the table already holds (C180).

    `limit` is how often the statement may run again; the session sets the default. Raises what staging raises, and as
    `commit_draft` after that many attempts.
    """
    left = reexecutions(spark) if limit is None else limit
    while True:
        snapshot = current()
        if is_done(snapshot, with_session_defaults(spark, WriteOptions()).transaction):
            after_commit(spark)
            return Staged(None, (0,) * statement.counts)
        staged = statement.stage(spark, snapshot)
        if staged.draft is None:
            return staged
        try:
            reads = staged.draft.reads.union(staged.source_reads)
            commit_draft(replace(staged.draft, reads=reads), state_of(snapshot))
        except CommitConflictError as error:
            discard(snapshot, staged.written)
            if left <= 0 or isinstance(error, ConcurrentTransactionError):
                raise
            left -= 1
            continue
        after_commit(spark)
        return staged


def counts_frame(spark: SparkSession, result: Sequence[int]) -> DataFrame:
    """Return the counts of a statement as one row: all affected rows, and those by action if it has several."""
    # Spark has the rows of an Arrow table when it plans, so it collects them without a job.
    counted = zip(_AFFECTED, result, strict=False)
    return spark.createDataFrame(pa.table({name: pa.array([count], pa.int64()) for name, count in counted}))


def milliseconds_since(start: float) -> int:
    """Return the milliseconds since a value of `time.monotonic`."""
    return int((time.monotonic() - start) * 1000)
