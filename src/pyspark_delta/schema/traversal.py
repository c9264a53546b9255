"""Every type and every field inside a type, nested ones included, outermost first."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType


def types_in(data_type: DataType) -> Iterator[DataType]:
    """Yield the type itself and all types inside it, each before those inside it. No recursion, whatever the depth."""
    stack = [data_type]
    while stack:
        found = stack.pop()
        yield found
        match found:
            case StructType(fields):
                stack += [field.type for field in reversed(fields)]
            case ArrayType(element):
                stack.append(element)
            case MapType(key, value):
                stack += [value, key]


def fields_in(data_type: DataType) -> Iterator[StructField]:
    """Yield all fields of all structs inside the type."""
    for found in types_in(data_type):
        if isinstance(found, StructType):
            yield from found.fields
