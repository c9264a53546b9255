"""Drawing from an iterator one item ahead of its consumer, on a thread: reading and writing then overlap."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_END = object()


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items in order. Errors are raised where the item would have come."""
    with ThreadPoolExecutor(1, thread_name_prefix="delta-ahead") as pool:
        coming = pool.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]
