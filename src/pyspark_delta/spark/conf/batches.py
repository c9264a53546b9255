"""The transactions of micro-batches: `streaming_batch` names them, and the writes and statements in it take them."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from types import FrameType
from typing import TYPE_CHECKING

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.spark.conf.sessions import session_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUERY_ID = "sql.streaming.queryId"
"""The local property with the id of the query, in the thread of a streaming query and in its tasks."""


class BatchTransactions:
    """The transactions of one micro-batch, one for each write or statement.

    The first on a table has the id of the query, as in a stream that Delta writes itself. Those that follow on the same
    table need names of their own, or they would count as its repetition. A repeated batch gives the same names, if it
    runs the same statements on a table in the same order. One that failed and is tried again keeps its name: a repeated
    batch, in which it may succeed at once, would do it twice.
    """

    def __init__(self, query_id: str, number: int) -> None:
        self.query_id, self.number = query_id, number
        self._taken: Counter[str] = Counter()
        self._failed: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
        self._lock = Lock()

    @contextmanager
    def taking(self, location: str, change: object) -> Iterator[SetTransaction]:
        """Yield the transaction of the next write or statement on the table at a location, while the block makes it.

        If the block raises, the next one with an equal `change` is another attempt, with the same transaction.
        """
        with self._lock:
            if self._failed[location, change]:
                nth = self._failed[location, change].pop(0)
            else:
                self._taken[location] += 1
                nth = self._taken[location]
        try:
            yield SetTransaction(app_id=self.query_id if nth == 1 else f"{self.query_id}/{nth}", version=self.number)
        except BaseException:
            with self._lock:
                self._failed[location, change].append(nth)
            raise


_BETWEEN = {"contextlib", "py4j", "pyspark", "pyspark_delta", "threading"}
_here: ContextVar[BatchTransactions | None] = ContextVar("_here", default=None)
_of_sessions: dict[str, BatchTransactions] = {}  # by the session of the batch, for threads that a function starts


@contextmanager
def naming(spark: SparkSession, batch: BatchTransactions) -> Iterator[None]:
    """Let a batch name the transactions of this thread, and of the batch's session, while the block runs."""
    key = session_key(spark)
    token, before = _here.set(batch), _of_sessions.get(key)
    _of_sessions[key] = batch
    try:
        yield
    finally:
        _here.reset(token)
        if before is None:
            del _of_sessions[key]
        else:
            _of_sessions[key] = before


def is_in_batch(spark: SparkSession) -> bool:
    """Return True if a batch names the transactions of the caller."""
    return _batch(spark) is not None


@contextmanager
def batch_transaction(spark: SparkSession, location: str, change: object) -> Iterator[SetTransaction | None]:
    """Yield the transaction of a write or statement on a table, as `taking`; None outside of `streaming_batch`."""
    batch = _batch(spark)
    if batch is None:
        yield None
        return
    with batch.taking(location, change) as transaction:
        yield transaction


def call_site() -> tuple[str, int] | None:
    """Return the file and the line of the caller's code that is running: they tell blocks of code apart.

    None on a thread of the JVM, which has no such code.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _batch(spark: SparkSession) -> BatchTransactions | None:
    here = _here.get()
    if here is not None or not _of_sessions:
        return here
    return _of_sessions.get(session_key(spark))
