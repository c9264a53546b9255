"""Drawing from an iterator ahead of its consumer, on a thread: reading and writing then overlap."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import Queue
from typing import Any, TypeVar

T = TypeVar("T")

_AHEAD = 16  # items; fewer than a written row group takes would leave one of the two waiting


def prefetch(items: Iterator[T], ahead: int = _AHEAD) -> Generator[T]:
    """The items in order, at most `ahead` of which wait. Errors are raised where the item would have come.

    When nobody asks for more, the thread stops at its next item, and has stopped when the generator is closed.
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
        while thread.is_alive():  # it may be waiting for a free place
            _drop(waiting)
            thread.join(0.01)


def _drop(waiting: Queue[Any]) -> None:
    while not waiting.empty():
        waiting.get()
