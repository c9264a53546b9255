"""Keys of whole rows: values that Spark can compare and sort, equal only if the rows are stored as the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.spark.engine.write.alignment import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_COMPARABLE: dict[DataType, DataType] = {FLOAT: STRING, DOUBLE: STRING, STRING: BINARY, VOID: BOOLEAN}


def row_key(value: Column, data_type: DataType) -> Column:
    """Return the key of a value. It is null where the value is null.

    Spark takes 0.0 and -0.0 for equal, and some strings of a collation; their keys differ. All NaN have one key. Maps
    and variants become values that Spark compares. Entries of a map keep their order, which is that of the files.
    """
    if _casts(data_type):
        # A lambda over elements would fail: Spark decodes null elements too, which a Parquet file may lack a value for.
        key = _comparable(data_type)
        return value if key == data_type and data_type != STRING else value.cast(spark_type(key))
    match data_type:
        case StructType():
            members = (row_key(value.getField(member.name), member.type) for member in data_type)
            named = [member.alias(f"c{number}") for number, member in enumerate(members)]
            return sf.when(value.isNotNull(), sf.struct(*named))
        case ArrayType():
            return sf.transform(value, lambda one: row_key(one, data_type.element_type))
        case MapType():
            entry = StructType(
                (StructField("key", data_type.key_type, nullable=False), StructField("value", data_type.value_type))
            )
            return row_key(sf.map_entries(value), ArrayType(entry))
    text, kind = sf.to_json(value), sf.schema_of_variant(value)
    return sf.when(value.isNotNull(), sf.struct(text.alias("text"), kind.alias("type")))


def _casts(data_type: DataType) -> bool:
    """Return True if one cast makes the key."""
    match data_type:
        case StructType():
            return bool(data_type.fields) and all(_casts(member.type) for member in data_type)
        case ArrayType():
            return _casts(data_type.element_type)
        case MapType():
            return False
    return data_type != VARIANT


def _comparable(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            names = (f"c{number}" for number in range(len(data_type)))
            return StructType(
                tuple(
                    StructField(name, _comparable(member.type)) for name, member in zip(names, data_type, strict=True)
                )
            )
        case ArrayType():
            return ArrayType(_comparable(data_type.element_type))
    return _COMPARABLE.get(data_type, data_type)
