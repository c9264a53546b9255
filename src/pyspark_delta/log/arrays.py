"""Build Arrow arrays from raw buffers.

`pyarrow.array` imports pandas at its first call, which costs more than opening a table; these constructors do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def string_array(values: Sequence[bytes]) -> pa.StringArray | pa.LargeStringArray:
    """Return a string array without nulls from UTF-8 bytes; a large_string array beyond 2 GiB."""
    lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = pa.py_buffer(b"".join(values))
    if offsets[-1] < 2**31:
        return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets.astype(np.int32)), data)
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(offsets), data)


def int64_array(values: Any) -> pa.Int64Array:
    """Return an int64 array without nulls that shares the memory of a numpy array."""
    contiguous = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(contiguous), [None, pa.py_buffer(contiguous)])


def bool_array(values: Any) -> pa.BooleanArray:
    """Return a boolean array without nulls from a numpy array."""
    bits = np.packbits(np.ascontiguousarray(values, dtype=bool), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def map_array(names: Sequence[str], columns: Sequence[pa.Array], length: int) -> pa.MapArray:
    """Return maps of string to string for `length` rows: the same keys in each, values from one column each."""
    width = len(names)
    offsets = np.arange(length + 1, dtype=np.int32) * width
    if width == 0 or length == 0:
        keys, values = pa.nulls(0, pa.string()), pa.nulls(0, pa.string())
    else:
        keys = string_array([name.encode() for name in names]).take(int64_array(np.tile(np.arange(width), length)))
        order = np.arange(width * length).reshape(width, length).T.ravel()
        values = columns[0] if width == 1 else pa.concat_arrays(columns).take(int64_array(order))
    return pa.MapArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)]), keys, values
    )


def is_coded_map(data_type: pa.DataType) -> bool:
    """True if a type is a map of strings to strings, both dictionary-encoded."""
    if not pa.types.is_map(data_type):
        return False
    inner = (data_type.key_type, data_type.item_type)
    return all(pa.types.is_dictionary(t) and pa.types.is_string(t.value_type) for t in inner)


def conform_map(maps: pa.MapArray, wanted: pa.MapType) -> pa.MapArray:
    """Cast maps to another type of maps. Raises Arrow's error if that is not possible."""
    maps = pa.concat_arrays([maps])  # without an offset
    mask = maps.is_null() if maps.null_count else None
    keys, items = maps.keys.cast(wanted.key_type), maps.items.cast(wanted.item_type)
    return pa.MapArray.from_arrays(maps.offsets, keys, items, mask=mask)


def map_value(maps: pa.MapArray, key: str) -> pa.Array:
    """Return the value of one key in each row; null if the row lacks the key.

    If the maps are dictionary-encoded and have no other keys, the result stays dictionary-encoded.
    """
    values = _aligned_value(maps, key)
    return values if values is not None else _looked_up(maps, key)


def _aligned_value(maps: pa.MapArray, key: str) -> pa.Array | None:
    """Return the values if every row has the same keys in the same order, as in nearly all logs."""
    length = len(maps)
    if length == 0 or maps.null_count:
        return None
    offsets = np.frombuffer(maps.buffers()[1], dtype=np.int32)[maps.offset : maps.offset + length + 1]
    width = int(offsets[1] - offsets[0])
    if width == 0 or int(offsets[-1] - offsets[0]) != width * length or not (np.diff(offsets) == width).all():
        return None
    start = int(offsets[0])
    keys, items = maps.keys, maps.items  # the complete children, not only those of the slice
    first = [keys[start + i].as_py() for i in range(width)]
    if key not in first:
        return None
    position = first.index(key)
    column = keys.slice(start, width * length)
    if width > 1:
        column = column.take(int64_array(np.arange(position, width * length, width)))
    distinct = column.unique()
    if len(distinct) != 1 or distinct[0].as_py() != key:
        return None
    values = items.slice(start, width * length)
    if width == 1:
        return values
    values = values.take(int64_array(np.arange(position, width * length, width)))
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values  # codes of all keys' values


def chosen_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows for which a mask is true; several times faster than `RecordBatch.filter`."""
    return batch.take(pc.indices_nonzero(mask))


def _looked_up(maps: pa.MapArray, key: str) -> pa.Array:
    if is_coded_map(maps.type):
        maps = conform_map(maps, pa.map_(pa.string(), pa.string()))
    return pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first")
