"""Read an iterator ahead of its consumer on a thread, so that reading and writing overlap."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import Queue
from typing import Any, TypeVar

T = TypeVar("T")

_AHEAD = 16  # items; with fewer than a row group takes, reader or writer would wait


def prefetch(items: Iterator[T], ahead: int = _AHEAD) -> Generator[T]:
    """Yield the items in order; at most `ahead` of them wait. Errors are raised at the position of their item.

    When the generator is closed, the thread stops after its current item, before `close` returns.
    """
    waiting: Queue[tuple[T | None, BaseException | None]] = Queue(ahead)
    stopped = threading.Event()
    end: Any = object()

    def draw() -> None:
        failure: BaseException | None = None
        try:
            for item in items:
                waiting.put((item, None))
                if stopped.is_set():
                    return
        except BaseException as error:
            failure = error
        waiting.put((end, failure))

    thread = threading.Thread(target=draw, name="delta-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, failure = waiting.get()
            if failure is not None:
                raise failure
            if item is end:
                return
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait for space in the queue
            _drop(waiting)
            thread.join(0.01)


def _drop(waiting: Queue[Any]) -> None:
    while not waiting.empty():
        waiting.get()
