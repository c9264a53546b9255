"""A run: bins are rewritten on threads, and committed in batches while others are rewritten.

Each commit is complete by itself. After an error or a cancellation, what was not committed is deleted, and the next run
plans what is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import TypeAlias

from pyspark_delta import progress
from pyspark_delta.engines.tasks import TaskRunner
from pyspark_delta.errors import DeltaError, UnsupportedDataFileError
from pyspark_delta.logs import logger
from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.rewriting.bins import Bin, Bins
from pyspark_delta.maintenance.rewriting.commits import CommittedBins, CommitWords, commit_bins, delete_bins
from pyspark_delta.maintenance.rewriting.rewrite import BinWriter, Rewriting, rewrite_in_order
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.maintenance.rewriting.tasks import TaskWriter, rewrite_in_tasks
from pyspark_delta.protocol.state import TableState

_ONE_COMMIT = 1 << 30  # bytes; a smaller run makes one commit
_SECONDS = 30.0  # of work in a commit
_SHARE = 0.1  # of a run in a commit
_BINS_A_CORE = 4  # of a job at least, so that cores seldom wait for the end of a job
PHASE = "Rewrite files"
_log = logger(__name__)
_Rewrite: TypeAlias = Callable[[list[Bin]], list[RewrittenBin]]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is done: its budget, how bins are written, and the bytes of each commit (by default, by the run).

    With `tasks`, bins are rewritten outside of this process by `task_writer`, many at once; the writer is not called.
    `fallback` writes bins with a file that Arrow cannot read. `for_threads` is called in the thread of the run with the
    function that other threads call, and returns what they call in its place.
    """

    budget: Budget = UNLIMITED
    writer: BinWriter = rewrite_in_order
    batch_size: int | None = None
    tasks: TaskRunner | None = None
    task_writer: TaskWriter = rewrite_in_tasks
    fallback: BinWriter | None = None
    for_threads: Callable[[_Rewrite], _Rewrite] = lambda rewrite: rewrite

    def commits_of(self, size: int, bins: int) -> int:
        """Return about how many commits a run of so many bytes makes."""
        if self.batch_size is not None:
            expected = -(-size // self.batch_size)
        else:
            expected = 1 if size < _ONE_COMMIT else round(1 / _SHARE)
        limit = self.budget.commits
        return max(1, min(expected, bins, expected if limit is None else limit))


@dataclass(frozen=True)
class Run:
    """The bins of one run, and how they are read, written and committed; `base` is the state that is read.

    `ready` are bins that need no work, such as files without rows.
    """

    rewriting: Rewriting = field(repr=False)
    bins: Bins
    base: TableState = field(repr=False)
    words: CommitWords = field(repr=False)
    ready: tuple[RewrittenBin, ...] = ()
    options: RunOptions = RunOptions()

    def execute(self) -> list[CommittedBins]:
        """Rewrite and commit the bins. Raises as `commit_bins`, and the errors of the writer of bins.

        If a bin cannot be rewritten, such as for a damaged file, the finished ones are committed before the error.
        """
        work = _Work(self)
        try:
            return work.run()
        except _BinError as failure:
            work.commit_finished()
            raise failure.error from None
        except BaseException:
            work.abandon()
            raise


class _Cancelled(Exception):
    """The run has ended."""


class _BinError(Exception):
    """A bin could not be rewritten."""

    def __init__(self, error: DeltaError) -> None:
        super().__init__(error)
        self.error = error


class _Work:
    """The state of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stop = threading.Event()
        self._tasks = run.options.tasks
        self._rewriting = run.rewriting.for_bins(1 if self._tasks is not None else len(run.bins))
        self._begun = time.monotonic()
        self._pending: set[Future[list[RewrittenBin]]] = set()
        self._waiting = list(run.ready)  # rewritten, and not committed
        self._waiting_since = self._begun
        self._done: list[CommittedBins] = []
        self._total = int(run.bins.read.sum())

    def run(self) -> list[CommittedBins]:
        """Do the work in this thread and others; commits are made in this thread."""
        threads = self._rewriting.threads
        step = progress.begin(PHASE, int((self._run.bins.ends - self._run.bins.starts).sum()), "files")
        groups = self._groups()
        rewrite = self._run.options.for_threads(self._rewrite)
        with ThreadPoolExecutor(threads, thread_name_prefix="pyspark-delta-rewrite") as pool:
            try:
                while True:
                    for group in islice(groups, threads + 1 - len(self._pending)):
                        self._pending.add(pool.submit(rewrite, group))
                    if not self._pending:
                        break
                    for rewritten in self._finished():
                        step.add(rewritten.source.files.num_rows)
                    if self._is_due():
                        self._commit()
            except BaseException:
                self._stop.set()
                raise
        self._commit()
        return self._done

    def commit_finished(self) -> None:
        """Stop the threads, and commit what is rewritten."""
        self._collect()
        self._commit()

    def abandon(self) -> None:
        """Stop the threads, and delete what was not committed."""
        self._collect()
        delete_bins(self._run.base, self._waiting)

    def _collect(self) -> None:
        self._stop.set()
        done, self._pending = wait(self._pending).done, set()
        self._waiting += chain.from_iterable(future.result() for future in done if not future.exception())

    def _groups(self) -> Iterator[list[Bin]]:
        """Yield the bins that are begun together, until the time is over: one for a thread, many for a job."""
        limit, bins, size = self._run.options.budget.seconds, iter(self._run.bins), 1
        if self._tasks is not None:
            size = max(_BINS_A_CORE * self._tasks.cores(), round(len(self._run.bins) * _SHARE))
        while group := list(islice(bins, size)):
            if limit is not None and time.monotonic() - self._begun >= limit:
                return
            yield group

    def _rewrite(self, group: list[Bin]) -> list[RewrittenBin]:
        fallback = self._run.options.fallback
        try:
            return self._written(group)
        except UnsupportedDataFileError as error:
            if fallback is None:
                raise
            if len(group) > 1:
                return [rewritten for one in group for rewritten in self._rewrite([one])]
            _log.info("Arrow cannot rewrite %d files: %s", group[0].files.num_rows, error.message)
        return [fallback(self._rewriting, group[0], self._check)]

    def _written(self, group: list[Bin]) -> list[RewrittenBin]:
        if self._tasks is not None:
            self._check()
            return self._run.options.task_writer(self._tasks, self._rewriting, group)
        return [self._run.options.writer(self._rewriting, one, self._check) for one in group]

    def _check(self) -> None:
        if self._stop.is_set():
            raise _Cancelled

    def _finished(self) -> list[RewrittenBin]:
        """Wait for bins to be rewritten, and return them."""
        done, self._pending = wait(self._pending, return_when=FIRST_COMPLETED)
        failed = [future for future in done if future.exception() is not None]
        found = [one for future in done if future.exception() is None for one in future.result()]
        self._waiting += found
        for future in failed:
            error = future.exception()
            assert error is not None
            raise _BinError(error) if isinstance(error, DeltaError) else error
        return found

    def _is_due(self) -> bool:
        """True if the bins that wait are enough for a commit."""
        options = self._run.options
        if not self._waiting or self._is_last_commit():
            return False
        size = sum(map(self._size, self._waiting))
        if options.batch_size is not None:
            return size >= options.batch_size
        if self._total < _ONE_COMMIT:
            return False
        return size >= self._total * _SHARE or time.monotonic() - self._waiting_since >= _SECONDS

    def _is_last_commit(self) -> bool:
        limit = self._run.options.budget.commits
        return limit is not None and len(self._done) + 1 >= limit

    def _size(self, one: RewrittenBin) -> int:
        return int(self._run.bins.read[one.source.number]) if one.source.number >= 0 else 0

    def _commit(self) -> None:
        """Commit the bins that wait; those that were finished together in as many commits as their bytes need."""
        with progress.quietly():
            while self._waiting:
                count = self._next_batch()
                bins, self._waiting = self._waiting[:count], self._waiting[count:]
                self._done.append(commit_bins(self._run.base, bins, self._run.words))
        self._waiting_since = time.monotonic()

    def _next_batch(self) -> int:
        """Return how many of the bins that wait are in the next commit."""
        limit = self._run.options.batch_size
        if limit is not None and not self._is_last_commit():
            for count, size in enumerate(accumulate(map(self._size, self._waiting)), 1):
                if size >= limit:
                    return count
        return len(self._waiting)
