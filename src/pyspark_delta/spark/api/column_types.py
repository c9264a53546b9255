"""Converts PySpark types, and names of types in SQL, to types and fields of a Delta schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, CharType, MapType, StringType, VarcharType, _parse_datatype_string
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.text_lengths import DECLARED_TYPE
from pyspark_delta.schema.types import StructField
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.schemas import from_spark


def delta_field(
    name: str,
    data_type: str | SparkType,
    nullable: bool = True,
    *,
    comment: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> StructField:
    """Return a field of a Delta schema; `data_type` is a PySpark type or its name in SQL.

    Raises InvalidOperationError for anything else, and as `from_spark`.
    """
    wanted = _spark_type(data_type, name)
    found = {**(metadata or {}), **({} if comment is None else {"comment": comment})}
    stored = _stored(wanted)
    if stored != wanted:
        found[DECLARED_TYPE] = wanted.simpleString()
    field = SparkField(name, stored, nullable, found)
    return from_spark(lambda: SparkStruct([field])).fields[0]


def _stored(data_type: SparkType) -> SparkType:
    """Return a type with strings in the place of char and varchar, which Delta keeps in metadata."""
    match data_type:
        case CharType() | VarcharType():
            return StringType()
        case ArrayType():
            return ArrayType(_stored(data_type.elementType), data_type.containsNull)
        case MapType():
            return MapType(_stored(data_type.keyType), _stored(data_type.valueType), data_type.valueContainsNull)
        case SparkStruct():
            return SparkStruct([SparkField(f.name, _stored(f.dataType), f.nullable, f.metadata) for f in data_type])
        case _:
            return data_type


def _spark_type(data_type: str | SparkType, name: str) -> SparkType:
    if isinstance(data_type, SparkType):
        return data_type
    if not isinstance(data_type, str):
        raise InvalidOperationError(
            f"The type of column '{name}' is a DataType or text such as 'bigint', found {type(data_type).__name__}."
        )
    try:
        with probing():
            return _parse_datatype_string(data_type)
    except PySparkException as error:
        raise InvalidOperationError(
            f"'{data_type}' is not a type for column '{name}': {str(error).strip().splitlines()[0]}"
        ) from None
