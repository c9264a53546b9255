"""The types of the Delta schema as frozen values (Schema Serialization Format; C426-C433).

DataType = PrimitiveType | DecimalType | ArrayType | MapType | StructType

Primitive names are the serialized ones: string, long, integer, short, byte, float, double, boolean, binary, date,
timestamp, timestamp_ntz, void, variant, `interval year to month`, `interval day to second`. Geometry and geography
types are recognised, so that they can be refused by name.

A user-defined type is its storage type with an `annotation` that names its class for the engine that defined it; the
annotation is kept unchanged (RFC of user-defined types). Types that differ in nothing else are equal. Column mapping,
statistics and changes of the schema treat it as one column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyspark_delta.display import html_rows

Annotation: TypeAlias = Mapping[str, str | None]
_SHORT = 100  # characters
_Index: TypeAlias = "tuple[dict[str, StructField], dict[str, StructField]]"  # by name, and by case-folded name


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters; `name` is its serialized name."""

    name: str
    annotation: Annotation | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact number of at most 38 digits (`precision`), `scale` of them after the point."""

    precision: int
    scale: int
    annotation: Annotation | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of values of one type."""

    element_type: DataType
    contains_null: bool = True
    annotation: Annotation | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return f"array<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from keys of one type to values of one type; keys are never null."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True
    annotation: Annotation | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return f"map<{self.key_type},{self.value_type}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A named member of a struct, or a column of the table. `metadata` is kept unchanged, unknown keys too (C434)."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, repr=False)
class StructType:
    """An ordered set of fields; the schema of a table is one."""

    fields: tuple[StructField, ...] = ()
    annotation: Annotation | None = field(default=None, compare=False, repr=False, kw_only=True)
    _index: _Index | None = field(default=None, init=False, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _struct, (self.fields, self.annotation)

    def __repr__(self) -> str:
        return f"StructType({short_text(self)})"

    def _repr_html_(self) -> str:
        rows = ((line, "") for line in list(_tree_lines(self))[1:])
        return html_rows("StructType", (), rows)

    def tree(self) -> str:
        """Return the columns and nested fields as a tree of lines, as `printSchema` of PySpark prints it."""
        return "\n".join(_tree_lines(self))

    def __str__(self) -> str:
        return f"struct<{','.join(f'{f.name}:{f.type}' for f in self.fields)}>"

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The field names, in order."""
        return tuple(f.name for f in self.fields)

    def find(self, name: str) -> StructField | None:
        """Return the field of that name: an exact match first, otherwise ignoring case; None if there is none."""
        exact, folded = self._index or self._make_index()
        return exact.get(name) or folded.get(name.casefold())

    def _make_index(self) -> _Index:
        """Return the fields by name. It is built once: a linear search per column would take quadratic time."""
        index: _Index = ({}, {})
        for f in self.fields:
            index[0].setdefault(f.name, f)
            index[1].setdefault(f.name.casefold(), f)
        object.__setattr__(self, "_index", index)
        return index


def _struct(fields: tuple[StructField, ...], annotation: Annotation | None) -> StructType:
    """Rebuild a pickled struct; its index is not pickled."""
    return StructType(fields, annotation=annotation)


DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType

STRING = PrimitiveType("string")
LONG = PrimitiveType("long")
INTEGER = PrimitiveType("integer")
SHORT = PrimitiveType("short")
BYTE = PrimitiveType("byte")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
BOOLEAN = PrimitiveType("boolean")
BINARY = PrimitiveType("binary")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VOID = PrimitiveType("void")
VARIANT = PrimitiveType("variant")
YEAR_MONTH_INTERVAL = PrimitiveType("interval year to month")
DAY_TIME_INTERVAL = PrimitiveType("interval day to second")


def is_same_type(data: DataType, table: DataType) -> bool:
    """True if the types agree in everything but nullability and metadata."""
    match data, table:
        case StructType(ours), StructType(theirs):
            return len(ours) == len(theirs) and all(
                a.name == b.name and is_same_type(a.type, b.type) for a, b in zip(ours, theirs, strict=True)
            )
        case ArrayType(ours), ArrayType(theirs):
            return is_same_type(ours, theirs)
        case MapType(), MapType():
            return is_same_type(data.key_type, table.key_type) and is_same_type(data.value_type, table.value_type)
        case _:
            return data == table


# --------------------------------------------------------------------------------------------------------- texts
def _tree_lines(schema: StructType) -> Iterator[str]:
    """Yield the lines of the tree, as PySpark prints it: each with name, type and whether it can be null."""
    yield "root"
    yield from _members(schema, " |-- ")


def short_text(schema: StructType) -> str:
    """Return the columns with their types on one line, and how many were left out."""
    shown: list[str] = []
    length = 0
    for f in schema:
        text = f"{f.name}: {f.type}"
        text = text if len(text) <= _SHORT // 2 else f"{text[: _SHORT // 2 - 3]}..."
        length += len(text) + 2
        if shown and length > _SHORT:
            break
        shown.append(text)
    more = len(schema) - len(shown)
    return ", ".join(shown) + (f", ... {more} more" if more else "")


def _members(data_type: DataType, prefix: str) -> Iterator[str]:
    """Yield the lines of what is directly or further inside a type."""
    inner = f" |   {prefix}"
    match data_type:
        case StructType(fields):
            for f in fields:
                yield f"{prefix}{f.name}: {_name(f.type)} (nullable = {_truth(f.nullable)})"
                yield from _members(f.type, inner)
        case ArrayType(element, contains_null):
            yield f"{prefix}element: {_name(element)} (containsNull = {_truth(contains_null)})"
            yield from _members(element, inner)
        case MapType(key, value, contains_null):
            yield f"{prefix}key: {_name(key)}"
            yield from _members(key, inner)
            yield f"{prefix}value: {_name(value)} (valueContainsNull = {_truth(contains_null)})"
            yield from _members(value, inner)


def _name(data_type: DataType) -> str:
    return str(data_type).partition("<")[0]


def _truth(value: bool) -> str:
    return str(value).lower()
