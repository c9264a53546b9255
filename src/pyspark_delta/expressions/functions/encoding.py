"""Hexadecimal text and other encodings of bytes and numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, by_array, takes
from pyspark_delta.expressions.literals import INTEGRAL_BITS
from pyspark_delta.expressions.tree import Expression, type_of
from pyspark_delta.schema.types import BINARY, LONG, STRING

_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def _hex(site: Site) -> Expression:
    source = type_of(site.arguments[0])
    if source in (STRING, BINARY):
        return site.call(*site.arguments, to=STRING)
    if source in INTEGRAL_BITS:
        return site.call(site.typed(0, LONG), to=STRING)
    raise site.refusal(f"the type {source}")


def _bin(site: Site) -> Expression:
    if type_of(site.arguments[0]) not in INTEGRAL_BITS:
        raise site.refusal(f"the type {type_of(site.arguments[0])}")
    return site.call(site.typed(0, LONG), to=STRING)


FUNCTIONS = {"hex": Function(_hex, takes(1)), "bin": Function(_bin, takes(1))}


def _text(octets: np.ndarray, offsets: np.ndarray, source: pa.Array) -> pa.Array:
    if offsets[-1] > 2**31 - 1:
        raise pa.ArrowInvalid("the texts of one batch are larger than 2 GB")
    buffers = [pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(octets))]
    found = pa.StringArray.from_buffers(len(offsets) - 1, *buffers)
    return pa.compute.if_else(source.is_valid(), found, pa.scalar(None, pa.string()))


def _to_hex(value: pa.Array) -> pa.Array:
    if pa.types.is_integer(value.type):
        return _digits(value, 4)
    _, ends, data = value.buffers()
    if not len(value):
        return pa.array([], pa.string())
    offsets = np.frombuffer(ends, np.int32, len(value) + 1, value.offset * 4).astype(np.int64)
    known = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    octets = known[offsets[0] : offsets[-1]]
    digits = np.empty((len(octets), 2), np.uint8)
    digits[:, 0], digits[:, 1] = _DIGITS[octets >> 4], _DIGITS[octets & 15]
    return _text(digits.reshape(-1), (offsets - offsets[0]) * 2, value)


def _digits(value: pa.Array, bits: int) -> pa.Array:
    """Return numbers in base 2 or 16, without leading zeros; negative ones as 64 bits."""
    numbers = value.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    count = 64 // bits
    shifts = np.arange(count - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
    places = ((numbers[:, None] >> shifts) & np.uint64((1 << bits) - 1)).astype(np.uint8)
    kept = np.logical_or.accumulate(places != 0, axis=1)
    kept[:, -1] = True
    offsets = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    return _text(_DIGITS[places[kept]], offsets, value)


KERNELS: dict[str, Kernel] = {"hex": by_array(_to_hex), "bin": by_array(lambda value: _digits(value, 1))}
