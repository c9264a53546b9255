"""The columns of DESCRIBE HISTORY and DESCRIBE DETAIL, as delta-spark has them, and their rows as an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from pyspark_delta.schema.timestamps import utc_datetime

_TIME = pa.timestamp("us", "UTC")
_TEXTS = pa.map_(pa.string(), pa.string())
_JOB = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
HISTORY = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": _TIME,
        "userId": pa.string(),
        "userName": pa.string(),
        "operation": pa.string(),
        "operationParameters": _TEXTS,
        "job": pa.struct({name: pa.string() for name in _JOB}),
        "notebook": pa.struct({"notebookId": pa.string()}),
        "clusterId": pa.string(),
        "readVersion": pa.int64(),
        "isolationLevel": pa.string(),
        "isBlindAppend": pa.bool_(),
        "operationMetrics": _TEXTS,
        "userMetadata": pa.string(),
        "engineInfo": pa.string(),
    }
)
DETAIL = pa.schema(
    {
        "format": pa.string(),
        "id": pa.string(),
        "name": pa.string(),
        "description": pa.string(),
        "location": pa.string(),
        "createdAt": _TIME,
        "lastModified": _TIME,
        "partitionColumns": pa.list_(pa.string()),
        "clusteringColumns": pa.list_(pa.string()),
        "numFiles": pa.int64(),
        "sizeInBytes": pa.int64(),
        "properties": _TEXTS,
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "tableFeatures": pa.list_(pa.string()),
    }
)


def rows(schema: pa.Schema, values: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows of a schema. A value of another type, as other writers may have it, is null, or JSON in texts."""
    return pa.Table.from_pylist(
        [{field.name: _value(one.get(field.name), field.type) for field in schema} for one in values], schema
    )


def _value(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(data_type):
        return _text(value)
    if pa.types.is_timestamp(data_type):
        return value if isinstance(value, datetime) else utc_datetime(value) if _is_whole(value) else None
    if pa.types.is_boolean(data_type):
        return value if isinstance(value, bool) else None
    if pa.types.is_integer(data_type):
        return value if _is_whole(value) else None
    if pa.types.is_map(data_type):
        return [(str(key), _text(one)) for key, one in value.items()] if isinstance(value, Mapping) else None
    if pa.types.is_list(data_type):
        return [_text(one) for one in value]
    if not isinstance(value, Mapping):
        return None
    return {field.name: _text(value.get(field.name)) for field in data_type}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)
