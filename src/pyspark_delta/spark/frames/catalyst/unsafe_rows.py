"""Rows in Spark's own binary format (`UnsafeRow`), encoded column by column.

A row consists of a bitmap of its nulls in 64-bit words, one 8-byte slot per field, and a variable part for values that
do not fit a slot: text, binary and decimals of more than 18 digits. Their slots hold an offset and a size. The JVM uses
the rows without conversion, so the constants of 20,000 files are passed in one call.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_delta.schema.types import DataType, DecimalType

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_WORD = 8
_UNIT = 24  # bytes: rows are padded to a multiple of a word (8) and of a group of base64 (3)
_INLINE_DECIMAL_DIGITS = 18
_WIDE_DECIMAL_BYTES = 16
_LONG = 64  # average bytes of a value from which one copy per value is faster than one copy by index


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows as base64 text, one entry per row, with their sizes in bytes."""

    text: pa.Array
    sizes: Numbers
    num_fields: int

    @property
    def bitmap_width(self) -> int:
        """The size of the null bitmap of each row in bytes."""
        return bitmap_width(self.num_fields)


@dataclass(frozen=True, slots=True)
class _Column:
    """One field of all rows. `slots` are the 8-byte values or, if `content` is given, the sizes of its values.

    `content` are bytes for the variable part; the value of a row begins there at `starts`, and takes `reserved` bytes
    of the row.
    """

    valid: np.ndarray[Any, np.dtype[np.bool_]]
    slots: Numbers
    content: np.ndarray[Any, np.dtype[np.uint8]] | None = None
    starts: Numbers | None = None
    reserved: Numbers | None = None


def bitmap_width(num_fields: int) -> int:
    """Return the size of the null bitmap of a row in bytes."""
    return (num_fields + 63) // 64 * _WORD


def encode_rows(columns: Sequence[tuple[pa.Array, DataType]], count: int) -> EncodedRows:
    """Encode `count` rows of primitive columns. Raises TypeError for a column of another type."""
    encoded = [_encode(array, data_type) for array, data_type in columns]
    fixed = bitmap_width(len(encoded)) + _WORD * len(encoded)
    sizes = np.full(count, fixed, dtype=np.int64)
    for column in encoded:
        if column.reserved is not None:
            sizes += column.reserved
    padded = (sizes + _UNIT - 1) // _UNIT * _UNIT
    starts = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
    buffer = np.zeros(int(starts[-1]), dtype=np.uint8)
    _fill(buffer, starts[:-1], encoded, fixed)
    return EncodedRows(_base64(buffer, starts), sizes, len(encoded))


def _fill(buffer: np.ndarray[Any, np.dtype[np.uint8]], starts: Numbers, columns: Sequence[_Column], fixed: int) -> None:
    words = buffer.view("<i8")
    first_word = starts // _WORD
    offset = np.full(len(starts), fixed, dtype=np.int64)  # of the next variable value, from the row's start
    for index, column in enumerate(columns):
        null = ~column.valid
        words[first_word[null] + index // 64] |= np.uint64(1 << (index % 64)).astype(np.int64)
        slot = first_word + bitmap_width(len(columns)) // _WORD + index
        if column.content is None:
            words[slot] = np.where(column.valid, column.slots, 0)
            continue
        assert column.starts is not None
        assert column.reserved is not None
        # A wide decimal keeps its bytes even if it is null, because Spark updates it in place.
        keeps = column.valid | (column.reserved > 0)
        words[slot] = np.where(keeps, (offset << 32) | np.where(column.valid, column.slots, 0), 0)
        _copy(buffer, starts + offset, column.content, column.starts, np.where(column.valid, column.slots, 0))
        offset += column.reserved


def _copy(
    target: np.ndarray[Any, np.dtype[np.uint8]],
    to: Numbers,
    source: np.ndarray[Any, np.dtype[np.uint8]],
    start: Numbers,
    size: Numbers,
) -> None:
    """Copy `size[i]` bytes from `start[i]` to `to[i]`, for all i at once if values are short on average."""
    total = int(size.sum())
    if total == 0:
        return
    if total >= _LONG * len(size):
        copy, content = target.data, source.data
        for place, first, length in zip(to.tolist(), start.tolist(), size.tolist(), strict=True):
            copy[place : place + length] = content[first : first + length]
        return
    within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(size) - size, size)
    target[np.repeat(to, size) + within] = source[np.repeat(start, size) + within]


def _encode(array: pa.Array, data_type: DataType) -> _Column:
    valid = np.asarray(array.is_valid())
    if isinstance(data_type, DecimalType):
        return _encode_decimal(array, valid, data_type)
    match str(data_type):
        case "string" | "binary":
            return _encode_bytes(array, valid)
        case "boolean":
            return _Column(valid, np.asarray(array.cast(pa.int8()).fill_null(0)).astype(np.int64))
        case "float":
            bits = np.asarray(array.fill_null(0.0)).astype("<f4").view("<u4")
            return _Column(valid, bits.astype(np.int64))
        case "double":
            return _Column(valid, np.asarray(array.fill_null(0.0)).astype("<f8").view("<i8"))
        case "date" | "integer" | "interval year to month":
            numbers = np.asarray(array.view(pa.int32()).fill_null(0))
            return _Column(valid, numbers.view("<u4").astype(np.int64))
        case "timestamp" | "timestamp_ntz" | "interval day to second":
            return _Column(valid, np.asarray(array.view(pa.int64()).fill_null(0)))
        case "long":
            return _Column(valid, np.asarray(array.fill_null(0)))
        case "short" | "byte":
            mask = 0xFFFF if str(data_type) == "short" else 0xFF
            return _Column(valid, np.asarray(array.fill_null(0)).astype(np.int64) & mask)
        case "void":
            return _Column(valid, np.zeros(len(array), dtype=np.int64))
        case other:
            raise TypeError(f"cannot encode a constant of type {other}")


def _encode_bytes(array: pa.Array, valid: np.ndarray[Any, np.dtype[np.bool_]]) -> _Column:
    large = array.cast(pa.large_binary())
    _, offsets, data = large.buffers()
    positions = np.frombuffer(offsets, dtype="<i8")[large.offset : large.offset + len(large) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    sizes = np.where(valid, np.diff(positions), 0)
    return _Column(valid, sizes, content, positions[:-1], (sizes + _WORD - 1) // _WORD * _WORD)


def _encode_decimal(array: pa.Array, valid: np.ndarray[Any, np.dtype[np.bool_]], decimal: DecimalType) -> _Column:
    halves = np.frombuffer(array.buffers()[1], dtype="<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = halves[0::2], halves[1::2]
    if decimal.precision <= _INLINE_DECIMAL_DIGITS:
        return _Column(valid, np.where(valid, low, 0))
    # Java's BigInteger: big-endian two's complement without redundant leading bytes; Spark accepts redundant ones.
    content = np.empty((len(array), 2), dtype=">i8")
    content[:, 0], content[:, 1] = high, low
    count = len(array)
    return _Column(
        valid,
        np.full(count, _WIDE_DECIMAL_BYTES, dtype=np.int64),
        content.view(np.uint8).reshape(-1),
        np.arange(count, dtype=np.int64) * _WIDE_DECIMAL_BYTES,
        np.full(count, _WIDE_DECIMAL_BYTES, dtype=np.int64),
    )


def _base64(buffer: np.ndarray[Any, np.dtype[np.uint8]], starts: Numbers) -> pa.Array:
    """Encode rows as base64. The size of a row is a multiple of 3 bytes, so each is a slice of the encoded buffer."""
    text = base64.b64encode(buffer.data)
    offsets = (starts // 3 * 4).astype("<i8")
    return pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text))
