"""Runs a statement: stages it on the newest version, commits it, and stages it again after a conflict.

A statement that loses to a concurrent commit depends on rows that have changed. It runs again on the version that won,
a limited number of times; after that the conflict is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.errors import CommitConflictError, ConcurrentTransactionError, DeltaError
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.logs import logger, timed
from pyspark_delta.progress import operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.contract import Staged, Statement
from pyspark_delta.transaction.attempts import commit_draft, never_lands
from pyspark_delta.transaction.base import state_of
from pyspark_delta.write.written import discard

_log = logger(__name__)

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
    application transaction (C180). With such a transaction, a statement that changes no row makes a commit too. Raises
    what staging raises, and as `commit_draft` after that many attempts; the files of an attempt whose commit cannot
    succeed any more are deleted.
    """
    start = time.perf_counter()
    with operation(), one_moment():
        staged = _execute(current, statement, limit, transaction)
    outcome = "was done before" if staged is None else "changed no row" if staged.draft is None else "is done"
    _log.info("%s %s, %.3f s", statement.name, outcome, time.perf_counter() - start)
    return staged


def _execute(
    current: Callable[[], Snapshot], statement: Statement, left: int, transaction: SetTransaction | None
) -> Staged | None:
    while True:
        snapshot = current()
        if snapshot.holds_transaction(transaction):
            return None
        with timed(_log, "Staging %s on version %d of %s", statement.name, snapshot.version, snapshot.location):
            staged = statement.stage(snapshot)
        # A statement that changes no row records its transaction too: when it is repeated, it might find rows of a
        # later statement of its application.
        draft = staged.draft or (staged.record if transaction is not None else None)
        if draft is None:
            return staged
        try:
            reads = draft.reads.union(staged.source_reads)
            transactions = draft.transactions if transaction is None else (transaction,)
            draft = replace(draft, reads=reads, transactions=transactions)
            state = commit_draft(draft, state_of(snapshot))
        except DeltaError as error:
            if never_lands(error, state_of(snapshot)):
                discard(snapshot, staged.written)
            is_retried = isinstance(error, CommitConflictError) and not isinstance(error, ConcurrentTransactionError)
            if left <= 0 or not is_retried:
                raise
            _log.debug("%s runs again after a conflict: %s", statement.name, error.message)
            left -= 1
            continue
        return replace(staged, draft=draft, version=state.version, configuration=state.configuration)
