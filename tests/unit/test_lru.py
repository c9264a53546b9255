"""The cache that all others are made of: what it keeps, what it drops, and that threads may share it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from pyspark_delta.lru import LruCache


def test_the_least_recently_used_entry_is_dropped() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.items() == [("a", 1), ("c", 3)]
    cache.put("a", 4)
    cache.put("d", 5)
    assert (cache.get("a"), cache.get("c"), cache.get("d")) == (4, None, 5)


def test_listing_is_no_use() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert dict(cache.items()) == {"a": 1, "b": 2}
    cache.put("c", 3)
    assert cache.get("a") is None


def test_an_entry_is_dropped_by_an_update_to_none() -> None:
    cache: LruCache[str, int] = LruCache(2)
    assert cache.update("a", lambda old: (old or 0) + 1) == 1
    assert cache.update("a", lambda old: (old or 0) + 1) == 2
    assert cache.update("a", lambda _: None) is None
    cache.pop("a")
    assert cache.items() == []


def test_a_limit_may_change_and_may_be_zero() -> None:
    limit = 2
    cache: LruCache[int, int] = LruCache(lambda: limit)
    for number in range(3):
        cache.put(number, number)
    assert [key for key, _ in cache.items()] == [1, 2]
    limit = 0
    cache.put(3, 3)
    assert cache.items() == []


def test_a_value_is_made_once() -> None:
    cache: LruCache[str, list[int]] = LruCache(2)
    made = cache.get_or_make("a", list)
    assert cache.get_or_make("a", list) is made
    cache.discard(lambda key: key == "b")
    assert cache.get("a") is made
    cache.discard(lambda key: key == "a")
    assert cache.get_or_make("a", list) is not made


def test_updates_of_threads_are_not_lost() -> None:
    cache: LruCache[str, int] = LruCache(1)
    begin = Barrier(4)

    def count() -> None:
        begin.wait()
        for _ in range(2_000):
            cache.update("n", lambda old: (old or 0) + 1)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(count) for _ in range(4)]:
            done.result()
    assert cache.get("n") == 8_000
