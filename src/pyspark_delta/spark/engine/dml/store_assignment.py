"""Store assignment: casts a value to the type of a column, part by part, and reports values that do not fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.schema.store_assignment import (
    Cast,
    cast_of,
    check_complete,
    check_storable,
    lacking_members,
    matched_members,
)
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType, is_same_type
from pyspark_delta.spark.engine.write.alignment import spark_type
from pyspark_delta.spark.frames.catalyst.columns import try_cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """A value cast to the type of a column, null if the cast fails.

    `unfit` is the text of a value whose cast fails, null for other values; None if no cast can fail.
    """

    value: Column
    unfit: Column | None = None


def assign_value(
    value: Column, data: DataType, field: StructField, old: Column | None = None, *, fills: bool = False
) -> StoreAssignment:
    """Return a value of the type `data`, cast to the type of a column. Struct members are matched by name.

    With `fills`, structs may lack members. A missing member is null. If `old` is given, the value of the column before
    the statement, the member keeps its value from there, even if the new struct is null.

    Raises SchemaMismatchError for missing members without `fills`, for members that the column does not have, and for
    types of another kind; and Spark's own errors about types that cannot be cast.
    """
    check_storable(StructType((StructField(field.name, data),)), StructType((field,)), casts=True)
    if not fills:
        check_complete(data, field)
    found, is_unfit = _fit(value, data, field.type, old)
    return StoreAssignment(found, None if is_unfit is None else sf.when(is_unfit, value.cast("string")))


def _fit(value: Column, data: DataType, table: DataType, old: Column | None = None) -> tuple[Column, Column | None]:
    """Return the cast value, and a condition that is true if a part of it does not fit; None if all parts fit.

    The condition may be null instead of false, for example for a null array.
    """
    cast = cast_of(data, table)
    if cast is Cast.KEEP and (old is None or table.annotation is not None):
        return value, None  # user-defined types are opaque
    match data, table:
        case StructType(), StructType():
            return _fit_struct(value, data, table, old)
        case ArrayType(source), ArrayType(target):
            return _fit_elements(value, source, target)
        case MapType(), MapType():
            return _fit_map(value, data, table)
        case _ if cast is Cast.KEEP:
            return value, None
        case _ if cast is Cast.NULL:
            return value.cast(spark_type(table)), None
    found = try_cast(value, spark_type(table))
    return found, value.isNotNull() & found.isNull()


def _fit_struct(value: Column, data: StructType, table: StructType, old: Column | None) -> tuple[Column, Column | None]:
    members, unfit = [], []
    for field, place in matched_members(data, table):
        source = None if place is None else data.fields[place]
        before = None if old is None else old.getField(field.name)
        if source is None:
            member = sf.lit(None).cast(spark_type(field.type)) if before is None else before
        else:
            member, is_unfit = _fit(value.getField(source.name), source.type, field.type, before)
            unfit += [] if is_unfit is None else [is_unfit]
        members.append(member.alias(field.name))
    is_there = value.isNotNull()
    if old is not None and any(lacking_members(data, table, ())):
        is_there |= old.isNotNull()
    return sf.when(is_there, sf.struct(*members)), _any(unfit)


def _fit_elements(value: Column, data: DataType, table: DataType) -> tuple[Column, Column | None]:
    found = sf.transform(value, lambda one: _fit(one, data, table)[0])
    return found, _is_any_unfit(value, data, table)


def _fit_map(value: Column, data: MapType, table: MapType) -> tuple[Column, Column | None]:
    found, unfit = value, []
    if not is_same_type(data.key_type, table.key_type):
        found = sf.transform_keys(found, lambda key, _: _fit(key, data.key_type, table.key_type)[0])
        unfit.append(_is_any_unfit(sf.map_keys(value), data.key_type, table.key_type))
    if not is_same_type(data.value_type, table.value_type):
        found = sf.transform_values(found, lambda _, item: _fit(item, data.value_type, table.value_type)[0])
        unfit.append(_is_any_unfit(sf.map_values(value), data.value_type, table.value_type))
    return found, _any(one for one in unfit if one is not None)


def _is_any_unfit(values: Column, data: DataType, table: DataType) -> Column | None:
    """Return a condition that is true if an element of an array does not fit; None if all types fit."""
    if _fit(sf.lit(None).cast(spark_type(data)), data, table)[1] is None:
        return None

    def is_unfit(one: Column) -> Column:
        found = _fit(one, data, table)[1]
        assert found is not None
        return found

    return sf.exists(values, is_unfit)


def _any(unfit: Iterable[Column]) -> Column | None:
    found = list(unfit)
    return reduce(or_, found) if found else None
