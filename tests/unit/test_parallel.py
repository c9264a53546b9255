"""Parallel work on threads: results in order, a limit on what waits, and nothing left over after closing."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyspark_delta.parallel import flat_map_ordered, map_ordered, map_ordered_eagerly, map_requests, prefetch


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
    items.close()
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
    items.close()
    assert len(started) <= 10 + 3


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "delta-ahead"]


def test_prefetched_items_come_in_order() -> None:
    assert list(prefetch(iter(range(100)), 3)) == list(range(100))
    assert list(prefetch(iter(()))) == []
    assert not _threads()


def test_an_error_of_a_prefetched_item_is_raised_where_it_would_have_come() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("three")

    drawn = prefetch(items())
    assert [next(drawn), next(drawn)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(drawn)
    assert not _threads()


def test_no_more_than_the_limit_is_drawn_ahead_and_nothing_after_closing() -> None:
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


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(map_ordered(lambda item: item * item, range(100), in_flight=3)) == [item * item for item in range(100)]
    assert list(map_ordered_eagerly(lambda item: item * item, range(100), in_flight=3)) == [i * i for i in range(100)]
    assert list(map_ordered_eagerly(str, (), in_flight=3)) == []


def test_the_first_items_are_worked_on_before_a_result_is_asked_for() -> None:
    drawn: list[int] = []
    done = threading.Event()

    def items() -> object:
        for item in range(10):
            drawn.append(item)
            yield item

    def work(item: int) -> int:
        done.set()
        return item

    results = map_ordered_eagerly(work, items(), in_flight=2)  # type: ignore[arg-type]
    assert done.wait(60)
    assert drawn == [0, 1]
    assert list(results) == list(range(10))
    done.clear()
    lazy = map_ordered(work, items(), in_flight=2)  # type: ignore[arg-type]
    assert drawn == list(range(10))
    assert next(lazy) == 0


def test_an_error_is_raised_where_the_result_would_have_come() -> None:
    results = map_ordered_eagerly(lambda item: 6 // item, (3, 0, 1), in_flight=3)
    assert next(results) == 2
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_requests_are_made_at_once_and_answered_in_order() -> None:
    both = threading.Barrier(2)

    def ask(item: int) -> int:
        both.wait(60)
        return item * item

    assert list(map_requests(ask, range(6), 2)) == [0, 1, 4, 9, 16, 25]


def test_one_request_at_a_time_is_made_in_this_thread_when_its_answer_is_wanted() -> None:
    asked: list[threading.Thread] = []
    answers = map_requests(lambda _: asked.append(threading.current_thread()), range(3), 1)
    assert asked == []
    next(answers)
    assert asked == [threading.current_thread()]


def test_closing_ends_a_producer_that_waits_for_room() -> None:
    produced, full = [0, 0], threading.Barrier(3)

    def produce(unit: int) -> Iterator[int]:
        for item in range(1000):
            produced[unit] += 1
            if item == 4:
                full.wait(60)
            yield item

    items = flat_map_ordered(produce, range(2), 2)
    first = threading.Thread(target=next, args=(items,))
    first.start()
    full.wait(60)
    first.join()
    items.close()
    assert max(produced) <= 6
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pyspark-delta-read")]


@pytest.mark.parametrize("reading", [lambda produce: flat_map_ordered(produce, range(3), 2), lambda p: prefetch(p(0))])
def test_the_garbage_collector_does_not_wait_for_the_threads(reading: Callable[..., Iterator[int]]) -> None:
    went_on, released = threading.Event(), threading.Event()

    def produce(n: int) -> Iterator[int]:
        yield n
        went_on.set()
        released.wait()

    items = reading(produce)
    cycle: list[Any] = [items]
    cycle.append(cycle)
    assert next(items) == 0
    went_on.wait()
    del items, cycle
    collecting = threading.Thread(target=gc.collect)
    collecting.start()
    collecting.join(5)
    waits = collecting.is_alive()
    released.set()
    collecting.join()
    assert not waits
