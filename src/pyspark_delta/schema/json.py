"""The JSON form of a schema: `schemaString` to types and back (Schema Serialization Format; C426-C435)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from pyspark_delta.errors import CorruptLogError, InvalidOperationError, UnsupportedTableError
from pyspark_delta.schema.types import (
    DAY_TIME_INTERVAL,
    YEAR_MONTH_INTERVAL,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

_PRIMITIVES = frozenset(
    [
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "void",
        "variant",
    ]
)
_INTERVALS = {
    **{f"interval {unit}": YEAR_MONTH_INTERVAL for unit in ("year", "month", "year to month")},
    **{
        f"interval {unit}": DAY_TIME_INTERVAL
        for unit in (
            "day",
            "hour",
            "minute",
            "second",
            "day to hour",
            "day to minute",
            "day to second",
            "hour to minute",
            "hour to second",
            "minute to second",
        )
    },
}
_OTHER_NAMES = {"null": "void", "timestamp_ltz": "timestamp"}  # aliases of types that Spark has written, or reads
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_MAX_DECIMAL_PRECISION = 38
MAX_DEPTH = 128  # nesting levels, more than Arrow reads from Parquet; each level is several frames of recursion


def parse_schema(text: str) -> StructType:
    """Parse a `schemaString`.

    Raises CorruptLogError if it is not a schema, UnsupportedTableError if it names an unknown type.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CorruptLogError(f"The schemaString of the table is not valid JSON: {error}.") from None
    parsed = parse_type(value)
    if not isinstance(parsed, StructType):
        raise CorruptLogError(f"The schemaString of the table must be a struct, but it is {parsed}.")
    return parsed


def schema_to_json(schema: StructType) -> str:
    """Return the `schemaString` of a schema; parsing it gives an equal schema."""
    return dump_json(type_to_json(schema)).decode()


def dump_json(value: Any) -> bytes:
    """Return a value as JSON. Raises InvalidOperationError for a string with an unpaired surrogate."""
    try:
        return orjson.dumps(value)
    except TypeError:
        for text in _strings(value):
            check_text(text)
        # orjson allows 254 levels of nesting, and one level of a schema takes three.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def check_text(text: str) -> None:
    """Check that a string has no unpaired surrogate. Raises InvalidOperationError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidOperationError(
            f"The string {text!r} contains an unpaired surrogate, which UTF-8 cannot encode, so a Delta log cannot "
            "store it. Remove the surrogate, or complete the pair."
        ) from None


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _strings(name)
            yield from _strings(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _strings(member)


def parse_type(value: Any, *, where: str = "schema", depth: int = 0) -> DataType:
    """Parse one type of the JSON form; `where` names the place in messages."""
    if depth > MAX_DEPTH:
        raise CorruptLogError(f"The schema is nested more than {MAX_DEPTH} levels deep at {where}.")
    if isinstance(value, str):
        return _parse_primitive(value, where)
    if not isinstance(value, Mapping):
        raise CorruptLogError(f"Expected a type at {where}, found {_short(value)}.")
    match value.get("type"):
        case "struct":
            return StructType(_parse_fields(value, where, depth))
        case "array":
            element = parse_type(_member(value, "elementType", where), where=f"{where}.element", depth=depth + 1)
            return ArrayType(element, _flag(value, "containsNull", where))
        case "map":
            return MapType(
                parse_type(_member(value, "keyType", where), where=f"{where}.key", depth=depth + 1),
                parse_type(_member(value, "valueType", where), where=f"{where}.value", depth=depth + 1),
                _flag(value, "valueContainsNull", where),
            )
        case "udt":
            return _parse_user_defined(value, where, depth)
        case str(name):  # {"type": "variant"} is seen for elements of arrays
            return _parse_primitive(name, where)
        case other:
            raise CorruptLogError(f"Expected a type name at {where}, found {_short(other)}.")


def type_to_json(data_type: DataType) -> Any:
    """Return the JSON form of one type, as plain Python values."""
    if data_type.annotation is not None:
        stored = type_to_json(replace(data_type, annotation=None))
        return {"type": "udt", **data_type.annotation, "sqlType": stored}
    match data_type:
        case StructType(fields):
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": f.name,
                        "type": type_to_json(f.type),
                        "nullable": f.nullable,
                        "metadata": dict(f.metadata),
                    }
                    for f in fields
                ],
            }
        case ArrayType(element, contains_null):
            return {"type": "array", "elementType": type_to_json(element), "containsNull": contains_null}
        case MapType(key, value, value_contains_null):
            return {
                "type": "map",
                "keyType": type_to_json(key),
                "valueType": type_to_json(value),
                "valueContainsNull": value_contains_null,
            }
        case _:
            return str(data_type)


def _parse_user_defined(value: Mapping[str, Any], where: str, depth: int) -> DataType:
    """Return the storage type of a user-defined type, with the rest as its annotation."""
    stored = parse_type(_member(value, "sqlType", where), where=where, depth=depth + 1)
    annotation = {key: found for key, found in value.items() if key not in ("type", "sqlType")}
    for key, found in annotation.items():
        if not isinstance(found, str | None):
            raise CorruptLogError(f"Expected a string for '{key}' of the type at {where}, found {_short(found)}.")
    return replace(stored, annotation=annotation)


def _parse_primitive(name: str, where: str) -> DataType:
    name = _OTHER_NAMES.get(name, name)
    if name in _PRIMITIVES:
        return PrimitiveType(name)
    if name == "decimal":
        return DecimalType(10, 0)
    if decimal := _DECIMAL.fullmatch(name):
        precision, scale = int(decimal[1]), int(decimal[2])
        if not (1 <= precision <= _MAX_DECIMAL_PRECISION and 0 <= scale <= precision):
            raise CorruptLogError(f"{name} at {where} is not a decimal of 1 to 38 digits.")
        return DecimalType(precision, scale)
    if interval := _INTERVALS.get(name):
        return interval
    raise UnsupportedTableError(
        f"The column type '{name}' at {where} is not supported. It may need a newer version of pyspark-delta.",
        error_class="DELTA_UNSUPPORTED_DATA_TYPES",
    )


def _parse_fields(value: Mapping[str, Any], where: str, depth: int) -> tuple[StructField, ...]:
    fields = _member(value, "fields", where)
    if not isinstance(fields, list):
        raise CorruptLogError(f"Expected a list of fields at {where}, found {_short(fields)}.")
    return tuple(_parse_field(f, where, depth) for f in fields)


def _parse_field(value: Any, where: str, depth: int) -> StructField:
    if not isinstance(value, Mapping):
        raise CorruptLogError(f"Expected a field at {where}, found {_short(value)}.")
    name = _member(value, "name", where)
    if not isinstance(name, str):
        raise CorruptLogError(f"Expected a field name at {where}, found {_short(name)}.")
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise CorruptLogError(f"Expected the metadata of {where}.{name} as an object, found {_short(metadata)}.")
    data_type = parse_type(_member(value, "type", where), where=f"{where}.{name}", depth=depth + 1)
    return StructField(name, data_type, _flag(value, "nullable", where), dict(metadata or {}))


def _member(value: Mapping[str, Any], key: str, where: str) -> Any:
    try:
        return value[key]
    except KeyError:
        raise CorruptLogError(f"The schema lacks '{key}' at {where}: found {_short(value)}.") from None


def _flag(value: Mapping[str, Any], key: str, where: str) -> bool:
    flag = value.get(key, True)
    if not isinstance(flag, bool):
        raise CorruptLogError(f"Expected true or false for '{key}' at {where}, found {_short(flag)}.")
    return flag


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
