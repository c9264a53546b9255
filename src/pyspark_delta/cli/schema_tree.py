"""Show a schema as lines: one for each column and nested field, indented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType


def schema_rows(schema: StructType, partition_columns: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, nullability and comment of each field; partition columns are marked."""
    for field in schema:
        yield from _field_rows(field, "", "partition column" if field.name in partition_columns else "")


def _field_rows(field: StructField, indent: str, remark: str = "") -> Iterator[tuple[str, str, str, str]]:
    comment = str(field.metadata.get("comment", ""))
    name, nullable = _type_name(field.type), "" if field.nullable else "not null"
    yield indent + field.name, name, nullable, "; ".join(text for text in (remark, comment) if text)
    yield from _nested_rows(field.type, indent + "  ")


def _nested_rows(data_type: DataType, indent: str) -> Iterator[tuple[str, str, str, str]]:
    match data_type:
        case StructType(fields):
            for field in fields:
                yield from _field_rows(field, indent)
        case ArrayType(element, contains_null) if _is_nested(element):
            yield from _field_rows(StructField("element", element, contains_null), indent)
        case MapType(key, value, value_contains_null) if _is_nested(key) or _is_nested(value):
            yield from _field_rows(StructField("key", key, nullable=False), indent)
            yield from _field_rows(StructField("value", value, value_contains_null), indent)


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, StructType | ArrayType | MapType)


def _type_name(data_type: DataType) -> str:
    match data_type:
        case StructType():
            return "struct"
        case ArrayType(element, _) if _is_nested(element):
            return "array"
        case MapType(key, value, _) if _is_nested(key) or _is_nested(value):
            return "map"
        case _:
            return str(data_type)
