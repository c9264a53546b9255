"""Converts record batches to exactly the Arrow schema that Spark expects from a Python Data Source.

Spark compares names, nullability and nested field names, and rejects differences. If only these differ, they are
replaced without copying the buffers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyspark_delta.errors import DataFileError


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the schema `schema`. Columns are matched by position.

    Raises DataFileError for a null in a field that is not nullable.
    """
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        shaped = column if _same_layout(column.type, field.type) else _cast(column, field)
        _require_values(shaped, field, field.name)
        columns.append(shaped)
    plain = pa.RecordBatch.from_arrays(columns, names=schema.names) if columns else batch
    return pa.record_batch(_Relabelled(plain, schema))


class _Relabelled:
    """A record batch that exports its buffers with another schema (Arrow PyCapsule interface)."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch, self._schema = batch, schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        _, array = self._batch.__arrow_c_array__()
        return self._schema.__arrow_c_schema__(), array


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return the values with the layout of a field: encoding, size of offsets, time unit, and order of members."""
    target = _all_nullable(field.type)
    if pt.is_struct(column.type) and pt.is_struct(target):
        members = [pc.struct_field(column, [member.name]) for member in field.type]  # a name alone may mean a path
        cast = [
            item if _same_layout(item.type, member.type) else _cast(item, member)
            for item, member in zip(members, field.type, strict=True)
        ]
        labels = [pa.field(member.name, item.type) for item, member in zip(cast, field.type, strict=True)]
        return pa.StructArray.from_arrays(cast, fields=labels, mask=column.is_null())
    return column.cast(target)


def _same_layout(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Return True if two types differ only in nullability, metadata, and names of elements, keys and values."""
    if pt.is_struct(expected):
        return (
            pt.is_struct(actual)
            and [member.name for member in actual] == [member.name for member in expected]
            and all(_same_layout(a.type, e.type) for a, e in zip(actual, expected, strict=True))
        )
    if pt.is_map(expected):
        return (
            pt.is_map(actual)
            and _same_layout(actual.key_type, expected.key_type)
            and _same_layout(actual.item_type, expected.item_type)
        )
    if pt.is_list(expected):
        return pt.is_list(actual) and _same_layout(actual.value_type, expected.value_type)
    return bool(actual == expected)


def _all_nullable(data_type: pa.DataType) -> pa.DataType:
    if pt.is_struct(data_type):
        return pa.struct([pa.field(member.name, _all_nullable(member.type)) for member in data_type])
    if pt.is_map(data_type):
        return pa.map_(_all_nullable(data_type.key_type), _all_nullable(data_type.item_type))
    if pt.is_list(data_type):
        return pa.list_(pa.field("element", _all_nullable(data_type.value_type)))
    return data_type


def _require_values(column: pa.Array, field: pa.Field, where: str) -> None:
    """Raise DataFileError for a null in a column or nested field that is not nullable.

    Spark's generated code would read it as a value.
    """
    if not field.nullable and column.null_count:
        raise DataFileError(
            f"The column '{where}' is declared NOT NULL, but the data files hold {column.null_count} nulls in it. Find "
            f"the rows with pyspark_delta.Table, then repair them or drop the NOT NULL constraint."
        )
    if pt.is_struct(field.type):
        for member in field.type:
            if not _is_free(member):
                values = pc.struct_field(column, [member.name])
                present = values.filter(column.is_valid()) if column.null_count else values
                _require_values(present, member, f"{where}.{member.name}")
    elif pt.is_map(field.type) and not _is_free(field.type.item_field):
        flat = pa.ListArray.from_arrays(column.offsets, column.items, mask=column.is_null())
        _require_values(flat.flatten(), field.type.item_field, f"{where}.value")
    elif pt.is_list(field.type) and not _is_free(field.type.value_field):
        _require_values(column.flatten(), field.type.value_field, f"{where}.element")


def _is_free(field: pa.Field) -> bool:
    """Return True if the field and all fields nested in it are nullable."""
    if not field.nullable:
        return False
    if pt.is_struct(field.type):
        return all(_is_free(member) for member in field.type)
    if pt.is_map(field.type):
        return _is_free(field.type.item_field)
    return not pt.is_list(field.type) or _is_free(field.type.value_field)
