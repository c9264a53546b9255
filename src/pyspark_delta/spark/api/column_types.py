"""Converts PySpark types, and names of types in SQL, to types and fields of a Delta schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.types import _parse_datatype_string

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.types import DataType, StructField
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
    found = {**(metadata or {}), **({} if comment is None else {"comment": comment})}
    field = SparkField(name, _spark_type(data_type, name), nullable, found)
    return from_spark(lambda: SparkStruct([field])).fields[0]


def delta_type(data_type: str | SparkType) -> DataType:
    """Return a type of a Delta schema for a PySpark type or its name in SQL. Raises as `delta_field`."""
    return delta_field("column", data_type).type


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
