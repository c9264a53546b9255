"""A bounded cache for threads, which drops the entries that were not used for longest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """At most `limit` values by key; None stands for no value. Every method is atomic except `get_or_make`.

    A function as the limit is asked at each change.
    """

    def __init__(self, limit: int | Callable[[], int]) -> None:
        self._limit = limit
        self._lock = Lock()
        self._values: OrderedDict[K, V] = OrderedDict()  # the least recently used first

    def get(self, key: K) -> V | None:
        """Return the value, which counts as a use."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Set the value."""
        self.update(key, lambda _: value)

    def update(self, key: K, change: Callable[[V | None], V | None]) -> V | None:
        """Replace the value by what `change` makes of it, and return that. If it is None, the entry is dropped.

        `change` runs under the lock of the cache: it must be quick, and must not use the cache.
        """
        with self._lock:
            value = change(self._values.get(key))
            self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            limit = self._limit if isinstance(self._limit, int) else self._limit()
            while len(self._values) > limit:
                self._values.popitem(last=False)
            return value

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value, which `make` makes if there is none. Threads may make it at once; one of them is kept."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def pop(self, key: K) -> None:
        """Drop an entry, if it is there."""
        with self._lock:
            self._values.pop(key, None)

    def discard(self, is_meant: Callable[[K], bool]) -> None:
        """Drop the entries whose key is meant."""
        with self._lock:
            for key in [key for key in self._values if is_meant(key)]:
                del self._values[key]

    def items(self) -> list[tuple[K, V]]:
        """Return the entries, the least recently used first. This is no use of them."""
        with self._lock:
            return list(self._values.items())
