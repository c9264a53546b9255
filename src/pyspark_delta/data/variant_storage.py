"""Variants as files store them: two binaries that are never null. Those of a null variant are empty."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import VARIANT, ArrayType, DataType, MapType, StructType


def has_variants(data_type: DataType) -> bool:
    """Return True if the type contains a variant."""
    return any(found == VARIANT for found in types_in(data_type))


def fill_variants(values: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """Return the same values, with empty binaries inside null variants at every level.

    The binaries of a variant then have no null bitmap: Arrow assumes that a bitmap with an unknown count has nulls.
    """
    return pa.chunked_array([_fill(chunk, data_type) for chunk in values.chunks], values.type)


def _fill(values: Any, data_type: DataType) -> Any:
    if not has_variants(data_type):
        return values
    match data_type:
        case StructType(fields):
            members = [_fill(pc.struct_field(values, [i]), field.type) for i, field in enumerate(fields)]
            return pa.StructArray.from_arrays(members, fields=list(values.type), mask=pc.is_null(values))
        case ArrayType(element):
            values = _from_start(values)
            items, nulls = _fill(values.values, element), pc.is_null(values)
            return pa.ListArray.from_arrays(values.offsets, items, type=values.type, mask=nulls)
        case MapType(key, value):
            values = _from_start(values)
            keys, items, nulls = _fill(values.keys, key), _fill(values.items, value), pc.is_null(values)
            return pa.MapArray.from_arrays(values.offsets, keys, items, type=values.type, mask=nulls)
        case _:
            members = [_filled(pc.struct_field(values, [i])) for i in range(values.type.num_fields)]
            nulls = pc.is_null(values) if values.null_count else None
            return pa.StructArray.from_arrays(members, fields=list(values.type), mask=nulls)


def _filled(binaries: Any) -> Any:
    """Return binaries without a null bitmap; nulls become empty."""
    filled = pc.fill_null(binaries, b"")
    _, *data = filled.buffers()
    return pa.Array.from_buffers(filled.type, len(filled), [None, *data], 0, filled.offset)


def _from_start(values: Any) -> Any:
    """Return the same list or map array, but not as a slice of a longer one."""
    return values.take(pa.array(range(len(values)))) if values.offset else values
