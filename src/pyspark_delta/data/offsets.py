"""Offsets of lists and maps, which arrays without elements may lack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with offsets in all lists and maps.

    Arrow lets arrays without elements have none, and Spark before 4.2 sends none. PyArrow reads the first offset of
    each array to measure it, which ends the process if there is no memory.
    """
    for number, field in enumerate(batch.schema):
        if pa.types.is_nested(field.type) and _lacks_offsets(batch.column(number)):
            copied = batch.column(number).take(pa.array(np.arange(batch.num_rows)))
            batch = batch.set_column(number, field, copied)
    return batch


def _lacks_offsets(array: Any) -> bool:
    kind = array.type
    if pa.types.is_struct(kind):
        return any(_lacks_offsets(array.field(number)) for number in range(kind.num_fields))
    children: tuple[Any, ...]
    if pa.types.is_map(kind):
        children = (array.keys, array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = (array.values,)
    else:
        return False
    offsets = array.buffers()[1]
    return (not len(array) and not (offsets and offsets.size)) or any(map(_lacks_offsets, children))
