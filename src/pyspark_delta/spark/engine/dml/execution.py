"""Carrying out a statement: staged on the newest version, committed, staged anew when another commit was in the way.

A statement that loses to a concurrent commit depends on rows that are different now. It is run again on the version
that won, a few times, and only then is the conflict an error.
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
    """Stage a statement on the newest version and commit it; what was staged for the commit that landed.

    Nothing is done where the session names a transaction that the table holds already (C180).

    `limit` is how often it may run again, by default as the session says. Raises what staging raises, and as
    `commit_draft` once the statement was run again that often.
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
    """The counts of a statement as one row: of all affected rows, and by action where it has several (MERGE)."""
    # Spark knows the rows of an Arrow table when it plans, so that they are collected without a job.
    counted = zip(_AFFECTED, result, strict=False)
    return spark.createDataFrame(pa.table({name: pa.array([count], pa.int64()) for name, count in counted}))


def milliseconds_since(start: float) -> int:
    """How long ago a moment of `time.monotonic` was."""
    return int((time.monotonic() - start) * 1000)
