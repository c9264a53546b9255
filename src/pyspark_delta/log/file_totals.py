"""Totals of the live files in version checksums: number, bytes, deleted rows, histogram of sizes (C107-C120)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30

# The reference implementation's bins: finer around the usual sizes of files.
BIN_BOUNDARIES: tuple[int, ...] = (
    0,
    *(size * _KIB for size in (8, 16, 32, 64, 128, 256, 512)),
    *(size * _MIB for size in (1, 2, *range(4, 40, 4), *range(40, 120, 8), *range(120, 144, 4))),
    *(size * _MIB for size in (*range(144, 576, 16), *range(576, 1408, 64), *range(1408, 2048, 128))),
    *(size * _MIB for size in range(2048, 4096, 256)),
    *(size * _GIB for size in (4, 8, 16, 32, 64, 128, 256)),
)


@dataclass(frozen=True, slots=True)
class SizeHistogram:
    """Files and their bytes by bins of size; bin i reaches from boundary i to the next, the last one is open (C118)."""

    boundaries: tuple[int, ...] = BIN_BOUNDARIES
    counts: tuple[int, ...] = (0,) * len(BIN_BOUNDARIES)
    sizes: tuple[int, ...] = (0,) * len(BIN_BOUNDARIES)

    def plus(self, files: pa.Array | pa.ChunkedArray, sign: int = 1) -> SizeHistogram:
        """Return the histogram with some more files by their sizes; with `sign` -1, without them."""
        values: npt.NDArray[np.int64] = np.asarray(pc.fill_null(files.cast(pa.int64()), 0))
        # A negative size is wrong, but does not justify failing a commit that exists.
        bins = np.maximum(np.searchsorted(np.asarray(self.boundaries), values, side="right") - 1, 0)
        number = len(self.boundaries)
        counts = np.bincount(bins, minlength=number) * sign
        sizes = np.zeros(number, dtype=np.int64)
        np.add.at(sizes, bins, values * sign)
        return replace(
            self,
            counts=tuple((np.asarray(self.counts) + counts).tolist()),
            sizes=tuple((np.asarray(self.sizes) + sizes).tolist()),
        )

    def combined(self, other: SizeHistogram) -> SizeHistogram:
        """Return the sum of two histograms with the same boundaries."""
        return replace(
            self,
            counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            sizes=tuple(a + b for a, b in zip(self.sizes, other.sizes, strict=True)),
        )

    def to_json(self) -> dict[str, list[int]]:
        """Return the form of the checksum file."""
        return {
            "sortedBinBoundaries": list(self.boundaries),
            "fileCounts": list(self.counts),
            "totalBytes": list(self.sizes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SizeHistogram:
        """Parse a well-formed `fileSizeHistogram`."""
        members = (value["sortedBinBoundaries"], value["fileCounts"], value["totalBytes"])
        return cls(*(tuple(member) for member in members))


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Totals over files; None if unknown."""

    num_files: int = 0
    size: int = 0
    num_deletion_vectors: int | None = 0
    num_deleted_records: int | None = 0
    histogram: SizeHistogram | None = field(default_factory=SizeHistogram)

    def plus(self, sizes: pa.Array | pa.ChunkedArray, cardinalities: pa.Array | pa.ChunkedArray | None) -> FileTotals:
        """Return the totals with more files: their sizes, and cardinalities of their vectors (None: no vectors)."""
        return self._changed(sizes, cardinalities, 1)

    def minus(self, sizes: pa.Array | pa.ChunkedArray, cardinalities: pa.Array | pa.ChunkedArray | None) -> FileTotals:
        """Return the totals without some files."""
        return self._changed(sizes, cardinalities, -1)

    def combined(self, other: FileTotals) -> FileTotals:
        """Return the sum with other totals; both must be known in full."""
        assert self.histogram is not None and other.histogram is not None  # noqa: PT018
        assert self.num_deletion_vectors is not None and other.num_deletion_vectors is not None  # noqa: PT018
        assert self.num_deleted_records is not None and other.num_deleted_records is not None  # noqa: PT018
        return FileTotals(
            self.num_files + other.num_files,
            self.size + other.size,
            self.num_deletion_vectors + other.num_deletion_vectors,
            self.num_deleted_records + other.num_deleted_records,
            self.histogram.combined(other.histogram),
        )

    def _changed(self, sizes: Any, cardinalities: Any, sign: int) -> FileTotals:
        if not len(sizes):
            return self
        vectors = 0 if cardinalities is None else len(cardinalities) - cardinalities.null_count
        deleted = (pc.sum(cardinalities).as_py() or 0) if vectors else 0
        before, gone = self.num_deletion_vectors, self.num_deleted_records
        return FileTotals(
            self.num_files + sign * len(sizes),
            self.size + sign * (pc.sum(sizes).as_py() or 0),
            None if before is None else before + sign * vectors,
            None if gone is None else gone + sign * deleted,
            None if self.histogram is None else self.histogram.plus(sizes, sign),
        )
