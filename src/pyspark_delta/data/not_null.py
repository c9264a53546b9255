"""Checks that NOT NULL columns contain no null, before a batch is written (Schema Serialization, `nullable`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType


def check_not_null(batch: pa.RecordBatch, schema: StructType) -> None:
    """Check everything that `schema` declares as not nullable: columns, struct members, array elements, map values.

    Values inside a null are ignored. Raises ConstraintViolationError naming the column.
    """
    for field in schema:
        if field.nullable and not _binds(field.type):
            continue
        column = batch.column(field.name)
        if not field.nullable and column.null_count:
            raise _violation((field.name,), column.null_count)
        if _binds(field.type):
            _check(column, field.type, (field.name,))


@cache
def _binds(data_type: DataType) -> bool:
    """Return True if anything in the type is not nullable, except the keys of maps, which Arrow checks."""
    return any(_is_bound(found) for found in types_in(data_type))


def _is_bound(data_type: DataType) -> bool:
    match data_type:
        case StructType(fields):
            return not all(field.nullable for field in fields)
        case ArrayType(_, contains_null):
            return not contains_null
        case MapType(_, _, value_contains_null):
            return not value_contains_null
        case _:
            return False


def _check(values: Any, data_type: DataType, path: tuple[str, ...]) -> None:
    match data_type:
        case StructType(fields):
            for index, field in enumerate(fields):
                # A member is also null if the struct is.
                member = pc.struct_field(values, [index])
                _check_inner(member, field.type, (*path, field.name), field.nullable, values.null_count)
        case ArrayType(element, contains_null):
            _check_inner(pc.list_flatten(values), element, (*path, "element"), contains_null)
        case MapType(key, value, value_contains_null):
            values = values.drop_null()  # a null may still have entries below it
            start, stop = values.offsets[0].as_py(), values.offsets[-1].as_py()
            keys, items = (part.slice(start, stop - start) for part in (values.keys, values.items))
            _check_inner(keys, key, (*path, "key"), nullable=False)
            _check_inner(items, value, (*path, "value"), value_contains_null)


def _check_inner(
    values: Any, data_type: DataType, path: tuple[str, ...], nullable: bool, nulls_of_parent: int = 0
) -> None:
    missing = 0 if nullable else values.null_count - nulls_of_parent
    if missing:
        raise _violation(path, missing)
    if _binds(data_type):
        _check(values, data_type, path)


def _violation(path: tuple[str, ...], rows: int) -> ConstraintViolationError:
    column = ".".join(path)
    return ConstraintViolationError(
        f"The column '{column}' is NOT NULL, but {rows} of its values to write are null. Nothing was committed. "
        "Fill or filter these rows.",
        error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        sqlstate="23502",
        column=column,
        rows=rows,
    )
