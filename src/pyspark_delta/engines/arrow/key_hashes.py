"""Hashes of keys, equal for equal keys of both sides of a merge, and a filter of rows by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_delta.engines.arrow.key_search import selected_rows
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.tree import Expression

_ODD, _MIX, _MIX_TOO = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_NULL = np.uint64(0x5851F42D4C957F2D)
_MOST_SLOTS = 1 << 26  # one byte each


def hash_keys(keys: Sequence[pa.Array]) -> np.ndarray:
    """Return a hash of 64 bits for each row of some columns. Rows with equal values, or nulls, have equal hashes."""
    total = np.zeros(len(keys[0]), np.uint64)
    for column in keys:
        total = _mixed(total * _ODD + _hashes(column))
    return total


def _hashes(values: pa.Array) -> np.ndarray:
    types = pa.types
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.null_count:
        found = np.full(len(values), _NULL)
        found[values.is_valid().to_numpy(zero_copy_only=False)] = _hashes(values.drop_null())
        return found
    if types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if types.is_decimal(values.type):
        values = values.cast(pa.decimal128(38, values.type.scale))
        words = np.frombuffer(values.buffers()[1], np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
        return _mixed(words[0::2] * _ODD + words[1::2])
    if types.is_string(values.type) or types.is_binary(values.type):
        return _of_bytes(values.cast(pa.binary()))
    width = values.type.bit_width
    numbers = values.view({8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width])
    return _mixed(numbers.cast(pa.int64()).to_numpy().view(np.uint64))


def _of_bytes(values: pa.BinaryArray) -> np.ndarray:
    """Return the hashes of binary values: the sum of their bytes, each times a number for its place."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    lengths = np.diff(ends)
    sums = lengths.astype(np.uint64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        bytes_of = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
        places = np.arange(len(bytes_of)) - np.repeat(ends[:-1] - ends[0], lengths)
        weighted = (bytes_of + np.uint64(1)) * _mixed(places.astype(np.uint64))
        sums[filled] += np.add.reduceat(weighted, (ends[:-1] - ends[0])[filled])
    return _mixed(sums)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return numbers with well distributed bits (the finalizer of splitmix64)."""
    numbers = numbers + _ODD
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX_TOO
    mixed: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return mixed


@dataclass(frozen=True)
class HashFilter:
    """Keeps the rows whose keys may be among those of a source, by their hashes."""

    columns: tuple[Expression, ...]
    taken: np.ndarray

    @classmethod
    def of(cls, columns: tuple[Expression, ...], hashes: Iterable[np.ndarray], rows: int) -> HashFilter:
        """Return the filter for some hashes, of about `rows` rows."""
        taken = np.zeros(min(_MOST_SLOTS, 1 << (8 * rows).bit_length()), np.bool_)
        for part in hashes:
            taken[part & np.uint64(len(taken) - 1)] = True
        return cls(columns, taken)

    def prepared(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return the function that keeps rows."""
        return self._keep

    def _keep(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        hashes = hash_keys([compute(column, rows) for column in self.columns])
        return selected_rows(rows, self.taken[hashes & np.uint64(len(self.taken) - 1)])
