"""Decoding of variant values of one type to Arrow values (Variant Shredding; variant encoding)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.variant_objects import Bytes, Integers, binary_parts
from pyspark_delta.data.variants import binary_slices

Mask = np.ndarray[Any, np.dtype[np.bool_]]

# The kind of a value is the type id of a primitive (short strings count as strings), or one of these.
NULL, OBJECT, OTHER = 0, 100, 101
_TRUE, _FALSE = 1, 2
_STRING, _BINARY = 16, 15
_INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}  # type id: bytes
_DECIMALS = {8: 4, 9: 8}
_FIXED: dict[int, tuple[pa.DataType, int]] = {
    7: (pa.float64(), 8),
    14: (pa.float32(), 4),
    11: (pa.date32(), 4),
    12: (pa.timestamp("us", tz="UTC"), 8),
    13: (pa.timestamp("us"), 8),
}
_PRECISION = 18
# Type ids of values that can share one typed column. Integers become decimals if some values are decimals.
_NUMBERS = frozenset([*_INTEGERS, *_DECIMALS])
_CLASSES: dict[frozenset[int], pa.DataType] = {
    frozenset([_TRUE, _FALSE]): pa.bool_(),
    _NUMBERS: pa.int64(),
    frozenset([_STRING]): pa.string(),
    frozenset([_BINARY]): pa.binary(),
    **{frozenset([number]): kind for number, (kind, _) in _FIXED.items()},
}
_LEAST_SHARE = 0.9
_POWERS = 10 ** np.arange(_PRECISION + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded values: each is `size` bytes from `start` on in `data`. A value of no bytes is missing."""

    start: Integers
    size: Integers
    data: Bytes

    @classmethod
    def of(cls, values: pa.Array) -> Encoded:
        """Return the values of a binary array. A null value is missing."""
        offsets, data = binary_parts(values)
        sizes = np.diff(offsets)
        return cls(
            offsets[:-1], np.where(np.asarray(values.is_valid()), sizes, 0) if values.null_count else sizes, data
        )

    def __len__(self) -> int:
        return len(self.start)

    def take(self, chosen: Any) -> Encoded:
        """Return some values, by positions or by a mask."""
        return Encoded(self.start[chosen], self.size[chosen], self.data)

    def where(self, chosen: Any) -> Encoded:
        """Return the values, with those missing that a mask does not select."""
        return Encoded(self.start, np.where(chosen, self.size, 0), self.data)

    def binaries(self) -> pa.Array:
        """Return the values as a binary array, with null for missing ones. Raises pa.ArrowInvalid beyond 2 GiB."""
        if not self.size.any():
            return pa.nulls(len(self), pa.binary())
        return pc.if_else(pa.array(self.size > 0), self._contents(), None)

    def _contents(self) -> pa.Array:
        within = np.arange(int(self.size.sum())) - np.repeat(np.cumsum(self.size) - self.size, self.size)
        return binary_slices(self.data[np.repeat(self.start, self.size) + within], np.append(0, np.cumsum(self.size)))

    def heads(self) -> Bytes:
        """Return the first byte of each value, zero if it is missing."""
        there = self.size > 0
        heads = np.zeros(len(self), np.uint8)
        heads[there] = self.data[self.start[there]]
        return heads

    def kinds(self) -> Integers:
        """Return the kind of each value."""
        heads = self.heads().astype(np.int64)
        kinds = np.choose(heads & 3, [heads >> 2, np.int64(_STRING), np.int64(OBJECT), np.int64(OTHER)])
        return np.where(self.size > 0, kinds, OTHER)


def common_type(values: Encoded) -> pa.DataType | None:
    """Return the type of nearly all present, non-null values; None if shredding does not support it."""
    kinds = values.kinds()
    there = (kinds != NULL) & (values.size > 0)
    least = _LEAST_SHARE * np.count_nonzero(there)
    for members, kind in _CLASSES.items():
        alike = np.count_nonzero(np.isin(kinds, list(members)))
        if alike and alike >= least:
            return _decimal_type(values, kinds) if members == _NUMBERS else kind
    return None


def _decimal_type(values: Encoded, kinds: Integers) -> pa.DataType | None:
    """Return the type of numbers: a decimal type if some are decimals; None if their scale is too large."""
    if not np.isin(kinds, list(_DECIMALS)).any():
        return pa.int64()
    scale = int(_decimals(values, kinds)[1].max())
    return pa.decimal128(_PRECISION, scale) if scale <= _PRECISION else None


def typed_values(values: Encoded, kind: pa.DataType) -> pa.Array:
    """Return the values of a type from `common_type`; null if a value is of another type.

    Integers, and decimals of another scale, count as the same (Variant Shredding: exact numeric). Raises
    pa.ArrowInvalid for a value that is shorter than its type requires.
    """
    kinds = values.kinds()
    types = pa.types
    if types.is_boolean(kind):
        return pa.array(kinds == _TRUE, mask=~np.isin(kinds, (_TRUE, _FALSE)))
    if types.is_int64(kind):
        return pa.array(_integers(values, kinds), mask=~np.isin(kinds, list(_INTEGERS)))
    if types.is_decimal(kind):
        return _as_decimal(values, kinds, kind)
    if types.is_string(kind) or types.is_binary(kind):
        wanted = kinds == (_STRING if types.is_string(kind) else _BINARY)
        return _as_binary(values, wanted).cast(kind)
    found = next(number for number, (arrow, _) in _FIXED.items() if arrow == kind)
    raw = _numbers(values, kinds == found, 1, _FIXED[found][1])
    return pc.if_else(pa.array(kinds == found), pa.array(raw).view(kind), None)


def _integers(values: Encoded, kinds: Integers) -> Integers:
    """Return integers; zero for all other values."""
    result = np.zeros(len(values), np.int64)
    for kind, width in _INTEGERS.items():
        result += _numbers(values, kinds == kind, 1, width)
    return result


def _decimals(values: Encoded, kinds: Integers) -> tuple[Integers, Integers]:
    """Return unscaled values and scales of decimals of up to 18 digits; zero for all other values."""
    unscaled = np.zeros(len(values), np.int64)
    for kind, width in _DECIMALS.items():
        unscaled += _numbers(values, kinds == kind, 2, width)
    return unscaled, _numbers(values, np.isin(kinds, list(_DECIMALS)), 1, 1).astype(np.int64) & 0xFF


def _as_decimal(values: Encoded, kinds: Integers, kind: pa.DataType) -> pa.Array:
    unscaled, scales = _decimals(values, kinds)
    unscaled = unscaled + _integers(values, kinds)
    fits = np.isin(kinds, [*_INTEGERS, *_DECIMALS]) & (scales <= kind.scale)
    factors = _POWERS[np.where(fits, kind.scale - scales, 0)]
    limits = (_POWERS[_PRECISION] - 1) // factors
    fits &= (unscaled <= limits) & (unscaled >= -limits)
    low = np.where(fits, unscaled, 0) * np.where(fits, factors, 1)
    both = np.ascontiguousarray(np.stack([low, low >> 63], axis=1))  # 128 bits, the sign in the upper half
    made = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(both)])
    return pc.if_else(pa.array(fits), made, None)


def _as_binary(values: Encoded, wanted: Mask) -> pa.Array:
    """Return the contents of strings or binaries; null for all other values."""
    heads = values.heads().astype(np.int64)
    short = wanted & (heads & 3 == 1)
    sizes = np.where(short, heads >> 2, _numbers(values, wanted & ~short, 1, 4).astype(np.int64) & 0xFFFFFFFF)
    before = np.where(short, 1, 5)
    sizes = np.where(wanted, sizes, 0)
    if (wanted & (before + sizes > values.size)).any():
        raise pa.ArrowInvalid("a string or binary of a variant is longer than its value")
    contents = Encoded(values.start + before, sizes, values.data)._contents()
    return pc.if_else(pa.array(wanted), contents, None)


def _numbers(values: Encoded, wanted: Mask, skipped: int, width: int) -> Any:
    """Return little-endian signed numbers of some bytes after the first `skipped` ones; zero if not wanted."""
    result = np.zeros(len(values), f"<i{width}")
    if (values.size[wanted] < skipped + width).any():
        raise pa.ArrowInvalid("a variant ends inside a number")
    at = (values.start[wanted] + skipped)[:, None] + np.arange(width)
    result[wanted] = np.ascontiguousarray(values.data[at]).view(f"<i{width}").reshape(-1)
    return result
