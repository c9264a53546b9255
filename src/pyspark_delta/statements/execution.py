"""Runs a statement: stages it on the newest version, commits it, and stages it again after a conflict.

A statement that loses to a concurrent commit depends on rows that have changed. It runs again on the version that won,
a limited number of times; after that the conflict is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.errors import CommitConflictError, ConcurrentTransactionError
from pyspark_delta.progress import operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.contract import Staged, Statement
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.write.written import discard

REEXECUTIONS = 3
"""How often a statement runs again after a conflict, unless the caller says otherwise."""


def execute(
    current: Callable[[], Snapshot],
    statement: Statement,
    *,
    limit: int = REEXECUTIONS,
    transaction: SetTransaction | None = None,
) -> Staged | None:
    """Stage a statement on the newest version and commit it; return what was staged for the successful commit.

    `limit` is how often the statement may run again. Return None, and do nothing, if the table already holds the
    application transaction (C180). Raises what staging raises, and as `commit_draft` after that many attempts.
    """
    with operation():
        return _execute(current, statement, limit, transaction)


def _execute(
    current: Callable[[], Snapshot], statement: Statement, left: int, transaction: SetTransaction | None
) -> Staged | None:
    while True:
        snapshot = current()
        if snapshot.holds_transaction(transaction):
            return None
        staged = statement.stage(snapshot)
        if staged.draft is None:
            return staged
        try:
            reads = staged.draft.reads.union(staged.source_reads)
            state = commit_draft(replace(staged.draft, reads=reads), state_of(snapshot))
        except CommitConflictError as error:
            discard(snapshot, staged.written)
            if left <= 0 or isinstance(error, ConcurrentTransactionError):
                raise
            left -= 1
            continue
        return replace(staged, version=state.version)
