"""Rules for the columns of a table, independent of its features: names, types and partitioning (C134, C426-C433)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.stored import check_no_intervals
from pyspark_delta.schema.traversal import fields_in, types_in
from pyspark_delta.schema.types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

# Characters that a column name may contain only if the table maps columns.
INVALID_CHARACTERS = " ,;{}()\n\t="


def check_columns(schema: StructType, *, mapped: bool = False) -> None:
    """Check names and types of the columns of a table; if `mapped`, column mapping allows any name.

    Raises SchemaMismatchError.
    """
    check_distinct(schema)
    if all(f.type == VOID for f in schema):
        raise SchemaMismatchError(
            "The data has no columns to store (void columns are not stored); a table needs at least one.",
            error_class="DELTA_EMPTY_DATA",
        )
    for field in fields_in(schema):
        wrong = sorted({c for c in field.name if c in INVALID_CHARACTERS}) if not mapped else []
        if wrong or not field.name:
            found = f"holds {', '.join(repr(c) for c in wrong)}" if wrong else "is empty"
            raise SchemaMismatchError(
                f"The column name '{field.name}' {found}. Names must not be empty or contain any of ' ,;{{}}()\\n\\t=' "
                "unless the table maps columns by name. Rename the column, for example with an alias, or set the table "
                "property delta.columnMapping.mode to name.",
                error_class="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                column=field.name,
            )
    _check_types(schema)


def check_distinct(schema: StructType) -> None:
    """Check that no two columns of a struct, including nested ones, have the same name, ignoring case.

    Raises SchemaMismatchError.
    """
    _check_names(schema, "")
    for field in fields_in(schema):
        for struct in _nearest_structs(field.type):
            _check_names(struct, field.name)


def _check_names(struct: StructType, where: str) -> None:
    seen: dict[str, str] = {}
    for field in struct:
        folded = field.name.casefold()
        if folded in seen:
            raise SchemaMismatchError(
                f"The data has two columns{f' in {where}' if where else ''} with the same name, ignoring case: "
                f"'{seen[folded]}' and '{field.name}'. Rename or drop one.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                column=field.name,
            )
        seen[folded] = field.name


def _nearest_structs(data_type: DataType) -> Iterator[StructType]:
    """Yield the type itself, or the structs inside its arrays and maps, but not structs inside structs."""
    match data_type:
        case StructType():
            yield data_type
        case ArrayType(element):
            yield from _nearest_structs(element)
        case MapType(key, value):
            yield from _nearest_structs(key)
            yield from _nearest_structs(value)


def resolve_partitioning(schema: StructType, names: Sequence[str]) -> tuple[str, ...]:
    """Return the partition columns as the schema spells them. Raises InvalidOperationError."""
    found: list[StructField] = []
    for name in names:
        field = schema.find(name)
        if field is None:
            raise InvalidOperationError(
                f"The partition column '{name}' is not one of the columns {', '.join(schema.names)}.",
                error_class="DELTA_MISSING_PARTITION_COLUMN",
                column=name,
            )
        if field in found:
            raise InvalidOperationError(
                f"The partition column '{name}' is given twice.", error_class="DELTA_DUPLICATE_COLUMNS_FOUND"
            )
        is_plain = field.type.annotation is None and not isinstance(field.type, ArrayType | MapType | StructType)
        if not is_plain or field.type in (VARIANT, VOID):
            raise InvalidOperationError(
                f"The column '{name}' of type {field.type} cannot be a partition column.",
                error_class="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                column=name,
            )
        found.append(field)
    if found and len(found) == len(schema):
        raise InvalidOperationError(
            "A table cannot be partitioned by all of its columns: no column would be left for the data files.",
            error_class="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        )
    return tuple(f.name for f in found)


def check_partition_names(configuration: TableConfiguration, names: Iterable[str]) -> None:
    """Raise InvalidOperationError if the PARTITION of an INSERT names another column than a partition column."""
    partitioning = {name.casefold() for name in configuration.partition_columns}
    for name in names:
        if name.casefold() not in partitioning:
            raise InvalidOperationError(
                f"PARTITION names '{name}', which is not a partition column of '{configuration.location}'. Its "
                f"partition columns: {', '.join(configuration.partition_columns) or 'none'}. Leave PARTITION out.",
                error_class="NON_PARTITION_COLUMN",
                column=name,
            )


def _check_types(schema: StructType) -> None:
    for field in schema:
        if field.type == VOID:
            continue  # part of the table's schema, never stored
        for found in types_in(field.type):
            if _is_empty(found):
                raise SchemaMismatchError(
                    f"The column '{field.name}' of type {field.type} has no values that a data file can store. "
                    "Give it a type with a cast, or drop it.",
                    column=field.name,
                )
        check_no_intervals(field)


def _is_empty(data_type: DataType) -> bool:
    """True if nothing of the type is stored: structs without a stored field, lists and maps of void."""
    match data_type:
        case StructType(fields):
            return all(f.type == VOID for f in fields)
        case ArrayType(element):
            return element == VOID
        case MapType(key, value):
            return VOID in (key, value)
        case _:
            return False
