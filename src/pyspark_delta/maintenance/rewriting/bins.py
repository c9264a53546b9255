"""Bins: files whose rows are written to new files together, and which bins are worth their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pyspark_delta.maintenance.rewriting.candidates import ALONE, GROUP, LIVE

_LITTLE = 16 << 20  # bytes that are worth rewriting to save a single file

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Bin:
    """Files, with the columns of candidates, whose rows are written to new files together, in the order of `files`.

    `size` is the bytes of the rows that are not deleted; `number` is unique in a plan. New files should have
    `target_size` bytes.
    """

    number: int
    files: pa.Table = field(repr=False)
    size: int
    target_size: int

    @property
    def new_files(self) -> int:
        """The number of files to write."""
        return max(1, round(self.size / self.target_size)) if self.files.num_rows else 0


@dataclass(frozen=True)
class Bins:
    """All bins of a plan: the files from `starts` to `ends`, which are positions in `files`; no object for each bin.

    `sizes` are bytes that stay, `read` bytes of the files.
    """

    files: pa.Table = field(repr=False)
    target_size: int
    starts: Numbers = field(repr=False)
    ends: Numbers = field(repr=False)
    sizes: Numbers = field(repr=False)
    read: Numbers = field(repr=False)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Bin]:
        """Yield the bins, the largest first, so that no thread begins a large one last."""
        for number in np.argsort(-self.sizes, kind="stable").tolist():
            yield self.bin(number)

    def bin(self, number: int) -> Bin:
        """Return one bin."""
        start, end = int(self.starts[number]), int(self.ends[number])
        return Bin(number, self.files.slice(start, end - start), int(self.sizes[number]), self.target_size)

    @property
    def new_files(self) -> Numbers:
        """The number of files that each bin becomes."""
        return np.maximum(1, np.rint(self.sizes / self.target_size)).astype(np.int64)

    @property
    def saved_files(self) -> Numbers:
        """How many files fewer there are after each bin is rewritten."""
        return self.ends - self.starts - self.new_files

    def chosen(self, mask: np.ndarray) -> Bins:
        """Return some of the bins."""
        return Bins(self.files, self.target_size, self.starts[mask], self.ends[mask], self.sizes[mask], self.read[mask])

    def within(self, limit: int | None) -> Bins:
        """Return the bins that save the most files for the bytes that they read, up to a limit of bytes."""
        if limit is None or not len(self):
            return self
        order = np.argsort(-(self.saved_files + 1) / np.maximum(1, self.read), kind="stable")
        mask = np.zeros(len(self), np.bool_)
        mask[order[np.cumsum(self.read[order]) <= limit]] = True
        return self.chosen(mask)


def pack(files: pa.Table, target_size: int) -> Bins:
    """Put candidates into bins of at most `target_size` bytes, in order, those of a group only; a larger file is alone.

    All bins are returned; see `worthwhile`.
    """
    live, sizes = files[LIVE].to_numpy(), files["size"].to_numpy()
    groups = files[GROUP].to_numpy()
    total, read = (np.concatenate([[0], np.cumsum(column)]) for column in (live, sizes))
    borders = np.concatenate([np.flatnonzero(np.diff(groups)) + 1, [len(groups)]]) if len(groups) else groups
    starts, start = [], 0
    for border in borders.tolist():
        while start < border:
            starts.append(start)
            last = int(np.searchsorted(total, total[start] + target_size, side="right")) - 1
            start = min(max(last, start + 1), border)
    first = np.array(starts, np.int64)
    ends = np.concatenate([first[1:], [len(groups)]]) if len(first) else first
    return Bins(files, target_size, first, ends, total[ends] - total[first], read[ends] - read[first])


def worthwhile(bins: Bins) -> Bins:
    """Return the bins whose result is worth their bytes.

    A single file is worth it only if it is marked so, as for its deleted rows. Two files are joined if they are
    little, or less than half a target file together.
    """
    if not len(bins):
        return bins
    marked = np.concatenate([[0], np.cumsum(np.asarray(bins.files[ALONE]).astype(np.int64))])
    has_marked = marked[bins.ends] > marked[bins.starts]
    saved, few = bins.saved_files, np.maximum(_LITTLE, bins.target_size // 2)
    return bins.chosen(has_marked | (saved >= 2) | ((saved == 1) & (bins.sizes <= few)))
