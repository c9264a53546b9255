"""Offsets and child values of Arrow lists and maps of any type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def list_parts(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the offsets, which begin at 0, and the child values of a list or map; entries of a map are structs.

    The offsets are never a slice, because Arrow cannot build a list from sliced offsets and a mask.
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
