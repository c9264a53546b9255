"""The threads that decode and parse: what runs there never waits for anything else that runs there."""

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

_IN_FLIGHT = 16  # items that are waiting or being worked on; bounds the memory


def map_ordered(function: Callable[[T], R], items: Iterable[T], in_flight: int = _IN_FLIGHT) -> Iterator[R]:
    """The results of `function` in the order of the items, which are drawn as fast as results are.

    At most `in_flight` items are ahead of the result in hand. What has not begun when nobody asks for more, does not.
    """
    return _results(function, iter(items), in_flight, deque())


def map_ordered_eagerly(function: Callable[[T], R], items: Iterable[T], in_flight: int) -> Iterator[R]:
    """As `map_ordered`, but the first `in_flight` items are handed out by this call: the caller has something else to do.

    For results that are surely asked for.
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
    """How many threads there are."""
    return max(1, min(8, os.cpu_count() or 1))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The pool of one process: after a fork, the threads of the parent are not there."""
    return ThreadPoolExecutor(worker_count(), thread_name_prefix="delta-log")
