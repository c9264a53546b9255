"""Decompose lists and maps of Arrow, in any form, into offsets and child values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def list_parts(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return offsets from zero, and just the values below them, of any list or map; the entries of a map are structs.

    Arrow builds no list from the offsets of a slice and a mask: the offsets returned here are always complete arrays.
    """
    types = pa.types
    if not (types.is_map(array.type) or types.is_list(array.type)):
        lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
        return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)]), pc.list_flatten(array)
    offsets = array.offsets
    values = array.values if types.is_list(array.type) else _entries(array)
    if not len(array):
        return pa.array([0], pa.int32()), values.slice(0, 0)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if first == 0 and offsets.offset == 0:
        return offsets, values.slice(0, last)
    return pc.subtract(offsets, pa.scalar(first, pa.int32())), values.slice(first, last - first)


def _entries(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
