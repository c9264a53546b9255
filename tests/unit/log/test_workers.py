"""The threads of the log: results in order, begun when asked for or before."""

from __future__ import annotations

import threading

import pytest

from pyspark_delta.log.workers import map_ordered, map_ordered_eagerly


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
