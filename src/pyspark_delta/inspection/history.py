"""The metadata table `history`: one row for each commit, newest first, with the columns of DESCRIBE HISTORY."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa

from pyspark_delta.log.history import commits_newest_first
from pyspark_delta.snapshot import Snapshot

_TEXTS = pa.map_(pa.string(), pa.string())
_JOB = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
_SCHEMA = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("userId", pa.string()),
        pa.field("userName", pa.string()),
        pa.field("operation", pa.string()),
        pa.field("operationParameters", _TEXTS),
        pa.field("job", pa.struct([pa.field(name, pa.string()) for name in _JOB])),
        pa.field("notebook", pa.struct([pa.field("notebookId", pa.string())])),
        pa.field("clusterId", pa.string()),
        pa.field("readVersion", pa.int64()),
        pa.field("isolationLevel", pa.string()),
        pa.field("isBlindAppend", pa.bool_()),
        pa.field("operationMetrics", _TEXTS),
        pa.field("userMetadata", pa.string()),
        pa.field("engineInfo", pa.string()),
    ]
)
_COMMITS_PER_BATCH = 1000


def history_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `history`."""
    return _SCHEMA


def history_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the commits up to the version, as far back as the log goes. Raises CorruptLogError."""
    remaining = commits_newest_first(snapshot)
    while commits := list(islice(remaining, _COMMITS_PER_BATCH)):
        rows = [{field.name: _value(commit.get(field.name), field.type) for field in _SCHEMA} for commit in commits]
        yield pa.RecordBatch.from_pylist(rows, _SCHEMA)


def _value(value: Any, arrow_type: pa.DataType) -> Any:
    """Return a value in the type of its column.

    Commits of other writers may have values of other types: these become null, or JSON in a column of strings.
    """
    if value is None:
        return None
    if pa.types.is_string(arrow_type):
        return _text(value)
    if pa.types.is_boolean(arrow_type):
        return value if isinstance(value, bool) else None
    if pa.types.is_integer(arrow_type):
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if pa.types.is_timestamp(arrow_type):
        return value
    if not isinstance(value, Mapping):
        return None
    if pa.types.is_struct(arrow_type):
        return {field.name: _text(value.get(field.name)) for field in arrow_type}
    return [(str(key), _text(item)) for key, item in value.items()]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
