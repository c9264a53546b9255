"""Ids and physical names for the columns of tables that map columns (Column Mapping; C236, C243-C245, C250, C293)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace

from pyspark_delta.schema.column_mapping import (
    ID,
    LEGACY_NESTED_IDS,
    NESTED_IDS,
    PHYSICAL_NAME,
    field_id,
    nested_ids,
)
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.schema.widening import is_lossless

MAPPING_KEYS = (ID, PHYSICAL_NAME, NESTED_IDS, LEGACY_NESTED_IDS)

Naming = Callable[[StructField, int], str]


def random_name(field: StructField, column_id: int) -> str:
    """Return a unique physical name: `col-` and a random UUID."""
    return f"col-{uuid.uuid4()}"


def name_by_id(field: StructField, column_id: int) -> str:
    """Return the physical name that follows from the id, `col-<id>` (C304)."""
    return f"col-{column_id}"


def same_name(field: StructField, column_id: int) -> str:
    """Return the logical name, which files of a table without column mapping use (C250)."""
    return field.name


def assign_ids(schema: StructType, largest: int, naming: Naming) -> tuple[StructType, int]:
    """Return the schema with an id and a physical name on every field, nested ones included, and the largest id.

    Existing ids and names stay; new ids count from `largest`, outer fields first.
    """
    counter = _Counter(max(largest, largest_id(schema)))

    def assign(field: StructField) -> StructField:
        metadata = dict(field.metadata)
        if field_id(field) is None:
            metadata[ID] = counter.next()
        if not metadata.get(PHYSICAL_NAME):
            metadata[PHYSICAL_NAME] = naming(field, metadata[ID])
        return replace(field, metadata=metadata)

    return _map_fields(schema, assign), counter.last


def assign_nested_ids(schema: StructType, largest: int) -> tuple[StructType, int]:
    """Return the schema with an id for every list element, map key and map value, and the largest id in use (C293).

    They are stored with the nearest field above, under paths that begin with its physical name; existing ids stay.
    """
    counter = _Counter(max(largest, largest_id(schema)))

    def assign(field: StructField) -> StructField:
        paths = list(_element_paths(field.type, ""))
        if not paths:
            return field
        known = nested_ids(field)
        physical = field.metadata[PHYSICAL_NAME]
        ids = {f"{physical}.{path}": known[path] if path in known else counter.next() for path in paths}
        metadata = {key: value for key, value in field.metadata.items() if key != LEGACY_NESTED_IDS}
        return replace(field, metadata={**metadata, NESTED_IDS: ids})

    return _map_fields(schema, assign), counter.last


def largest_id(schema: StructType) -> int:
    """Return the largest id of any field, list element, map key or map value; 0 if there is none."""
    return max((*(field_id(f) or 0 for f in fields_in(schema)), *_all_nested_ids(schema)), default=0)


def inherit_ids(schema: StructType, before: StructType) -> StructType:
    """Return the schema with the ids and physical names that columns of the same name and kind of type had before.

    Only fields without an id inherit one, and only if no other field has the same id: the new schema may come from
    another table, or from this table with columns renamed and added.
    """
    return _inherit_struct(schema, before, frozenset(all_ids(schema)))


def without_ids(schema: StructType) -> StructType:
    """Return the schema without ids and physical names."""
    return without_keys(schema, MAPPING_KEYS)


def without_keys(schema: StructType, keys: Container[str]) -> StructType:
    """Return the schema without some keys of field metadata, at every depth."""

    def strip(field: StructField) -> StructField:
        return replace(field, metadata={k: v for k, v in field.metadata.items() if k not in keys})

    return _map_fields(schema, strip)


def missing_nested_ids(schema: StructType) -> list[str]:
    """Return the physical paths of list elements, map keys and map values that have no id."""
    return [
        f"{field.metadata.get(PHYSICAL_NAME, field.name)}.{path}"
        for field in fields_in(schema)
        for path in _element_paths(field.type, "")
        if path not in nested_ids(field)
    ]


def all_ids(schema: StructType) -> list[int]:
    """Return every id in the schema, including duplicates."""
    return [*(found for f in fields_in(schema) if (found := field_id(f)) is not None), *_all_nested_ids(schema)]


class _Counter:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def _map_fields(schema: StructType, change: Callable[[StructField], StructField]) -> StructType:
    """Change every field, outer ones before those inside them."""
    return StructType(tuple(replace(new, type=_map_type(new.type, change)) for new in map(change, schema)))


def _map_type(data_type: DataType, change: Callable[[StructField], StructField]) -> DataType:
    match data_type:
        case _ if data_type.annotation is not None:
            return data_type
        case StructType():
            return _map_fields(data_type, change)
        case ArrayType(element, contains_null):
            return ArrayType(_map_type(element, change), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(_map_type(key, change), _map_type(value, change), value_contains_null)
        case _:
            return data_type


def _element_paths(data_type: DataType, prefix: str) -> Iterator[str]:
    """Yield the paths of list elements, map keys and map values down to the next struct or user-defined type."""
    match data_type:
        case _ if data_type.annotation is not None:
            return
        case ArrayType(element):
            yield f"{prefix}element"
            yield from _element_paths(element, f"{prefix}element.")
        case MapType(key, value):
            yield f"{prefix}key"
            yield from _element_paths(key, f"{prefix}key.")
            yield f"{prefix}value"
            yield from _element_paths(value, f"{prefix}value.")
        case _:
            return


def _all_nested_ids(schema: StructType) -> list[int]:
    return [found for f in fields_in(schema) for found in nested_ids(f).values()]


def _inherit_struct(schema: StructType, before: StructType, taken: frozenset[int]) -> StructType:
    by_id: dict[int, StructField] = {}
    for known in before:
        if (column_id := field_id(known)) is not None:
            by_id.setdefault(column_id, known)
    return StructType(tuple(_inherit(f, _counterpart(f, before, by_id), taken) for f in schema))


def _inherit(field: StructField, known: StructField | None, taken: frozenset[int]) -> StructField:
    if known is None or not _is_same_kind(known.type, field.type):
        return field
    metadata = dict(field.metadata)
    if ID not in metadata:
        if field_id(known) in taken:
            return field
        metadata |= {key: known.metadata[key] for key in MAPPING_KEYS if key in known.metadata}
    return replace(field, type=_inherit_type(field.type, known.type, taken), metadata=metadata)


def _counterpart(field: StructField, before: StructType, by_id: Mapping[int, StructField]) -> StructField | None:
    """Return the earlier version of the field: of the same id, or of the same name if it has none."""
    column_id = field_id(field)
    return before.find(field.name) if column_id is None else by_id.get(column_id)


def _inherit_type(data_type: DataType, before: DataType, taken: frozenset[int]) -> DataType:
    match data_type, before:
        case _ if data_type.annotation is not None:
            return data_type
        case StructType(), StructType():
            return _inherit_struct(data_type, before, taken)
        case ArrayType(element, contains_null), ArrayType(known):
            return ArrayType(_inherit_type(element, known, taken), contains_null)
        case MapType(key, value, value_contains_null), MapType(known_key, known_value):
            return MapType(
                _inherit_type(key, known_key, taken), _inherit_type(value, known_value, taken), value_contains_null
            )
        case _:
            return data_type


def _is_same_kind(before: DataType, after: DataType) -> bool:
    """True if existing files could be read as the new type."""
    if isinstance(after, StructType | ArrayType | MapType):
        return type(before) is type(after)
    return before == after or is_lossless(before, after)
