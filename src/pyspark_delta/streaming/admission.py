"""Limits of a batch: how many of the next files it contains.

A file is admitted while anything is left of every limit, so that a batch contains at least one file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pyspark_delta.errors import InvalidOptionError


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a batch: the number of files, and the sum of their sizes in bytes. None is unlimited."""

    files: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        """Raise InvalidOptionError for a limit that admits nothing."""
        for name, limit in (("files", self.files), ("bytes", self.bytes)):
            if limit is not None and limit <= 0:
                raise InvalidOptionError(f"The limit of {name} in a batch is at least 1, found {limit}.")


class Sizes(NamedTuple):
    """The sizes in bytes of the files of a commit, by index.

    `together` is True if no batch may separate them. Files that are not `counted` cost nothing of the limits of a
    batch; None counts all.
    """

    files: pa.Array | pa.ChunkedArray
    together: bool = False
    counted: pa.BooleanArray | None = None

    def slice(self, first: int) -> Sizes:
        """Return the sizes from an index on."""
        counted = None if self.counted is None else self.counted.slice(first)
        return Sizes(self.files.slice(first), self.together, counted)


class Admission:
    """What is left of the limits of one batch."""

    def __init__(self, limits: Limits) -> None:
        self._files = limits.files
        self._bytes = limits.bytes
        self._admitted = 0

    @property
    def is_full(self) -> bool:
        """True if no further file is admitted."""
        return any(left is not None and left <= 0 for left in (self._files, self._bytes))

    def wants(self, most: int) -> int:
        """Return an upper bound of the number of further files, at most `most`."""
        return most if self._files is None else max(0, min(most, self._files))

    def take(self, sizes: pa.Array | pa.ChunkedArray, counted: pa.BooleanArray | None = None) -> int:
        """Return how many of the next files are admitted, and subtract them. Unknown sizes count as 0.

        Files that are not `counted` cost nothing of the limits; None counts all.
        """
        if self.is_full or not len(sizes):
            return 0
        if counted is None:
            sizes = sizes.slice(0, self.wants(len(sizes)))
        cost = np.ones(len(sizes), np.int64) if counted is None else np.asarray(counted).astype(np.int64)
        files, size = np.cumsum(cost), np.cumsum(cost * sizes.fill_null(0).to_numpy(), dtype=np.int64)
        count = len(sizes)
        for left, running in ((self._files, files), (self._bytes, size)):
            if left is not None:
                # The first file with which the limit is reached is the last one that is admitted.
                count = min(count, int(np.searchsorted(running, left)) + 1)
        self._subtract(int(files[count - 1]), int(size[count - 1]))
        return count

    def take_together(self, count: int, size: int) -> bool:
        """Return True if files that must not be separated are admitted, and subtract them. `size` is their sum.

        They must fit completely, unless they are the first files of the batch.
        """
        fits = all(left is None or more <= left for left, more in ((self._files, count), (self._bytes, size)))
        if count and self._admitted and not fits:
            return False
        self._subtract(count, size)
        return True

    def _subtract(self, count: int, size: int) -> None:
        self._admitted += count
        self._files = None if self._files is None else self._files - count
        self._bytes = None if self._bytes is None else self._bytes - size
