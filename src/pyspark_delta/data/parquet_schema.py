"""The Arrow schema that data files are written with: physical names, and the ids of columns at every level.

Ids become Parquet field ids (C241). Those of list elements, map keys and map values are with the nearest field above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyspark_delta.schema.arrow import schema_to_arrow, to_arrow
from pyspark_delta.schema.column_mapping import field_id, nested_ids
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType


def parquet_schema(schema: StructType, *, field_ids: bool) -> pa.Schema:
    """The schema, everything nullable but map keys; with `field_ids`, each column that has an id carries it."""
    if not field_ids:
        return schema_to_arrow(schema, all_nullable=True)
    return pa.schema([_field(field) for field in schema])


def as_type(values: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """The same values as a type that differs in the names of nested fields only, without a copy."""
    if values.type == target:
        return values
    return pa.chunked_array([chunk.view(target) for chunk in values.chunks], target)


def _field(field: StructField) -> pa.Field:
    arrow_type = _type(field.type, nested_ids(field), "")
    return pa.field(field.name, arrow_type, nullable=True, metadata=_metadata(field_id(field)))


def _type(data_type: DataType, ids: Mapping[str, int], path: str) -> Any:
    match data_type:
        case StructType(fields):
            return pa.struct([_field(field) for field in fields])
        case ArrayType(element):
            return pa.list_(_inner("element", element, ids, path, nullable=True))
        case MapType(key, value):
            return pa.map_(
                _inner("key", key, ids, path, nullable=False), _inner("value", value, ids, path, nullable=True)
            )
        case _:
            return to_arrow(data_type, all_nullable=True)


def _inner(name: str, data_type: DataType, ids: Mapping[str, int], path: str, *, nullable: bool) -> pa.Field:
    here = f"{path}.{name}" if path else name
    return pa.field(name, _type(data_type, ids, here), nullable=nullable, metadata=_metadata(ids.get(here)))


def _metadata(number: int | None) -> dict[str, str] | None:
    return None if number is None else {"PARQUET:field_id": str(number)}
