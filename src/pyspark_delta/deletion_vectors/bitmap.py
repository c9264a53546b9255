"""The bitmap of a deletion vector: 64-bit row indexes in the portable Roaring format behind a magic number (C271-C275).

Three layouts are read: the portable one, the native one of older writers (a dense list of 32-bit bitmaps), and the
big-endian form of the latter in the specification's sample. Only the portable one is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from pyroaring import BitMap64

from pyspark_delta.errors import DeletionVectorError

PORTABLE_MAGIC = 1681511377
NATIVE_MAGIC = 1681511376

Indexes = np.ndarray[Any, np.dtype[np.int64]]

_PIECE = 1 << 20  # rows expanded at a time: a small bitmap may contain any number of rows


def deserialize(data: bytes, *, where: str = "deletion vector") -> BitMap64:
    """Return the set of row indexes. Raises DeletionVectorError, naming `where`, if the bytes are not such a bitmap."""
    if len(data) < 8:
        raise DeletionVectorError(f"The {where} has {len(data)} bytes; a bitmap has at least 8.")
    magic = int.from_bytes(data[:4], "little")
    if magic == PORTABLE_MAGIC:
        portable = data[4:]
    elif magic == NATIVE_MAGIC:
        portable = _portable(data, "<i", where)
    elif int.from_bytes(data[:4], "big") == NATIVE_MAGIC:
        portable = _portable(data, ">i", where)
    else:
        raise DeletionVectorError(
            f"The {where} begins with {magic}, which is not a known format of deletion vectors. "
            "It may need a newer version of pyspark-delta.",
            magic=magic,
        )
    try:
        bitmap = BitMap64.deserialize(portable)
    except (ValueError, IndexError) as error:
        raise DeletionVectorError(f"The {where} is not a valid Roaring bitmap: {error}.") from None
    if bitmap and bitmap.max() >= 2**63:
        raise DeletionVectorError(f"The {where} holds the row index {bitmap.max()}, which is beyond 63 bits.")
    return bitmap


def serialize(bitmap: BitMap64) -> bytes:
    """Return the magic number and the portable Roaring form, with runs if they are shorter."""
    if bitmap and bitmap.max() >= 2**63:
        raise DeletionVectorError(f"The row index {bitmap.max()} is beyond 63 bits.")
    optimized = bitmap.copy()
    optimized.run_optimize()
    return PORTABLE_MAGIC.to_bytes(4, "little") + optimized.serialize()


def of_indexes(indexes: Indexes) -> BitMap64:
    """Return the set of the given row indexes, in any order."""
    return BitMap64(np.sort(np.asarray(indexes).astype(np.uint64)))  # sorted input is built several times faster


def to_indexes(bitmap: BitMap64) -> Indexes:
    """Return the row indexes in ascending order, 8 bytes each. Only for a bitmap known to have few rows."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint64).view(np.int64)


def indexes_between(bitmap: BitMap64, start: int, end: int) -> Indexes:
    """Return the row indexes within `[start, end)` in ascending order; no others are expanded."""
    return to_indexes(bitmap & BitMap64(range(start, end)))


def index_pieces(bitmap: BitMap64) -> Iterator[Indexes]:
    """Yield the row indexes in ascending order, in chunks."""
    start = bitmap.min() if bitmap else 0
    end = bitmap.max() + 1 if bitmap else 0
    while start < end:
        piece = indexes_between(bitmap, start, min(start + _PIECE, end))
        if len(piece):
            yield piece
        start += _PIECE


def check_rows(bitmap: BitMap64, rows: int, path: str) -> None:
    """Check that a vector contains no row beyond those of its file. Raises DeletionVectorError.

    Call it before a vector is expanded: the rows of the file then bound the memory.
    """
    if bitmap and bitmap.max() >= rows:
        raise DeletionVectorError(
            f"The deletion vector of data file '{path}' contains row {bitmap.max()}, but the file has only {rows} "
            "rows. One of the two files does not belong to this version.",
            path=path,
        )


def to_words(bitmap: BitMap64, rows: int | None = None) -> Indexes:
    """Return the set as packed 64-bit words: bit `i & 63` of word `i >> 6` stands for row `i`.

    There are words for `rows` rows, or just enough for the last member. Members beyond `rows` are left out.
    """
    count = rows if rows is not None else (bitmap.max() + 1 if bitmap else 0)
    packed = np.zeros((count + 63) // 64 * 8, np.uint8)
    for start in range(0, count, _PIECE):
        piece = indexes_between(bitmap, start, min(start + _PIECE, count))
        if len(piece):
            members = np.zeros(min(_PIECE, 8 * len(packed) - start), np.bool_)
            members[piece - start] = True
            packed[start // 8 : (start + len(members)) // 8] = np.packbits(members, bitorder="little")
    return packed.view("<i8").astype(np.int64, copy=False)


def _portable(data: bytes, number: str, where: str) -> bytes:
    """Return the native layout (magic, bitmap count, then size and 32-bit bitmap per upper half) in portable form."""
    try:
        (count,) = struct.unpack_from(number, data, 4)
        position, buckets = 8, []
        for key in range(count):
            (size,) = struct.unpack_from(number, data, position)
            bucket = data[position + 4 : position + 4 + size]
            if size < 0 or len(bucket) != size:
                raise DeletionVectorError(f"The {where} ends within its bitmap {key} of {count}.")
            if size > 8:  # an empty 32-bit bitmap has 8 bytes
                buckets.append(struct.pack("<I", key) + bucket)
            position += 4 + size
    except struct.error:
        raise DeletionVectorError(f"The {where} ends before the end of its bitmaps.") from None
    return struct.pack("<Q", len(buckets)) + b"".join(buckets)
