"""Limits of a batch: how many of the next files it contains.

A file is admitted while anything is left of every limit, so that a batch contains at least one file.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def take(self, sizes: pa.Array | pa.ChunkedArray) -> int:
        """Return how many of the next files are admitted, and subtract them. Unknown sizes count as 0."""
        count = 0 if self.is_full else self.wants(len(sizes))
        running = np.cumsum(sizes.slice(0, count).fill_null(0).to_numpy(), dtype=np.int64)
        if self._bytes is not None:
            # The first file with which the limit is reached is the last one that is admitted.
            count = min(count, int(np.searchsorted(running, self._bytes)) + 1)
        self._subtract(count, int(running[count - 1]) if count else 0)
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
