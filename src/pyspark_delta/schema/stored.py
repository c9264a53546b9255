"""The part of a table's schema that data files hold: everything but void (void type: a void column is always null)."""

from __future__ import annotations

from dataclasses import replace

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import (
    DAY_TIME_INTERVAL,
    VOID,
    YEAR_MONTH_INTERVAL,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)


def stored_schema(schema: StructType) -> StructType:
    """Return the columns that files hold; void columns, and void members of structs, are left out.

    Raises SchemaMismatchError for a schema that no file can be written with: void inside an array or a map, a struct or
    a table of void columns only, and intervals, which Delta does not store.
    """
    columns = tuple(_stored(field) for field in schema if field.type != VOID)
    if not columns:
        raise SchemaMismatchError(
            "All columns of the table are void, so a data file would have no columns. Add a column of another type."
        )
    return StructType(columns)


def without_void(schema: StructType) -> StructType:
    """Return the schema without void columns and void members of structs, also if no file can be written with it."""
    kept = (field for field in schema if field.type != VOID)
    return StructType(
        tuple(
            replace(f, type=without_void(f.type)) if isinstance(f.type, StructType) and f.type.annotation is None else f
            for f in kept
        )
    )


def check_no_intervals(field: StructField) -> None:
    """Raise SchemaMismatchError for a column with an interval in its type, which Delta does not store."""
    for found in types_in(field.type):
        if found in (YEAR_MONTH_INTERVAL, DAY_TIME_INTERVAL):
            raise SchemaMismatchError(
                f"The column '{field.name}' is of type {found}, which Delta cannot store. Cast it to a number.",
                error_class="DELTA_UNSUPPORTED_DATA_TYPES",
                column=field.name,
            )


def _stored(field: StructField) -> StructField:
    check_no_intervals(field)
    return replace(field, type=_without_void(field.type, field.name))


def _without_void(data_type: DataType, column: str) -> DataType:
    match data_type:
        case _ if data_type.annotation is not None:
            return data_type
        case StructType(fields):
            kept = tuple(replace(f, type=_without_void(f.type, column)) for f in fields if f.type != VOID)
            if not kept:
                raise _nothing_to_store(column)
            return StructType(kept)
        case ArrayType(element, contains_null):
            return ArrayType(_without_void(element, column), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(_without_void(key, column), _without_void(value, column), value_contains_null)
        case _ if data_type == VOID:
            raise _nothing_to_store(column)
        case _:
            return data_type


def _nothing_to_store(column: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"The column '{column}' contains type void inside an array or map, or as the only field of a struct, which "
        "files cannot store. Give it a type before rows are written.",
        column=column,
    )
