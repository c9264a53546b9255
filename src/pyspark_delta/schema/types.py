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

Annotation: TypeAlias = Mapping[str, str | None]
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


@dataclass(frozen=True, slots=True)
class StructType:
    """An ordered set of fields; the schema of a table is one."""

    fields: tuple[StructField, ...] = ()
    annotation: Annotation | None = field(default=None, compare=False, repr=False, kw_only=True)
    _index: _Index | None = field(default=None, init=False, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _struct, (self.fields, self.annotation)

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
