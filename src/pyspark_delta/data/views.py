"""Convert Arrow's view types, which files of Rust writers request: few kernels support them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same values, of types without views at every level."""
    schema = pa.schema([field.with_type(_plain(field.type)) for field in batch.schema])
    if schema == batch.schema:
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(data_type: pa.DataType) -> pa.DataType:
    if pt.is_string_view(data_type):
        return pa.string()
    if pt.is_binary_view(data_type):
        return pa.binary()
    if pt.is_struct(data_type):
        return pa.struct([_plain_field(member) for member in data_type])
    if pt.is_map(data_type):
        return pa.map_(_plain(data_type.key_type), _plain_field(data_type.item_field))
    if pt.is_list(data_type) or pt.is_list_view(data_type) or pt.is_large_list_view(data_type):
        return pa.list_(_plain_field(data_type.value_field))
    if pt.is_large_list(data_type):
        return pa.large_list(_plain_field(data_type.value_field))
    if pt.is_fixed_size_list(data_type):
        return pa.list_(_plain_field(data_type.value_field), data_type.list_size)
    return data_type


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))
