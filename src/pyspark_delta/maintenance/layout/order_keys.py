"""Columns as numbers in the order of Spark's ORDER BY: ascending, nulls first, -0.0 equal to 0.0, NaN last.

Values of up to 64 bits have a key, a `uint64`: a smaller value never has a larger key. Texts, binaries and decimals of
more than 18 digits are compared by bytes, eight at a time, and further bytes are read only of values that are equal so
far. Texts are in the order of their UTF-8 bytes, whatever their collation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

NULL_KEY = 0
_SIGN = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_WORD = 8  # bytes
_LONG_DIGITS = 18  # decimal digits that fit into 64 bits


class ByteStrings(NamedTuple):
    """Values as bytes. `data` has at least 8 more bytes than the values; `starts` and `lengths` are in bytes."""

    data: Bytes
    starts: Integers
    lengths: Integers

    @classmethod
    def of(cls, values: Sequence[bytes]) -> ByteStrings:
        """Return Python values."""
        lengths = np.array([len(value) for value in values], np.int64)
        data = np.frombuffer(b"".join(values) + bytes(_WORD), np.uint8)
        return cls(data, np.cumsum(lengths) - lengths, lengths)

    def take(self, rows: slice | Integers) -> ByteStrings:
        """Return some of the values."""
        return ByteStrings(self.data, self.starts[rows], self.lengths[rows])

    def words(self, position: int) -> Words:
        """Return eight bytes of each value, from a position on, as one number; bytes behind the end count as 0."""
        left = np.clip(self.lengths - position, 0, _WORD)
        at = self.starts + np.minimum(position, self.lengths)
        every = np.ndarray((len(self.data) - _WORD + 1,), ">u8", self.data.data, strides=(1,))
        unused = ((_WORD - left) * 8).astype(np.uint64)
        found: Words = every[at].astype(np.uint64) & np.where(left > 0, _ALL << np.minimum(unused, 63), np.uint64(0))
        return found


def has_number_keys(arrow_type: pa.DataType) -> bool:
    """True if 64 bits hold every value of a type. Raises TypeError for a type without an order."""
    if pa.types.is_dictionary(arrow_type):
        return has_number_keys(arrow_type.value_type)
    if pa.types.is_decimal(arrow_type):
        return bool(arrow_type.precision <= _LONG_DIGITS)
    if _is_bytes(arrow_type):
        return False
    if pa.types.is_nested(arrow_type) or pa.types.is_null(arrow_type):
        raise TypeError(f"Values of type {arrow_type} have no order.")
    return True


def number_keys(values: pa.Array) -> Words:
    """Return a key for each value of at most 64 bits; `NULL_KEY` for null.

    The two smallest values of a 64-bit type have the same key.
    """
    if pa.types.is_dictionary(values.type):
        return _by_dictionary(values, number_keys(values.dictionary))
    keys = np.maximum(_number_words(values), np.uint64(NULL_KEY + 1))
    if values.null_count:
        keys[~_valid(values)] = NULL_KEY
    return keys


def byte_strings(values: pa.Array) -> ByteStrings:
    """Return texts, binaries or decimals as bytes in their order. Bytes of null values are undefined."""
    if pa.types.is_decimal(values.type):
        high, low = _decimal_words(values)
        ordered = np.stack([high, low], axis=1).astype(">u8").view(np.uint8).reshape(-1)
        starts = np.arange(len(values), dtype=np.int64) * 16
        return ByteStrings(np.concatenate([ordered, np.zeros(_WORD, np.uint8)]), starts, np.full(len(values), 16))
    if not pa.types.is_large_binary(values.type):
        values = values.cast(pa.large_binary())
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(values) else (0, 0)
    data = np.zeros(last - first + _WORD, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(data_buffer, np.uint8)[first:last]
    starts = offsets[:-1] - first
    return ByteStrings(data, starts, np.diff(offsets))


def ranks_among(values: pa.Array, boundaries: Sequence[bytes]) -> Words:
    """Return for each value how many of the sorted `boundaries` are not above it; 0 for null."""
    if pa.types.is_dictionary(values.type):
        return _by_dictionary(values, ranks_among(values.dictionary, boundaries))
    ranks = _ranks(byte_strings(values), ByteStrings.of(boundaries))
    if values.null_count:
        ranks[~_valid(values)] = 0
    return ranks.astype(np.uint64)


def dense_ranks(values: pa.Array) -> Words:
    """Return the rank of each value among the distinct ones, from 1 on; 0 for null."""
    ranks: Words = pc.rank(values, "ascending", tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.uint64)
    if values.null_count:
        ranks[~_valid(values)] = NULL_KEY
    return ranks


def sort_order(columns: Sequence[pa.Array]) -> Integers:
    """Return the positions of rows in the order of some columns, the first one counting most. Equal rows stay."""
    words = [word for column in columns for word in _sort_words(column)]
    order: Integers = np.lexsort(words[::-1]) if words else np.zeros(0, np.int64)
    return order


# ------------------------------------------------------------------------------------------------------------ numbers
def _number_words(values: pa.Array) -> Words:
    """Return 64 bits in the order of the values; those of null values are undefined."""
    arrow_type, types = values.type, pa.types
    if types.is_decimal(arrow_type):
        return _decimal_words(values)[1] ^ _SIGN
    if types.is_floating(arrow_type):
        return _float_words(values.cast(pa.float64()))
    if types.is_boolean(arrow_type):
        values = values.cast(pa.int8())
    elif types.is_date32(arrow_type) or types.is_time32(arrow_type):
        values = values.view(pa.int32())
    elif not types.is_integer(arrow_type):
        values = values.view(pa.int64())
    numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    words: Words = numbers.view(np.uint64) ^ _SIGN
    return words


def _float_words(values: pa.Array) -> Words:
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.uint64)
    negative = (bits & _SIGN) != 0
    words: Words = bits ^ np.where(negative, _ALL, _SIGN)
    words[np.isnan(numbers)] = _ALL
    return words


def _decimal_words(values: pa.Array) -> tuple[Words, Words]:
    """Return the upper half of each number with its sign flipped, and the lower half."""
    if values.type.bit_width != 128:
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    buffer = values.buffers()[1]
    halves = np.frombuffer(buffer, "<u8").reshape(-1, 2)[values.offset : values.offset + len(values)]
    return halves[:, 1] ^ _SIGN, halves[:, 0]


def _sort_words(values: pa.Array) -> list[Any]:
    """Return numbers in the order of the values, the one that counts most first."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if _is_bytes(values.type):
        return [dense_ranks(values)]
    words: list[Any] = [_number_words(values)] if has_number_keys(values.type) else list(_decimal_words(values))
    if values.null_count:
        valid = _valid(values)
        return [valid, *(np.where(valid, word, 0) for word in words)]
    return words


# -------------------------------------------------------------------------------------------------------------- bytes
def _ranks(values: ByteStrings, boundaries: ByteStrings) -> Integers:
    """Return how many boundaries are not above each value.

    Values that equal some boundaries so far are compared with these by the next word, and at the end by length.
    """
    ranks = np.zeros(len(values.starts), np.int64)
    waiting: list[tuple[slice | Integers, int, int, int]] = []
    if len(boundaries.starts):
        waiting.append((slice(None), 0, len(boundaries.starts), 0))
    while waiting:
        rows, low, high, position = waiting.pop()
        some, candidates = values.take(rows), boundaries.take(slice(low, high))
        is_last = position >= int(candidates.lengths.max())
        found = some.lengths.view(np.uint64) if is_last else some.words(position)
        known = candidates.lengths.view(np.uint64) if is_last else candidates.words(position)
        left, right = _between(found, known)
        ranks[rows] = low + (right if is_last else left)
        for of_group, begin, end in () if is_last else _equal_so_far(left, right):
            chosen = of_group if isinstance(rows, slice) else rows[of_group]
            waiting.append((chosen, low + begin, low + end, position + _WORD))
    return ranks


def _between(found: Words, known: Words) -> tuple[Integers, Integers]:
    """Return how many of the sorted `known` numbers are below each number, and how many are not above it."""
    if known[0] == known[-1]:  # a common prefix
        return np.where(found > known[0], len(known), 0), np.where(found >= known[0], len(known), 0)
    right = np.searchsorted(known, found, "right")
    first = np.searchsorted(known, known, "left")
    before = np.maximum(right - 1, 0)
    return np.where(known[before] == found, first[before], right), right


def _equal_so_far(left: Integers, right: Integers) -> list[tuple[Integers, int, int]]:
    """Return the rows that equal some boundaries, by group, and the range of these boundaries."""
    tied = np.flatnonzero(left < right)
    if not len(tied):
        return []
    tied = tied[np.argsort(left[tied], kind="stable")]
    begins, first = np.unique(left[tied], return_index=True)
    groups = np.split(tied, first[1:])
    return [(group, int(begin), int(right[group[0]])) for group, begin in zip(groups, begins.tolist(), strict=True)]


def _is_bytes(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
        or types.is_binary(arrow_type)
        or types.is_large_binary(arrow_type)
        or types.is_binary_view(arrow_type)
        or types.is_fixed_size_binary(arrow_type)
    )


def _by_dictionary(values: pa.Array, keys: Words) -> Words:
    indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
    found: Words = keys[indices] if len(keys) else np.zeros(len(values), np.uint64)
    if values.indices.null_count:
        found[~_valid(values.indices)] = NULL_KEY
    return found


def _valid(values: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = values.is_valid().to_numpy(zero_copy_only=False)
    return found
