"""Aligns the columns of a frame with the schema of a table: by name, with null for missing columns.

Only casts that cannot fail are done here. Numbers that may not fit are left to the Arrow writer, which casts them and
rejects a value that does not fit. So the result does not depend on the session's ANSI setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf
import pyspark.sql.types as st

from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.schema.store_assignment import ALL_INTEGERS, Cast, cast_of, matched_members
from pyspark_delta.schema.types import (
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    is_same_type,
)
from pyspark_delta.spark.frames.plain_columns import aliased, column_at
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.frames.supported_types import check_types
from pyspark_delta.spark.frames.user_defined_types import with_loadable_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, SparkSession


def frame_schema(frame: DataFrame) -> StructType:
    """Return the schema of a frame as Delta types. Raises as `from_spark`."""
    return from_spark(lambda: frame.schema)


def align(frame: DataFrame, data: StructType, table: StructType) -> DataFrame:
    """Return the frame with exactly the columns of `table`, in its order; `data` is the frame's schema.

    Raises UnsupportedTableError for a type that this PySpark does not have.
    """
    check_types(table)
    if _is_aligned(data, table):
        return frame  # a projection takes several messages to the JVM for each column
    spark = frame.sparkSession
    return frame.select(*(aliased(value, name) for name, value in fitted_columns(spark, data, table).items()))


def _is_aligned(data: StructType, table: StructType) -> bool:
    return data.names == table.names and all(
        ours.type != VOID and is_same_type(ours.type, theirs.type) for ours, theirs in zip(data, table, strict=True)
    )


def fitted_columns(spark: SparkSession, data: StructType, targets: Iterable[StructField]) -> dict[str, Column]:
    """Return the values for columns of the table: the frame's columns of the same names, or null."""
    nulls: dict[st.DataType, Column] = {}  # one for each type, since a cast takes thirty messages to the JVM

    def null(data_type: st.DataType) -> Column:
        if data_type not in nulls:
            nulls[data_type] = sf.lit(None).cast(data_type)
        return nulls[data_type]

    def fitted(target: StructField) -> Column:
        source = data.find(target.name)
        if source is None or source.type == VOID:
            return null(spark_type(target.type))
        return fit(column_at(spark, quoted(source.name)), source.type, target.type)

    return {target.name: fitted(target) for target in targets}


def fit(value: Column, data: DataType, table: DataType) -> Column:
    """Return a value of the type `data` cast to the type `table`, except for parts whose cast may fail.

    Struct members are matched by name. A number that may not fit keeps its type; for a decimal column, an integer
    becomes `ALL_INTEGERS`.
    """
    cast = cast_of(data, table)
    if cast is Cast.KEEP:
        return value
    fitted = _cast_type(data, table)
    if fitted is not None:
        return value if is_same_type(data, fitted) else value.cast(spark_type(fitted))
    match data, table:
        case StructType(), StructType():
            return _fit_struct(value, data, table)
        case ArrayType(source), ArrayType(target):
            return sf.transform(value, lambda element: fit(element, source, target))
        case MapType(), MapType():
            return _fit_map(value, data, table)
    raise ValueError(f"{data} is not cast to {table}")


def _cast_type(data: DataType, table: DataType) -> DataType | None:
    """Return the type to which one cast brings a value; None if it has structs or maps, whose parts need a cast each.

    Elements of arrays are cast with them: Spark fails for functions of elements if those of a Parquet file are all
    null.
    """
    cast = cast_of(data, table)
    if cast is Cast.KEEP:
        return data
    match data, table:
        case (StructType(), StructType()) | (MapType(), MapType()):
            return None
        case ArrayType(source), ArrayType(target):
            element = _cast_type(source, target)
            return None if element is None else ArrayType(element)
        case PrimitiveType(), DecimalType() if cast is Cast.CHECK:
            return ALL_INTEGERS
    return data if cast is Cast.CHECK else table


def _fit_struct(value: Column, data: StructType, table: StructType) -> Column:
    members = []
    for target, place in matched_members(data, table):
        source = None if place is None else data.fields[place]
        if source is None or source.type == VOID:
            member = sf.lit(None).cast(spark_type(target.type))
        else:
            member = fit(value.getField(source.name), source.type, target.type)
        members.append(member.alias(target.name))
    return sf.when(value.isNotNull(), sf.struct(*members))


def _fit_map(value: Column, data: MapType, table: MapType) -> Column:
    if not is_same_type(data.key_type, table.key_type):
        value = sf.transform_keys(value, lambda key, _: fit(key, data.key_type, table.key_type))
    if not is_same_type(data.value_type, table.value_type):
        value = sf.transform_values(value, lambda _, item: fit(item, data.value_type, table.value_type))
    return value


def spark_type(data_type: DataType) -> st.DataType:
    """Return the PySpark type of a Delta type; a user-defined type that is not loadable becomes its storage type."""
    field = {"name": "value", "type": type_to_json(with_loadable_types(data_type)), "nullable": True, "metadata": {}}
    return st.StructField.fromJson(field).dataType
