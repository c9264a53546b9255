from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pyspark_delta.log.prefetch import prefetch


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "delta-ahead"]


def test_items_come_in_order():
    assert list(prefetch(iter(range(100)), 3)) == list(range(100))
    assert list(prefetch(iter(()))) == []
    assert not _threads()


def test_an_error_is_raised_where_the_item_would_have_come():
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("three")

    drawn = prefetch(items())
    assert [next(drawn), next(drawn)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(drawn)
    assert not _threads()


def test_no_more_than_the_limit_is_drawn_ahead_and_nothing_after_closing():
    seen: list[int] = []
    full = threading.Event()

    def items() -> Iterator[int]:
        for item in range(1000):
            seen.append(item)
            if item == 4:
                full.set()
            yield item

    drawn = prefetch(items(), 3)
    assert next(drawn) == 0
    assert full.wait(10)  # one with the consumer, three wait, and one has no place yet
    assert seen == [0, 1, 2, 3, 4]
    drawn.close()
    assert not _threads()
    assert len(seen) <= 6
