"""Keys of whole rows: values that Spark can compare and sort, equal only if the rows are stored as the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.schema.types import (
    DOUBLE,
    FLOAT,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column


def row_key(value: Column, data_type: DataType) -> Column:
    """Return the key of a value. It is null where the value is null.

    Spark takes 0.0 and -0.0 for equal, and some strings of a collation; their keys differ. All NaN have one key. Maps
    and variants become values that Spark compares. Entries of a map keep their order, which is that of the files.
    """
    match data_type:
        case StructType():
            members = [
                row_key(value.getField(field.name), field.type).alias(f"c{i}") for i, field in enumerate(data_type)
            ]
            return sf.when(value.isNotNull(), sf.struct(*members, sf.lit(True).alias("is_row")))
        case ArrayType():
            return sf.transform(value, lambda one: row_key(one, data_type.element_type))
        case MapType():
            return sf.transform(sf.map_entries(value), lambda one: _entry_key(one, data_type))
        case PrimitiveType() | DecimalType():
            return _primitive_key(value, data_type)
    raise ValueError(f"{data_type} has no key")


def _entry_key(entry: Column, data_type: MapType) -> Column:
    key, value = entry.getField("key"), entry.getField("value")
    return sf.struct(row_key(key, data_type.key_type).alias("k"), row_key(value, data_type.value_type).alias("v"))


def _primitive_key(value: Column, data_type: PrimitiveType | DecimalType) -> Column:
    if data_type in (FLOAT, DOUBLE):
        return value.cast("string")
    if data_type == STRING:
        return value.cast("binary")
    if data_type == VARIANT:
        text, kind = sf.to_json(value), sf.schema_of_variant(value)
        return sf.when(value.isNotNull(), sf.struct(text.alias("text"), kind.alias("type")))
    if data_type == VOID:
        return sf.lit(None).cast("boolean")
    return value
