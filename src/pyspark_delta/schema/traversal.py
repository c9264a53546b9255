"""Every type and every field inside a type, nested ones included, outermost first."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType


def types_in(data_type: DataType) -> Iterator[DataType]:
    """The type itself and all types inside it."""
    yield data_type
    match data_type:
        case StructType(fields):
            for field in fields:
                yield from types_in(field.type)
        case ArrayType(element):
            yield from types_in(element)
        case MapType(key, value):
            yield from types_in(key)
            yield from types_in(value)


def fields_in(data_type: DataType) -> Iterator[StructField]:
    """All fields of all structs inside the type."""
    for found in types_in(data_type):
        if isinstance(found, StructType):
            yield from found.fields
