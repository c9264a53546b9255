"""Parallel work on threads with results in order, and with a limit on the results that wait.

- `map_ordered` and `map_ordered_eagerly` decode and parse, on a pool of the process with a thread per core;
- `map_requests` makes requests to stores, on as many threads as the store takes;
- `flat_map_ordered` makes many items of each unit, for example the batches of each file;
- `prefetch` reads an iterator ahead of its consumer.

Work items never wait for each other. An iterator that is closed waits for its threads, except when the garbage
collector closes it: it runs at any allocation, perhaps under a lock that one of these threads needs.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_IN_FLIGHT = 16  # items waiting or running; bounds the memory
_AHEAD = 16  # items; with fewer than a row group takes, reader or writer would wait
_WAITING_PER_UNIT = 4  # items
_END: Any = object()


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


def map_requests(function: Callable[[T], R], items: Iterable[T], at_once: int) -> Generator[R]:
    """Yield the results of `function`, which waits for a store, in the order of the items.

    About `at_once` calls run at a time, on threads of their own; 1 calls it in this thread, as results are consumed.
    """
    return flat_map_ordered(lambda item: (function(item),), items, at_once)


def flat_map_ordered(produce: Callable[[T], Iterable[R]], units: Iterable[T], threads: int) -> Generator[R]:
    """Yield the items that `produce` makes of each unit, in the order of the units.

    At most `threads + 1` units are in flight, each with a few finished items waiting, so memory stays flat even if the
    consumer is slow. The first error stops everything; so does closing the iterator.
    """
    if threads <= 1:
        for unit in units:
            yield from produce(unit)
        return
    flights: deque[_Flight[R]] = deque()
    remaining = iter(units)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="pyspark-delta-read")
    try:
        while True:
            for unit in islice(remaining, threads + 1 - len(flights)):
                flight: _Flight[R] = _Flight(_WAITING_PER_UNIT)
                flights.append(flight)
                pool.submit(flight.run, produce, unit)
            if not flights:
                return
            yield from flights[0]
            flights.popleft()
    finally:
        for flight in flights:
            flight.close()
        pool.shutdown(wait=not _collector.runs, cancel_futures=True)


def prefetch(items: Iterator[T], ahead: int = _AHEAD) -> Generator[T]:
    """Yield the items in order; at most `ahead` of them wait. Errors are raised at the position of their item.

    When the generator is closed, the thread stops after its current item, before `close` returns.
    """
    flight: _Flight[T] = _Flight(ahead)
    thread = threading.Thread(target=flight.run, args=(iter, items), name="delta-ahead", daemon=True)
    thread.start()
    try:
        yield from flight
    finally:
        flight.close()
        if not _collector.runs:
            thread.join()


def worker_count() -> int:
    """Return the number of threads of the process's pool."""
    return max(1, min(8, os.cpu_count() or 1))


class _Collector(threading.local):
    """Whether the garbage collector runs in the present thread."""

    runs = False

    def note(self, phase: Literal["start", "stop"], info: object) -> None:
        """Take a call of the collector, as of `gc.callbacks`."""
        self.runs = phase == "start"


_collector = _Collector()
gc.callbacks.append(_collector.note)


class _Flight(Generic[R]):
    """The items of one unit on their way from a thread to the consumer; at most `limit` of them wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[tuple[R, BaseException | None]] = deque()
        self._is_closed = False
        self._changed = threading.Condition()

    def run(self, produce: Callable[[T], Iterable[R]], unit: T) -> None:
        """Produce the items, until the flight is closed."""
        failure: BaseException | None = None
        try:
            for item in produce(unit):
                if not self._put(item, None):
                    return
        except BaseException as error:  # passed to the consumer, any error
            failure = error
        self._put(_END, failure)

    def close(self) -> None:
        """Let the producer stop after its current item."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[R]:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                item, failure = self._waiting.popleft()
                self._changed.notify_all()
            if failure is not None:
                raise failure
            if item is _END:
                return
            yield item

    def _put(self, item: R, failure: BaseException | None) -> bool:
        """Hand over an item once there is room. Return False if the flight was closed."""
        with self._changed:
            while not self._is_closed and len(self._waiting) >= self._limit:
                self._changed.wait()
            if not self._is_closed:
                self._waiting.append((item, failure))
                self._changed.notify_all()
            return not self._is_closed


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


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of one process: a fork does not copy the threads of its parent."""
    return ThreadPoolExecutor(worker_count(), thread_name_prefix="delta-log")
