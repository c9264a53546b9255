"""History and detail of a table as DataFrames, with the same columns as in delta-spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_delta.schema.timestamps import utc_datetime

_TEXTS = MapType(StringType(), StringType())
_JOB = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")


def _struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in columns.items()])


_HISTORY = _struct(
    version=LongType(),
    timestamp=TimestampType(),
    userId=StringType(),
    userName=StringType(),
    operation=StringType(),
    operationParameters=_TEXTS,
    job=_struct(**{name: StringType() for name in _JOB}),
    notebook=_struct(notebookId=StringType()),
    clusterId=StringType(),
    readVersion=LongType(),
    isolationLevel=StringType(),
    isBlindAppend=BooleanType(),
    operationMetrics=_TEXTS,
    userMetadata=StringType(),
    engineInfo=StringType(),
)
_DETAIL = _struct(
    format=StringType(),
    id=StringType(),
    name=StringType(),
    description=StringType(),
    location=StringType(),
    createdAt=TimestampType(),
    lastModified=TimestampType(),
    partitionColumns=ArrayType(StringType()),
    clusteringColumns=ArrayType(StringType()),
    numFiles=LongType(),
    sizeInBytes=LongType(),
    properties=_TEXTS,
    minReaderVersion=IntegerType(),
    minWriterVersion=IntegerType(),
    tableFeatures=ArrayType(StringType()),
)


def history_frame(spark: SparkSession, commits: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return the commits of `Table.history` as rows, newest first."""
    return _frame(spark, commits, _HISTORY)


def detail_frame(spark: SparkSession, detail: Mapping[str, Any]) -> DataFrame:
    """Return the one row of `Table.detail`."""
    return _frame(spark, [detail], _DETAIL)


def _frame(spark: SparkSession, values: Iterable[Mapping[str, Any]], schema: StructType) -> DataFrame:
    rows = [
        Row(*(_value(one.get(field.name), field.dataType.typeName(), field.dataType) for field in schema))
        for one in values
    ]
    return spark.createDataFrame(rows, schema)


def _value(value: Any, kind: str, data_type: Any) -> Any:
    """Return a value in the type of its column.

    Commits of other writers may have values of other types: these become null, or JSON in a column of strings.
    """
    if value is None:
        return None
    match kind:
        case "string":
            return _text(value)
        case "timestamp":
            return value if isinstance(value, datetime) else _instant(value)
        case "boolean":
            return value if isinstance(value, bool) else None
        case "long" | "integer":
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        case "map":
            return {str(k): _text(v) for k, v in value.items()} if isinstance(value, Mapping) else None
        case "array":
            return [_text(one) for one in value]
        case _:
            if not isinstance(value, Mapping):
                return None
            return Row(*(_text(value[name]) if value.get(name) is not None else None for name in data_type.names))


def _text(value: Any) -> str | None:
    """Return strings and None unchanged, other values as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


def _instant(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, int) or isinstance(milliseconds, bool):
        return None
    return utc_datetime(milliseconds)
