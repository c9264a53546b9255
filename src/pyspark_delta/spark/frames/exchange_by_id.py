"""Moves rows to the partitions that a column numbers, as `DataFrame.repartitionById` of PySpark 4.1 does."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

_SEED = 42  # of the hash by which Spark exchanges rows


def repartitioned_by_id(frame: DataFrame, count: int, column: str) -> DataFrame:
    """Return the frame with `count` partitions; a row goes to the partition whose number is in the column."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, frame[column])
    keys = F.array(*(F.lit(key) for key in _keys(count)))
    return frame.repartition(count, F.get(keys, F.col(column).cast("int")))


@lru_cache(maxsize=8)
def _keys(count: int) -> tuple[int, ...]:
    """Return an int for each partition that Spark's hash sends there."""
    found, start = np.full(count, -1, np.int64), 0
    while (found < 0).any():
        candidates = np.arange(start, start + 4 * count + 64, dtype=np.int32)
        places = np.mod(_hashes(candidates).astype(np.int64), count)
        found[places] = candidates
        start += len(candidates)
    return tuple(found.tolist())


def _hashes(values: np.ndarray[tuple[int], np.dtype[np.int32]]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return Murmur3 of 32-bit integers, as Spark's function `hash`."""
    mixed = _rotated(values.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    state = _rotated(mixed ^ np.uint32(_SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(4)  # the number of bytes
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (state ^ (state >> np.uint32(16))).view(np.int32)


def _rotated(
    values: np.ndarray[tuple[int], np.dtype[np.uint32]], bits: int
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
