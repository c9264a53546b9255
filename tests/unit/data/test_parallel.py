"""Ordered parallel production."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pyspark_delta.data.parallel import flat_map_ordered


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_come_in_the_order_of_the_units(threads: int) -> None:
    produced = flat_map_ordered(lambda n: [n] * (n % 7), range(100), threads)
    assert list(produced) == [n for n in range(100) for _ in range(n % 7)]


def test_only_so_much_is_produced_ahead_of_the_consumer() -> None:
    started: list[int] = []

    def produce(n: int) -> Iterator[int]:
        started.append(n)
        yield from range(100)

    items = flat_map_ordered(produce, range(1000), 2)
    for _ in range(50):
        next(items)
    assert len(started) <= 3
    items.close()  # type: ignore[attr-defined]
    assert len(started) <= 3
    assert not [t for t in threading.enumerate() if t.name.startswith("pyspark-delta-read")]


def test_an_error_reaches_the_consumer_in_its_place() -> None:
    def produce(n: int) -> Iterator[int]:
        yield n
        if n == 3:
            raise ValueError("three")

    found: list[int] = []
    with pytest.raises(ValueError, match="three"):
        found.extend(flat_map_ordered(produce, range(10), 3))
    assert found == [0, 1, 2, 3]


def test_units_that_are_done_at_once_are_not_all_started() -> None:
    started: list[int] = []

    def produce(n: int) -> list[int]:
        started.append(n)
        return [n]

    items = flat_map_ordered(produce, range(1000), 2)
    for _ in range(10):
        next(items)
    items.close()  # type: ignore[attr-defined]
    assert len(started) <= 10 + 3
