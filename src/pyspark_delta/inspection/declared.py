"""Everything that a version of a table declares, as texts by key, so that two versions can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark_delta.features import supported_features
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK
from pyspark_delta.schema.json import dump_json
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.snapshot import Snapshot

_HIDDEN = ("delta.columnMapping.", IDENTITY_MARK)  # keys of field metadata that writers maintain


@dataclass(frozen=True, slots=True)
class Declared:
    """One declaration: the name that users know, and a text."""

    name: str
    text: str


def declared(snapshot: Snapshot) -> dict[tuple[str, ...], Declared]:
    """Return the declarations of a version by key: the kind, and names that do not change if a column is renamed."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    found: dict[tuple[str, ...], Declared] = {}
    for key, name, field in _columns(snapshot.schema, mapping_mode(snapshot.configuration)):
        found["column", *key] = Declared(name, _column_text(field))
    facts = {
        ("partitioning", "columns"): ", ".join(metadata.partition_columns),
        ("table", "id"): metadata.id,
        ("table", "name"): metadata.name,
        ("table", "description"): metadata.description,
        ("protocol", "minReaderVersion"): str(protocol.min_reader_version),
        ("protocol", "minWriterVersion"): str(protocol.min_writer_version),
        **{("property", name): value for name, value in metadata.configuration.items()},
        **{("feature", name): "supported" for name in sorted(supported_features(snapshot.configuration))},
        **{("domain", name): domain.configuration for name, domain in snapshot.domains().items()},
    }
    return found | {key: Declared(key[1], text) for key, text in facts.items() if text is not None}


def _columns(
    struct: StructType, mode: str, names: tuple[str, ...] = (), physical: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, StructField]]:
    """Yield the physical path, the logical name and the field of each column, nested ones after their parents."""
    for field in struct:
        path, key = (*names, field.name), (*physical, physical_field(field, mode).name)
        yield key, ".".join(path), field
        yield from _inside(field.type, mode, path, key)


def _inside(
    data_type: DataType, mode: str, names: tuple[str, ...], physical: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str, StructField]]:
    match data_type:
        case StructType():
            yield from _columns(data_type, mode, names, physical)
        case ArrayType():
            yield from _inside(data_type.element_type, mode, (*names, "element"), (*physical, "element"))
        case MapType():
            yield from _inside(data_type.key_type, mode, (*names, "key"), (*physical, "key"))
            yield from _inside(data_type.value_type, mode, (*names, "value"), (*physical, "value"))


def _column_text(field: StructField) -> str:
    """Return type, NOT NULL and metadata of a column; fields inside structs are declarations of their own."""
    inside = list(types_in(field.type))
    has_fields = any(isinstance(one, StructType) for one in inside)
    kind = type(field.type).__name__.removesuffix("Type").lower() if has_fields else str(field.type)
    metadata = {key: value for key, value in field.metadata.items() if not key.startswith(_HIDDEN)}
    parts = [kind, "" if field.nullable else "NOT NULL", dump_json(metadata).decode() if metadata else ""]
    return " ".join(part for part in parts if part)
