"""The threads that decode and parse: what runs there never waits for anything else that runs there."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_IN_FLIGHT = 16  # items that are waiting or being worked on; bounds the memory


def in_order(function: Callable[[T], R], items: Iterable[T], in_flight: int = _IN_FLIGHT) -> Iterator[R]:
    """The results of `function` in the order of the items, which are drawn as fast as results are.

    At most `in_flight` items are ahead of the result in hand. What has not begun when nobody asks for more, does not.
    """
    waiting: deque[Future[R]] = deque()
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
