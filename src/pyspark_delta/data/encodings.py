"""Arrow data without encodings that its kernels do not take: run ends, list views, nested values in dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyspark_delta.data.lists import list_parts

_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def decoded_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of `decoded` values. Dictionaries stay if their values are numbers, texts or binaries."""
    types = pa.types
    if types.is_run_end_encoded(data_type):
        return _inner_type(data_type.value_type)
    if types.is_dictionary(data_type):
        inner = _inner_type(data_type.value_type)
        stays = not (types.is_nested(inner) or types.is_dictionary(inner))
        return pa.dictionary(data_type.index_type, inner, data_type.ordered) if stays else inner
    if types.is_struct(data_type):
        return pa.struct([_field(field) for field in data_type])
    if types.is_map(data_type):
        return pa.map_(_field(data_type.key_field), _field(data_type.item_field), data_type.keys_sorted)
    if types.is_list(data_type) or types.is_list_view(data_type):
        return pa.list_(_field(data_type.value_field))
    return data_type


def decoded(values: pa.Array) -> pa.Array:
    """Return the values in their `decoded_type`."""
    target, types = decoded_type(values.type), pa.types
    if target == values.type:
        return values
    if types.is_run_end_encoded(values.type):
        places = np.arange(values.offset, values.offset + len(values))
        runs = np.searchsorted(values.run_ends.to_numpy(), places, side="right")
        return _inner(values.values).take(pa.array(runs))
    if types.is_dictionary(values.type):
        inner = _inner(values.dictionary)
        if inner.type == target:
            return inner.take(values.indices)
        return pa.DictionaryArray.from_arrays(values.indices, inner, ordered=target.ordered)
    mask = values.is_null() if values.null_count else None
    if types.is_struct(target):
        members = [decoded(values.field(number)) for number in range(target.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=mask)
    offsets, children = list_parts(values)
    if types.is_map(target):
        keys, items = decoded(children.field(0)), decoded(children.field(1))
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=mask)
    return pa.ListArray.from_arrays(offsets, decoded(children), type=target, mask=mask)


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(decoded_type(field.type))


def _inner_type(data_type: pa.DataType) -> pa.DataType:
    return decoded_type(_VIEWS.get(data_type, data_type))


def _inner(values: pa.Array) -> pa.Array:
    """Return the values of an encoding; Arrow takes rows of texts and binaries, not of views."""
    return decoded(values.cast(_VIEWS[values.type]) if values.type in _VIEWS else values)
