"""The threads that decode and parse. Their work items never wait for each other."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_IN_FLIGHT = 16  # items waiting or running; bounds the memory


def map_ordered(function: Callable[[T], R], items: Iterable[T], in_flight: int = _IN_FLIGHT) -> Iterator[R]:
    """Yield the results of `function` in the order of the items; items are drawn as results are consumed.

    At most `in_flight` items are ahead of the current result. When the iterator is closed, pending items are cancelled.
    """
    return _results(function, iter(items), in_flight, deque())


def map_ordered_eagerly(function: Callable[[T], R], items: Iterable[T], in_flight: int) -> Iterator[R]:
    """Return the iterator of `map_ordered`, with the first `in_flight` items already submitted by this call.

    The work then overlaps with the work of the caller. Use it only if the results will be consumed.
    """
    rest = iter(items)
    first = deque(_pool(os.getpid()).submit(function, item) for item in islice(rest, in_flight))
    return _results(function, rest, in_flight, first)


def _results(function: Callable[[T], R], items: Iterator[T], in_flight: int, waiting: deque[Future[R]]) -> Iterator[R]:
    try:
        for item in items:
            waiting.append(_pool(os.getpid()).submit(function, item))
            if len(waiting) > in_flight:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def worker_count() -> int:
    """Return the number of threads."""
    return max(1, min(8, os.cpu_count() or 1))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of one process: a fork does not copy the threads of its parent."""
    return ThreadPoolExecutor(worker_count(), thread_name_prefix="delta-log")
