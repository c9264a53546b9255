"""The threads that parse JSON: what runs there never waits for anything else that runs there."""

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


def in_order(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of `function` in the order of the items, which are drawn as fast as results are."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(_pool(os.getpid()).submit(function, item))
        if len(waiting) > _IN_FLIGHT:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The pool of one process: after a fork, the threads of the parent are not there."""
    return ThreadPoolExecutor(max(1, min(8, os.cpu_count() or 1)), thread_name_prefix="delta-json")
