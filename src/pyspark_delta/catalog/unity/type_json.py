"""The JSON of types in Unity Catalog's Delta API: a `schemaString` with hyphens in the names of its members.

For `elementType` the API has `element-type`, and so on for `containsNull`, `keyType`, `valueType` and
`valueContainsNull`. Names in the metadata of a field stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pyspark_delta.errors import InvalidProposalError

_HYPHENATED = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}
_CAMEL_CASE = {hyphenated: name for name, hyphenated in _HYPHENATED.items()}
_TYPES = frozenset({"elementType", "keyType", "valueType", "element-type", "key-type", "value-type", "type"})
_MAX_DEPTH = 200


def columns_of(schema_string: str) -> dict[str, Any]:
    """Return the API's struct for a `schemaString`. Raises InvalidProposalError if it is not a struct."""
    try:
        schema = orjson.loads(schema_string)
    except orjson.JSONDecodeError as error:
        raise InvalidProposalError(f"The schemaString is not valid JSON: {error}.") from None
    return _struct(schema, _HYPHENATED)


def schema_string_of(columns: Any) -> str:
    """Return the `schemaString` for a struct of the API. Raises InvalidProposalError if it is not a struct."""
    return to_schema_string(_struct(columns, _CAMEL_CASE))


def to_schema_string(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON text. Raises InvalidProposalError for numbers and nesting that orjson cannot write."""
    try:
        return orjson.dumps(schema).decode()
    except orjson.JSONEncodeError as error:
        raise InvalidProposalError(f"The columns cannot be stored as JSON: {error}.") from None


def _struct(value: Any, names: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.get("type") != "struct":
        raise InvalidProposalError("The columns must be a struct: {'type': 'struct', 'fields': [...]}.")
    renamed: dict[str, Any] = _renamed(value, names, 0)
    return renamed


def _renamed(value: Any, names: Mapping[str, str], depth: int) -> Any:
    """Return a type with its members, and those of all types in it, renamed."""
    if not isinstance(value, dict):
        return value
    if depth > _MAX_DEPTH:
        raise InvalidProposalError(f"The columns are nested more than {_MAX_DEPTH} levels deep.")
    renamed = {names.get(key, key): _member(key, inner, names, depth) for key, inner in value.items()}
    if isinstance(fields := value.get("fields"), list):
        renamed["fields"] = [_field(field, names, depth) for field in fields]
    return renamed


def _member(key: str, value: Any, names: Mapping[str, str], depth: int) -> Any:
    return _renamed(value, names, depth + 1) if key in _TYPES else value


def _field(value: Any, names: Mapping[str, str], depth: int) -> Any:
    if not isinstance(value, dict):
        return value
    field = {**value, "nullable": value.get("nullable", True), "metadata": value.get("metadata") or {}}
    return {**field, "type": _renamed(value.get("type"), names, depth + 1)}
