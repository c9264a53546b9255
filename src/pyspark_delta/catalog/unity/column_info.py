"""Conversion between schemas and the columns of Unity Catalog's legacy endpoints (`ColumnInfo`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from pyspark_delta.catalog.unity.type_json import to_schema_string
from pyspark_delta.errors import InvalidProposalError
from pyspark_delta.schema.json import parse_schema, parse_type, type_to_json
from pyspark_delta.schema.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

_NAMES = {
    "integer": "INT",
    "void": "NULL",
    "interval year to month": "INTERVAL",
    "interval day to second": "INTERVAL",
}
_TEXTS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def columns_to_json(schema_string: str, partition_columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the `ColumnInfo`s of a schema; `partition_index` counts from 0."""
    partitions = {name.casefold(): index for index, name in enumerate(partition_columns)}
    return [
        _column(position, field, partitions.get(field.name.casefold()))
        for position, field in enumerate(parse_schema(schema_string))
    ]


def schema_of_columns(columns: Any) -> tuple[str, tuple[str, ...]]:
    """Return the `schemaString` and the partition columns of `ColumnInfo`s, by their `type_json`.

    Raises InvalidProposalError if a column has no name or its `type_json` is not JSON, CorruptLogError if that is not
    a type.
    """
    if not isinstance(columns, list):
        raise InvalidProposalError("The columns must be a list.")
    fields: list[Any] = []
    partitions: list[tuple[int, str]] = []
    for column in sorted((_object(column) for column in columns), key=_position):
        name = column.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidProposalError("A column lacks its name.")
        fields.append(_field(name, column))
        if isinstance(index := column.get("partition_index"), int):
            partitions.append((index, name))
    schema = to_schema_string({"type": "struct", "fields": fields})
    return schema, tuple(name for _, name in sorted(partitions))


def _column(position: int, field: StructField, partition: int | None) -> dict[str, Any]:
    json_field = {
        "name": field.name,
        "type": type_to_json(field.type),
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }
    column: dict[str, Any] = {
        "name": field.name,
        "type_text": _text(field.type),
        "type_json": orjson.dumps(json_field).decode(),
        "type_name": _name(field.type),
        "position": position,
        "nullable": field.nullable,
    }
    if isinstance(field.type, DecimalType):
        column |= {"type_precision": field.type.precision, "type_scale": field.type.scale}
    if isinstance(comment := field.metadata.get("comment"), str):
        column["comment"] = comment
    if partition is not None:
        column["partition_index"] = partition
    return column


def _name(data_type: DataType) -> str:
    match data_type:
        case StructType():
            return "STRUCT"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case DecimalType():
            return "DECIMAL"
    return _NAMES.get(str(data_type), str(data_type).upper())


def _text(data_type: DataType) -> str:
    match data_type:
        case StructType(fields):
            return f"struct<{','.join(f'{field.name}:{_text(field.type)}' for field in fields)}>"
        case ArrayType(element, _):
            return f"array<{_text(element)}>"
        case MapType(key, value, _):
            return f"map<{_text(key)},{_text(value)}>"
    return _TEXTS.get(str(data_type), str(data_type))


def _field(name: str, column: dict[str, Any]) -> dict[str, Any]:
    """Return a field of the schema. `type_json` holds a whole field, or only its type."""
    try:
        found = orjson.loads(column.get("type_json") or "")
    except (orjson.JSONDecodeError, TypeError):
        raise InvalidProposalError(f"The column '{name}' has no type: its 'type_json' is not JSON.") from None
    whole = isinstance(found, dict) and "name" in found and "type" in found
    data_type = type_to_json(parse_type(found["type"] if whole else found, where=name))
    metadata = found.get("metadata") if whole else None
    nullable = column.get("nullable")
    field = {"name": name, "type": data_type, "nullable": nullable if isinstance(nullable, bool) else True}
    return {**field, "metadata": metadata if isinstance(metadata, dict) else {}}


def _object(column: Any) -> dict[str, Any]:
    if not isinstance(column, dict):
        raise InvalidProposalError("A column must be an object.")
    return column


def _position(column: dict[str, Any]) -> int:
    position = column.get("position")
    return position if isinstance(position, int) else 0
