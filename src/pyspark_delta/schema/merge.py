"""The schema of a table after data of another schema was written to it: new columns at the end, wider types.

Columns are matched by name whatever its case, and keep the table's spelling, order, nullability and metadata; new ones
come after the others of their struct, in the order of the data. Void columns of the data add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark_delta.schema.column_ids import MAPPING_KEYS
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.schema.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.schema.widening import TYPE_CHANGES, is_widening

# Of the changes that keep old files valid, those that a write may make automatically: within one family of types. The
# others, such as integer to double, change what values mean, and need ALTER.
_FAMILIES: tuple[tuple[DataType, ...], ...] = ((BYTE, SHORT, INTEGER, LONG), (FLOAT, DOUBLE))


def merge_schemas(table: StructType, data: StructType, *, widen: bool = False) -> StructType:
    """Return the table's schema with the missing columns of `data`, including nested ones.

    With `widen`, a column becomes as wide as the data if old files stay readable; its metadata record it. If neither
    type can hold the other, the table's type stays, and `store_assignment.check_storable` decides if the data can be
    stored in it.
    """
    present = [_merge_field(field, data.find(field.name), widen) for field in table]
    added = [replace(f, type=without_void(f.type)) for f in data if f.type != VOID and table.find(f.name) is None]
    return StructType((*present, *added))


def without_void(data_type: DataType) -> DataType:
    """Return the type without void fields in its structs."""
    match data_type:
        case _ if data_type.annotation is not None:
            return data_type
        case StructType(fields):
            return StructType(tuple(replace(f, type=without_void(f.type)) for f in fields if f.type != VOID))
        case ArrayType(element, contains_null):
            return ArrayType(without_void(element), contains_null)
        case MapType(key, value, contains_null):
            return MapType(without_void(key), without_void(value), contains_null)
        case _:
            return data_type


def _merge_field(field: StructField, data: StructField | None, widen: bool) -> StructField:
    if data is None:
        return field
    merged = _merge_types(field.type, data.type, widen)
    if merged == field.type:
        return field
    changes = list(_type_changes(field.type, merged, ()))
    if not changes:
        return replace(field, type=merged)
    history = [*field.metadata.get(TYPE_CHANGES, ()), *changes]
    return replace(field, type=merged, metadata={**field.metadata, TYPE_CHANGES: history})


def _type_changes(before: DataType, after: DataType, path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the changes to record with a field: its own, and those of its elements, keys and values."""
    match before, after:
        case StructType(), StructType():
            return  # recorded at the fields inside
        case ArrayType(element), ArrayType(wider):
            yield from _type_changes(element, wider, (*path, "element"))
        case MapType(key, value), MapType(wider_key, wider_value):
            yield from _type_changes(key, wider_key, (*path, "key"))
            yield from _type_changes(value, wider_value, (*path, "value"))
        case _ if before not in (after, VOID):
            where = {"fieldPath": ".".join(path)} if path else {}
            yield {"fromType": type_to_json(before), "toType": type_to_json(after), **where}


def _merge_types(table: DataType, data: DataType, widen: bool) -> DataType:
    match table, data:
        case _ if table.annotation is not None:
            return table
        case StructType(), StructType():
            return merge_schemas(table, data, widen=widen)
        case ArrayType(ours, contains_null), ArrayType(theirs):
            return ArrayType(_merge_types(ours, theirs, widen), contains_null)
        case MapType(key, value, contains_null), MapType(data_key, data_value):
            return MapType(_merge_types(key, data_key, widen), _merge_types(value, data_value, widen), contains_null)
        case _ if table == VOID:
            return without_void(data)
        case DecimalType(), DecimalType() if widen:
            return _wider_decimal(table, data)
        case _ if widen and _is_of_one_family(table, data) and is_widening(table, data):
            return data
        case _:
            return table


def _wider_decimal(table: DecimalType, data: DecimalType) -> DecimalType:
    """Return the least decimal that holds both, if there is one of at most 38 digits."""
    scale = max(table.scale, data.scale)
    precision = max(table.precision - table.scale, data.precision - data.scale) + scale
    wider = DecimalType(precision, scale)
    return wider if precision <= 38 and is_widening(table, wider) else table


def _is_of_one_family(table: DataType, data: DataType) -> bool:
    return any(table in family and data in family for family in _FAMILIES)


def keep_identities(schema: StructType, before: StructType) -> StructType:
    """Return a replacement schema; columns that keep name and type keep their column mapping (C238-C241)."""
    return StructType(tuple(_keep_identity(field, before.find(field.name)) for field in schema))


def _keep_identity(field: StructField, before: StructField | None) -> StructField:
    if before is None or not _is_same_kind(field.type, before.type):
        return field
    mapping = {key: before.metadata[key] for key in MAPPING_KEYS if key in before.metadata}
    return replace(field, type=_keep_inner(field.type, before.type), metadata={**field.metadata, **mapping})


def _keep_inner(data_type: DataType, before: DataType) -> DataType:
    match data_type, before:
        case _ if data_type.annotation is not None:
            return data_type
        case StructType(), StructType():
            return keep_identities(data_type, before)
        case ArrayType(element, contains_null), ArrayType(old):
            return ArrayType(_keep_inner(element, old), contains_null)
        case MapType(key, value, contains_null), MapType(old_key, old_value):
            return MapType(_keep_inner(key, old_key), _keep_inner(value, old_value), contains_null)
        case _:
            return data_type


def _is_same_kind(data_type: DataType, before: DataType) -> bool:
    """True if values keep their type; the members of structs are compared one by one."""
    match data_type, before:
        case StructType(), StructType():
            return True
        case ArrayType(element), ArrayType(old):
            return _is_same_kind(element, old)
        case MapType(key, value), MapType(old_key, old_value):
            return _is_same_kind(key, old_key) and _is_same_kind(value, old_value)
        case _:
            return data_type == before


def is_same_shape(one: StructType, other: StructType) -> bool:
    """True if the schemas have the same columns, in the same order, ignoring nullability and metadata."""
    return len(one) == len(other) and all(
        a.name == b.name and _is_same_shape(a.type, b.type) for a, b in zip(one, other, strict=True)
    )


def _is_same_shape(one: DataType, other: DataType) -> bool:
    match one, other:
        case StructType(), StructType():
            return is_same_shape(one, other)
        case ArrayType(ours), ArrayType(theirs):
            return _is_same_shape(ours, theirs)
        case MapType(key, value), MapType(other_key, other_value):
            return _is_same_shape(key, other_key) and _is_same_shape(value, other_value)
        case _:
            return one == other
