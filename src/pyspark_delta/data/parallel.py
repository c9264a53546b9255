"""Ordered parallel production: several workers, results in order, and a limit on waiting results."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

Unit = TypeVar("Unit")
Item = TypeVar("Item")

_QUEUED_ITEMS = 4  # per unit of work in flight
_POLL_SECONDS = 0.2


def flat_map_ordered(produce: Callable[[Unit], Iterable[Item]], units: Iterable[Unit], threads: int) -> Iterator[Item]:
    """Yield the items that `produce` makes of each unit, in the order of the units.

    At most `threads + 1` units are in flight, each with a few finished items waiting, so memory stays flat even if the
    consumer is slow. The first error stops everything; so does closing the iterator.
    """
    if threads <= 1:
        for unit in units:
            yield from produce(unit)
        return
    stop = threading.Event()
    flights: deque[_Flight[Item]] = deque()
    remaining = iter(units)
    with ThreadPoolExecutor(threads, thread_name_prefix="pyspark-delta-read") as pool:
        try:
            while True:
                for unit in islice(remaining, threads + 1 - len(flights)):
                    flight: _Flight[Item] = _Flight(stop)
                    flights.append(flight)
                    pool.submit(flight.run, produce, unit)
                if not flights:
                    return
                yield from flights[0]
                flights.popleft()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


class _Flight(Generic[Item]):
    """The items of one unit on their way from a worker to the consumer."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._queue: queue.Queue[tuple[str, Item | BaseException | None]] = queue.Queue(_QUEUED_ITEMS)

    def run(self, produce: Callable[[Unit], Iterable[Item]], unit: Unit) -> None:
        try:
            for item in produce(unit):
                if not self._put(("item", item)):
                    return
            self._put(("end", None))
        except BaseException as error:  # passed to the consumer, any error
            self._put(("error", error))

    def __iter__(self) -> Iterator[Item]:
        while True:
            kind, value = self._queue.get()
            if kind == "end":
                return
            if kind == "error":
                assert isinstance(value, BaseException)
                raise value
            yield value  # type: ignore[misc]

    def _put(self, entry: tuple[str, Item | BaseException | None]) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(entry, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False
