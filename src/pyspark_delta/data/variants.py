"""Conversion of variants in data files, shredded or not, to the binaries `value` and `metadata` (Variant Shredding).

A shredded variant has parts of its values in typed columns. Values are built from the innermost level: each node
returns one encoded value per row, null if the value is missing. Sizes and offsets in objects and arrays have four
bytes, which the encoding allows for values of any size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.variant_objects import build_objects, empty_metadata
from pyspark_delta.schema.arrow import VARIANT_STORAGE, is_list_like

_NULL = b"\x00"
_TRUE, _FALSE = b"\x04", b"\x08"
_SHORT_STRING = 64
_STRING, _BINARY = 16, 15
# is_large, four-byte offsets, array
_ARRAY_HEADER = bytes([(0b111 << 2) | 3])

# Primitive type ids of the encoding.
_FIXED: dict[pa.DataType, int] = {
    pa.int8(): 3,
    pa.int16(): 4,
    pa.int32(): 5,
    pa.int64(): 6,
    pa.float64(): 7,
    pa.float32(): 14,
    pa.date32(): 11,
    pa.time64("us"): 17,
    pa.binary(16): 20,
}


def reassemble(array: pa.Array) -> pa.Array:
    """Return the variant column as struct<value, metadata>; null variants stay null.

    Raises pa.ArrowInvalid for a file that breaks the shredding rules.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    # The metadata of null variants is arbitrary.
    metadata = pc.if_else(array.is_valid(), array.field("metadata").cast(pa.binary()), empty_metadata())
    value = _encode(array, metadata)
    # A variant with neither part is the variant null.
    value = value.fill_null(_NULL)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([value, metadata], fields=list(VARIANT_STORAGE), mask=mask)


def _encode(node: pa.Array, metadata: pa.Array) -> pa.Array:
    """Return the encoded values of a struct with the field `value`, `typed_value` or both."""
    names = {field.name for field in node.type}
    value = node.field("value").cast(pa.binary()) if "value" in names else pa.nulls(len(node), pa.binary())
    if "typed_value" not in names:
        return value
    typed = node.field("typed_value")
    if pa.types.is_struct(typed.type):
        return _encode_object(typed, value, metadata)
    encoded = _encode_array(typed, metadata) if is_list_like(typed.type) else encode_primitive(typed)
    return pc.coalesce(encoded, value)


def _encode_object(typed: pa.Array, value: pa.Array, metadata: pa.Array) -> pa.Array:
    fields = {field.name: _encode(typed.field(field.name), metadata) for field in typed.type}
    objects = build_objects(fields, pc.if_else(typed.is_valid(), value, None), typed.is_valid(), metadata)
    return pc.if_else(typed.is_valid(), objects, value)


def _encode_array(typed: pa.Array, metadata: pa.Array) -> pa.Array:
    lists = typed.cast(pa.list_(typed.type.value_field))
    rows = len(lists)
    offsets = np.asarray(lists.offsets).astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if rows else (0, 0)
    offsets = offsets - first if rows else np.zeros(1, np.int64)
    counts = np.diff(offsets)
    of_element = pa.array(np.repeat(np.arange(rows), counts))
    elements = _encode(lists.values.slice(first, last - first), metadata.take(of_element)).fill_null(_NULL)
    sizes = np.asarray(pc.binary_length(elements)).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    # One table of count + 1 relative offsets for each array.
    table_starts = np.concatenate([[0], np.cumsum(counts + 1)])
    entry = np.arange(table_starts[-1]) - np.repeat(table_starts[:-1], counts + 1)
    starts = ends[offsets[:-1]]
    table = ends[np.repeat(offsets[:-1], counts + 1) + entry] - np.repeat(starts, counts + 1)
    encoded = pc.binary_join_element_wise(
        pa.scalar(_ARRAY_HEADER, pa.binary()),
        fixed_binary(counts.astype("<u4")[:, None].view(np.uint8)),
        binary_slices(table.astype("<u4").view(np.uint8), table_starts * 4),
        binary_slices(_data_bytes(elements), ends[offsets]),
        pa.scalar(b"", pa.binary()),
    )
    return pc.if_else(lists.is_valid(), encoded, None)


def encode_primitive(array: pa.Array) -> pa.Array:
    """Return typed values as encoded variants; null stays null (missing)."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return encode_primitive(array.storage)
    types = pa.types
    if types.is_boolean(kind):
        return pc.if_else(array, pa.scalar(_TRUE, pa.binary()), pa.scalar(_FALSE, pa.binary()))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _with_length(array.cast(pa.binary()), _STRING)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return _with_length(array.cast(pa.binary()), _BINARY)
    if types.is_decimal(kind):
        return _encode_decimal(array)
    if types.is_timestamp(kind) and kind.unit in ("us", "ns"):
        identifier = (12 if kind.tz else 13) if kind.unit == "us" else (18 if kind.tz else 19)
        return _fixed(array.view(pa.int64()), identifier)
    if (found := _FIXED.get(kind)) is not None:
        return _fixed(array, found)
    raise pa.ArrowInvalid(f"{kind} is not a type of shredded variants")


def _encode_decimal(array: pa.Array) -> pa.Array:
    precision, scale = array.type.precision, array.type.scale
    identifier, width = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)
    unscaled = _raw_values(array.cast(pa.decimal128(precision, scale)), 16)[:, :width]
    head = np.tile(np.array([identifier << 2, scale], np.uint8), (len(array), 1))
    return _masked(fixed_binary(np.concatenate([head, unscaled], axis=1)), array)


def _fixed(array: pa.Array, identifier: int) -> pa.Array:
    width = array.type.bit_width // 8
    head = np.full((len(array), 1), identifier << 2, np.uint8)
    return _masked(fixed_binary(np.concatenate([head, _raw_values(array, width)], axis=1)), array)


def _with_length(array: pa.Array, identifier: int) -> pa.Array:
    sizes = np.asarray(pc.binary_length(array).fill_null(0)).astype("<u4")
    head = np.concatenate([np.full((len(array), 1), identifier << 2, np.uint8), sizes[:, None].view(np.uint8)], axis=1)
    long_head = fixed_binary(head)
    if identifier == _STRING:
        short = sizes < _SHORT_STRING
        short_head = fixed_binary(((sizes.astype(np.uint8) << 2) | 1)[:, None])
        long_head = pc.if_else(pa.array(short), short_head, long_head)
    return pc.binary_join_element_wise(long_head, array, pa.scalar(b"", pa.binary()))


def _raw_values(array: pa.Array, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the bytes of fixed-width values, one row each. The bytes of nulls are arbitrary."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    raw = np.frombuffer(data, np.uint8)
    return raw[array.offset * width : (array.offset + len(array)) * width].reshape(len(array), width)


def _masked(encoded: pa.Array, like: pa.Array) -> pa.Array:
    return pc.if_else(like.is_valid(), encoded, None) if like.null_count else encoded


def fixed_binary(rows: np.ndarray[Any, Any]) -> pa.Array:
    """Return a binary array of equally long values, one per row of a matrix of bytes."""
    count, width = rows.shape
    return binary_slices(np.ascontiguousarray(rows, np.uint8).reshape(-1), np.arange(count + 1) * width)


def binary_slices(data: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> pa.Array:
    """Return a binary array over `data`, cut at `offsets`. Raises pa.ArrowInvalid beyond 2 GiB."""
    if len(offsets) and offsets[-1] > np.iinfo(np.int32).max:
        raise pa.ArrowInvalid("the variants of one batch exceed 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data, np.uint8))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _data_bytes(array: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the values of a binary array without nulls, concatenated."""
    if not len(array) or array.buffers()[2] is None:
        return np.zeros(0, np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
