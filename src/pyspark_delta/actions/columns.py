"""The columnar form of file actions: the Arrow schema that the log reader fills and the scan planner reads.

One row is one logical file. Columns that were not requested are absent. `path` and the keys of `partition_values` are
as in the log: URI-encoded, physical names.
"""

from __future__ import annotations

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError

PATH = pa.field("path", pa.string(), nullable=False)
PARTITION_VALUES = pa.field("partition_values", pa.map_(pa.string(), pa.string()))
SIZE = pa.field("size", pa.int64())
MODIFICATION_TIME = pa.field("modification_time", pa.int64())  # ms since the epoch
STATS = pa.field("stats", pa.string())  # the statistics as JSON text
DELETION_VECTOR = pa.field(
    "deletion_vector",
    pa.struct(
        [
            pa.field("storage_type", pa.string()),
            pa.field("path_or_inline_dv", pa.string()),
            pa.field("offset", pa.int32()),
            pa.field("size_in_bytes", pa.int32()),
            pa.field("cardinality", pa.int64()),
        ]
    ),
)
BASE_ROW_ID = pa.field("base_row_id", pa.int64())
DEFAULT_ROW_COMMIT_VERSION = pa.field("default_row_commit_version", pa.int64())
TAGS = pa.field("tags", pa.map_(pa.string(), pa.string()))
CLUSTERING_PROVIDER = pa.field("clustering_provider", pa.string())

FILE_FIELDS: tuple[pa.Field, ...] = (
    PATH,
    PARTITION_VALUES,
    SIZE,
    MODIFICATION_TIME,
    STATS,
    DELETION_VECTOR,
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    TAGS,
    CLUSTERING_PROVIDER,
)

DATA_CHANGE = pa.field("data_change", pa.bool_())  # only for the actions of a commit

# Only in scan plans: True if the deletion vector lists the rows to return, not the deleted rows.
SELECTS_ROWS = pa.field("selects_rows", pa.bool_())

DELETION_TIMESTAMP = pa.field("deletion_timestamp", pa.int64())  # ms since the epoch; absent counts as 0 (C154)
EXTENDED_FILE_METADATA = pa.field("extended_file_metadata", pa.bool_())

TOMBSTONE_FIELDS: tuple[pa.Field, ...] = (
    PATH,
    DELETION_TIMESTAMP,
    EXTENDED_FILE_METADATA,
    pa.field("partition_values", pa.map_(pa.string(), pa.string())),
    SIZE,
    DELETION_VECTOR,
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
)

WIRE_NAMES = {
    "path": "path",
    "partition_values": "partitionValues",
    "size": "size",
    "modification_time": "modificationTime",
    "stats": "stats",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "tags": "tags",
    "clustering_provider": "clusteringProvider",
    "deletion_timestamp": "deletionTimestamp",
    "extended_file_metadata": "extendedFileMetadata",
    "data_change": "dataChange",
    "storage_type": "storageType",
    "path_or_inline_dv": "pathOrInlineDv",
    "offset": "offset",
    "size_in_bytes": "sizeInBytes",
    "cardinality": "cardinality",
}

_FIELDS = {
    "add": {f.name: f for f in FILE_FIELDS},
    "remove": {f.name: f for f in TOMBSTONE_FIELDS},
}


def field_of(action: str, name: str) -> pa.Field:
    """Return the field of that name in `add` or `remove`. Raises InvalidOperationError."""
    field = _FIELDS[action].get(name)
    if field is None:
        raise InvalidOperationError(f"'{name}' is not a column of files. The columns are {', '.join(_FIELDS[action])}.")
    return field
