"""Structs of a query that belong to those of a table by position: INSERT without BY NAME, as Spark casts structs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyspark_delta.interpreter.values import check_arity
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType


def with_member_names(schema: pa.Schema, columns: Sequence[StructField]) -> pa.Schema:
    """Return a schema in which the first columns have the names of these, and their structs the members' names.

    Columns of the schema have the same layout in memory. Raises InvalidOperationError for a struct with fewer members.
    """
    named = [
        pa.field(column.name, _renamed(given.type, column.type), given.nullable)
        for given, column in zip(schema, columns, strict=False)
    ]
    return pa.schema([*named, *list(schema)[len(columns) :]])


def viewed(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the same values under other names of members."""
    return column if column.type == data_type else column.view(data_type)


def _renamed(given: pa.DataType, table: DataType) -> pa.DataType:
    match table:
        case StructType(members) if pa.types.is_struct(given):
            if given.num_fields < len(members):
                check_arity(given.num_fields, [member.name for member in members])
            fields = [given.field(place) for place in range(given.num_fields)]
            named = [
                pa.field(member.name, _renamed(field.type, member.type), field.nullable)
                for field, member in zip(fields, members, strict=False)
            ]
            return pa.struct([*named, *fields[len(members) :]])
        case ArrayType(element) if pa.types.is_list(given) or pa.types.is_large_list(given):
            item = given.value_field.with_type(_renamed(given.value_type, element))
            return pa.list_(item) if pa.types.is_list(given) else pa.large_list(item)
        case MapType(key, value) if pa.types.is_map(given):
            return pa.map_(
                given.key_field.with_type(_renamed(given.key_type, key)),
                given.item_field.with_type(_renamed(given.item_type, value)),
            )
        case _:
            return given
