"""The live files of a table while its log is replayed: numbers and hashes alone, in sorted arrays.

A file takes about a hundred bytes, whatever the length of its path. Two keys with the same hash of 64 bits would be
taken for one; with a million files that has a probability of one to 30 million.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

UNKNOWN = -(2**62)
"""A number that an action does not have."""

FILE = np.dtype(
    [
        ("key", "i8"),  # hash of path and deletion vector: the key of a logical file (C144)
        ("path", "i8"),  # hash of the path
        ("size", "i8"),
        ("records", "i8"),
        ("deleted", "i8"),  # rows in the deletion vector
        ("partition", "i8"),  # hash of the partition values
        ("stats", "i8"),  # hash of the text of the statistics
        ("base", "i8"),
        ("commit", "i8"),  # the default row commit version
        ("tight", "?"),  # the statistics claim tight bounds
    ]
)


def hashes(texts: pa.Array) -> Array:
    """Return a hash of each text; 0 for null."""
    return np.fromiter(map(_hash, texts.to_pylist()), np.int64, len(texts))


def _hash(text: str | None) -> int:
    return 0 if text is None else hash(text)


class LiveFiles:
    """A set of files by key, as few sorted runs: adding and removing many files is array work."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, keys: Array) -> tuple[Array, Array]:
        """Return the files with some keys, and a mask of the keys that are there."""
        found, present = np.zeros(len(keys), FILE), np.zeros(len(keys), np.bool_)
        for run in self._runs:
            at, hit = run.find(keys)
            found[hit] = run.files[at[hit]]
            present |= hit
        return found, present

    def find_paths(self, paths: Array) -> tuple[Array, Array]:
        """Return one file at each of some paths, and a mask of the paths that have one."""
        found, present = np.zeros(len(paths), FILE), np.zeros(len(paths), np.bool_)
        for run in self._runs:
            at, hit = run.find_paths(paths)
            found[hit] = run.files[at[hit]]
            present |= hit
        return found, present

    def remove(self, keys: Array) -> Array:
        """Take the files with some keys out, and return those that were there."""
        gone = []
        for run in self._runs:
            at, hit = run.find(keys)
            positions = np.unique(at[hit])
            gone.append(run.files[positions])
            run.alive[positions] = False
        removed = np.concatenate(gone) if gone else np.zeros(0, FILE)
        self._count -= len(removed)
        return removed

    def add(self, files: Array) -> None:
        """Add files; none of their keys is there, and none occurs twice."""
        if not len(files):
            return
        self._count += len(files)
        self._runs.append(_Run(files[np.argsort(files["key"], kind="stable")]))
        while len(self._runs) > 1 and len(self._runs[-2].files) <= 2 * len(self._runs[-1].files):
            last, before = self._runs.pop(), self._runs.pop()
            both = np.concatenate([before.files[before.alive], last.files[last.alive]])
            if len(both):
                self._runs.append(_Run(both[np.argsort(both["key"], kind="stable")]))

    def forget_marks(self) -> None:
        """Begin to mark the files that a checkpoint holds."""
        for run in self._runs:
            run.marked = np.zeros(len(run.files), np.bool_)

    def mark(self, keys: Array) -> tuple[Array, Array, int]:
        """Mark files; return them, a mask of the keys that are there, and how many were marked before."""
        found, present, repeated = np.zeros(len(keys), FILE), np.zeros(len(keys), np.bool_), 0
        for run in self._runs:
            at, hit = run.find(keys)
            found[hit] = run.files[at[hit]]
            present |= hit
            positions, counts = np.unique(at[hit], return_counts=True)
            repeated += int(run.marked[positions].sum()) + int((counts - 1).sum())
            run.marked[positions] = True
        return found, present, repeated

    def unmarked(self) -> int:
        """Return how many files were not marked."""
        return sum(int((run.alive & ~run.marked).sum()) for run in self._runs)

    def unmarked_since(self, time: int) -> int:
        """Return how many tombstones, whose size is the time of the removal, were not marked and are that young."""
        return sum(int((run.alive & ~run.marked & (run.files["size"] >= time)).sum()) for run in self._runs)

    def batches(self) -> Iterator[Array]:
        """Yield all files, in arrays."""
        for run in self._runs:
            yield run.files[run.alive]


class _Run:
    """Files sorted by key; those that were removed meanwhile are not alive."""

    def __init__(self, files: Array) -> None:
        self.files = files
        self.alive = np.ones(len(files), np.bool_)
        self.marked = np.zeros(len(files), np.bool_)
        self._keys = np.ascontiguousarray(files["key"])
        self._by_path: tuple[Array, Array] | None = None

    def find(self, keys: Array) -> tuple[Array, Array]:
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return at, (self._keys[at] == keys) & self.alive[at]

    def find_paths(self, paths: Array) -> tuple[Array, Array]:
        """Like `find`, by path: of several files at a path one that is alive, if it comes first or second."""
        if self._by_path is None:
            order = np.argsort(self.files["path"], kind="stable")
            self._by_path = order, self.files["path"][order]
        order, sorted_paths = self._by_path
        last = len(sorted_paths) - 1
        first = np.minimum(np.searchsorted(sorted_paths, paths), last)
        second = np.minimum(first + 1, last)
        use_second = ~self.alive[order[first]] & (sorted_paths[second] == paths)
        at = order[np.where(use_second, second, first)]
        return at, (self.files["path"][at] == paths) & self.alive[at]
