"""Column mapping: the names and field ids that columns have in data files, statistics and partition values (C236-C250).

`metaData.configuration` names the mode; the metadata of each field, including nested ones, contains its physical name
and id. Columns inside arrays and maps have no field of their own: their ids, if any, are stored with the nearest field
above, keyed by a path of `element`, `key` and `value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from pyspark_delta.errors import CorruptLogError, UnsupportedTableError
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType

MODE = "delta.columnMapping.mode"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"
LEGACY_NESTED_IDS = "parquet.field.nested.ids"

_MODES = ("none", "name", "id")
_MAX_ID = 2**31 - 1


class Configured(Protocol):
    """The part of a table's configuration that the mode depends on."""

    @property
    def properties(self) -> Mapping[str, str]:
        """`metaData.configuration`."""
        ...

    @property
    def reads_mapped_columns(self) -> bool:
        """True if the protocol requires readers to honour the mode."""
        ...


def mapping_mode(configuration: Configured) -> str:
    """Return `none`, `name` or `id`; the property counts only if the protocol supports column mapping (C237).

    Raises UnsupportedTableError for an undefined mode.
    """
    text = configuration.properties.get(MODE)
    if text is None or not configuration.reads_mapped_columns:
        return "none"
    mode = text.strip().lower()
    if mode not in _MODES:
        raise UnsupportedTableError(
            f"The table property {MODE} is '{text}'; it must be one of {', '.join(_MODES)}.",
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE",
        )
    return mode


def physical_schema(schema: StructType, mode: str) -> StructType:
    """Return the schema with physical names at every nesting level; the metadata of the fields is kept.

    Raises CorruptLogError if a field lacks the physical name or id that the mode requires.
    """
    if mode == "none":
        return schema
    return StructType(tuple(physical_field(f, mode) for f in schema))


def physical_field(field: StructField, mode: str, *, parent: str = "") -> StructField:
    """Return one field with physical names; `parent` is the logical path above it, for messages."""
    if mode == "none":
        return field
    where = f"{parent}.{field.name}" if parent else field.name
    name = field.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str) or not name:
        raise CorruptLogError(
            f"Column '{where}' has no {PHYSICAL_NAME}, but the table maps columns by {mode}.", column=where
        )
    if mode == "id" and field_id(field) is None:
        raise CorruptLogError(f"Column '{where}' has no {ID}, but the table maps columns by id.", column=where)
    return replace(field, name=name, type=_physical_type(field.type, mode, where))


def field_id(field: StructField) -> int | None:
    """Return the column id of a field, None if it has none. Raises CorruptLogError if it is not a 32-bit number."""
    value = field.metadata.get(ID)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_ID:
        raise CorruptLogError(f"{ID} of column '{field.name}' is {value!r}, not a 32-bit number.", column=field.name)
    return value


def nested_ids(field: StructField) -> dict[str, int]:
    """Return the ids of list elements, map keys and map values below a field, by path: `element`, `value.key`, ...

    The paths in the log begin with the physical name of the field (or the logical one, in older versions of the
    specification), which is removed here. Both spellings of the metadata key are read.
    """
    ids = field.metadata.get(NESTED_IDS, field.metadata.get(LEGACY_NESTED_IDS))
    if not isinstance(ids, Mapping):
        return {}
    names = (field.metadata.get(PHYSICAL_NAME), field.name)
    prefixes = [f"{name}.".casefold() for name in names if isinstance(name, str)]
    found: dict[str, int] = {}
    for path, value in ids.items():
        prefix = next((p for p in prefixes if path.casefold().startswith(p)), "")
        found[path[len(prefix) :]] = int(value)
    return found


def _physical_type(data_type: DataType, mode: str, where: str) -> DataType:
    match data_type:
        case _ if data_type.annotation is not None:
            return data_type
        case StructType(fields):
            return StructType(tuple(physical_field(f, mode, parent=where) for f in fields))
        case ArrayType(element, contains_null):
            return ArrayType(_physical_type(element, mode, f"{where}.element"), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(
                _physical_type(key, mode, f"{where}.key"),
                _physical_type(value, mode, f"{where}.value"),
                value_contains_null,
            )
        case _:
            return data_type
