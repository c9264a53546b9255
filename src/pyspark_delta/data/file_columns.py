"""The columns of a table in one data file: matched by name or field id, and converted with their nested values.

`FileSchema.resolve` finds a planned column in the file's Arrow schema, and returns a tree of the closed union

Column = Leaf | Struct | List | Map | Variant | Absent

`leaves` yields the Parquet leaves to read for it. `read_column` converts Arrow data of the file to data of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from pyspark_delta.data.casts import Conversion, conversion
from pyspark_delta.data.lists import list_parts
from pyspark_delta.data.variants import reassemble
from pyspark_delta.errors import DataFileError
from pyspark_delta.schema.arrow import is_list_like, to_arrow
from pyspark_delta.schema.column_mapping import field_id
from pyspark_delta.schema.types import VARIANT, ArrayType, DataType, MapType, StructField, StructType

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class FileField:
    """A field of the file: its Arrow type and field id, and the Parquet leaves `[first, end)` below it."""

    name: str
    type: pa.DataType
    id: int | None
    first: int
    end: int
    children: tuple[FileField, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column."""

    source: FileField
    convert: Conversion


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct: the members in the table's order, by their logical names.

    `witness` is a leaf that is read only to find null structs, if the file has none of the members.
    """

    source: FileField
    type: pa.DataType
    members: tuple[tuple[str, Column], ...]
    witness: int | None = None


@dataclass(frozen=True, slots=True)
class List:
    """An array. `source` may have any list type of Arrow."""

    source: FileField
    type: pa.DataType
    element: Column


@dataclass(frozen=True, slots=True)
class Map:
    """A map. `source` may be a list of key-value pairs, if the writer did not annotate it as a map."""

    source: FileField
    type: pa.DataType
    key: Column
    value: Column


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant, shredded or not."""

    source: FileField


@dataclass(frozen=True, slots=True)
class Absent:
    """A column that the file does not have: all null (C374)."""

    type: pa.DataType


Column: TypeAlias = Leaf | Struct | List | Map | Variant | Absent


class _Candidates:
    """The fields of a file or of one struct in it, indexed by name and by id."""

    __slots__ = ("_by_folded", "_by_id", "_by_name")

    def __init__(self, fields: Sequence[FileField]) -> None:
        self._by_name: dict[str, list[FileField]] = {}
        self._by_folded: dict[str, list[FileField]] = {}
        self._by_id: dict[int, list[FileField]] = {}
        for field in fields:
            self._by_name.setdefault(field.name, []).append(field)
            self._by_folded.setdefault(field.name.casefold(), []).append(field)
            if field.id is not None:
                self._by_id.setdefault(field.id, []).append(field)

    def named(self, name: str) -> Sequence[FileField]:
        """Return the fields with a name; if there are none, those with another case, as Spark does by default."""
        return self._by_name.get(name, ()) or self._by_folded.get(name.casefold(), ())

    def numbered(self, column_id: int) -> Sequence[FileField]:
        """Return the fields with an id."""
        return self._by_id.get(column_id, ())

    def first(self, name: str) -> FileField | None:
        """Return the first field with exactly this name; None if there is none."""
        return next(iter(self._by_name.get(name, ())), None)


class FileSchema:
    """The fields of one data file, matched by `mode` (C246-C249)."""

    __slots__ = ("_by_id", "_candidates", "_fields", "_path")

    def __init__(self, schema: pa.Schema, mode: str, path: str) -> None:
        self._fields = _file_fields(schema, 0)[0]
        self._candidates = _Candidates(self._fields)
        self._by_id = mode == "id"
        self._path = path

    def has_field_ids(self) -> bool:
        """Return True if any field of the file, at any depth, has an id."""
        return any(f.id is not None for top in self._fields for f in _descend(top))

    def resolve(self, logical: StructField, physical: StructField) -> Column:
        """Return a column as the file has it. Raises DataFileError for several matches or an incompatible type."""
        return self._member(self._candidates, logical, physical, logical.name)

    def resolve_named(self, field: StructField) -> Column:
        """Return a column by its name alone, in every mode, because columns outside the schema have no id."""
        found = self._candidates.first(field.name)
        if found is None:
            return Absent(to_arrow(field.type, all_nullable=True))
        return self._column(found, field.type, field.type, field.name)

    def _member(self, candidates: _Candidates, logical: StructField, physical: StructField, where: str) -> Column:
        found = self._match(candidates, physical, where)
        if found is None:
            return Absent(to_arrow(logical.type, all_nullable=True))
        return self._column(found, logical.type, physical.type, where)

    def _match(self, candidates: _Candidates, physical: StructField, where: str) -> FileField | None:
        # The mode requires ids of all fields except those inside user-defined types.
        wanted = field_id(physical) if self._by_id else None
        matches = candidates.named(physical.name) if wanted is None else candidates.numbered(wanted)
        if len(matches) > 1:
            raise DataFileError(
                f"Data file '{self._path}' has {len(matches)} columns that match '{where}': "
                f"{', '.join(repr(f.name) for f in matches)}. Rewrite the file with unique names.",
                path=self._path,
                column=where,
            )
        return matches[0] if matches else None

    def _column(self, source: FileField, logical: DataType, physical: DataType, where: str) -> Column:
        match logical, physical:
            case StructType(), StructType() if pa.types.is_struct(source.type):
                return self._struct(source, logical, physical, where)
            case ArrayType(), ArrayType() if is_list_like(source.type):
                element = self._column(
                    source.children[0], logical.element_type, physical.element_type, f"{where}.element"
                )
                return List(source, to_arrow(logical, all_nullable=True), element)
            case MapType(), MapType() if (entry := _entries(source)) is not None:
                key = self._column(entry[0], logical.key_type, physical.key_type, f"{where}.key")
                value = self._column(entry[1], logical.value_type, physical.value_type, f"{where}.value")
                return Map(source, to_arrow(logical, all_nullable=True), key, value)
            case _ if logical == VARIANT and _is_variant(source):
                return Variant(source)
        target = to_arrow(logical, all_nullable=True)
        if pa.types.is_null(target) or pa.types.is_null(source.type):
            return Absent(target)
        convert = None if isinstance(logical, StructType | ArrayType | MapType) else conversion(source.type, logical)
        if convert is None:
            raise DataFileError(
                f"Data file '{self._path}' holds column '{where}' as {source.type}, which is not {logical} and cannot "
                "be widened to it. The file was not written for this schema; restore the right file or schema.",
                error_class="DELTA_PARQUET_COLUMN_TYPE_MISMATCH",
                path=self._path,
                column=where,
                found=str(source.type),
                expected=str(logical),
            )
        return Leaf(source, convert)

    def _struct(self, source: FileField, logical: StructType, physical: StructType, where: str) -> Column:
        candidates = _Candidates(source.children)
        members = tuple(
            (inner.name, self._member(candidates, inner, outer, f"{where}.{inner.name}"))
            for inner, outer in zip(logical, physical, strict=True)
        )
        found = Struct(source, to_arrow(logical, all_nullable=True), members)
        if any(True for _ in leaves(found)):
            return found
        return replace(found, witness=source.first)


def leaves(column: Column) -> Iterator[int]:
    """Yield the indexes of the Parquet leaves to read for a column."""
    match column:
        case Leaf(source) | Variant(source):
            yield from range(source.first, source.end)
        case Struct(_, _, members, witness):
            if witness is not None:
                yield witness
            for _, member in members:
                yield from leaves(member)
        case List(source, _, element):
            inner = list(leaves(element))
            yield from inner or [source.first]
        case Map(source, _, key, value):
            entries = _entries(source)
            assert entries is not None
            yield from leaves(key)
            yield from list(leaves(value)) or [entries[1].first]
        case Absent():
            return


def read_column(column: Column, array: pa.Array) -> pa.Array:
    """Convert data of the file to data of the table. Raises pa.ArrowInvalid for a value that does not fit."""
    match column:
        case Leaf(_, convert):
            return convert(array)
        case Struct(_, target, members):
            return _read_struct(target, members, array)
        case List(_, target, element):
            offsets, values = list_parts(array)
            mask = array.is_null() if array.null_count else None
            return pa.ListArray.from_arrays(offsets, read_column(element, values), type=target, mask=mask)
        case Map(_, target, key, value):
            offsets, entries = list_parts(array)
            mask = array.is_null() if array.null_count else None
            keys, items = read_column(key, entries.field(0)), read_column(value, entries.field(1))
            return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=mask)
        case Variant():
            return reassemble(array)
        case Absent(target):
            return pa.nulls(len(array), target)


def _read_struct(target: pa.DataType, members: tuple[tuple[str, Column], ...], array: pa.Array) -> pa.Array:
    children = []
    for _, member in members:
        if isinstance(member, Absent):
            children.append(pa.nulls(len(array), member.type))
        else:
            children.append(read_column(member, array.field(member.source.name)))
    if not children:
        validity = pa.array(array.is_valid()).buffers()[1]
        return pa.Array.from_buffers(target, len(array), [validity])
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _entries(source: FileField) -> tuple[FileField, FileField] | None:
    if pa.types.is_map(source.type):
        return source.children[0], source.children[1]
    if is_list_like(source.type) and len(source.children[0].children) == 2:
        key, value = source.children[0].children
        return key, value
    return None


def _is_variant(source: FileField) -> bool:
    storage = source.type.storage_type if isinstance(source.type, pa.BaseExtensionType) else source.type
    return pa.types.is_struct(storage) and {"metadata"} <= {f.name for f in storage} <= {
        "metadata",
        "value",
        "typed_value",
    }


def _file_fields(fields: Sequence[pa.Field], first: int) -> tuple[tuple[FileField, ...], int]:
    found = []
    for field in fields:
        children, end = _file_fields(_arrow_children(field.type), first)
        if not children:
            end = first + 1
        text = (field.metadata or {}).get(_FIELD_ID)
        identifier = int(text) if text is not None and int(text) >= 0 else None
        found.append(FileField(field.name, field.type, identifier, first, end, children))
        first = end
    return tuple(found), first


def _arrow_children(arrow_type: pa.DataType) -> list[pa.Field]:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _arrow_children(arrow_type.storage_type)
    if pa.types.is_struct(arrow_type):
        return list(arrow_type)
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    if is_list_like(arrow_type):
        return [arrow_type.value_field]
    return []


def _descend(field: FileField) -> Iterator[FileField]:
    yield field
    for child in field.children:
        yield from _descend(child)
