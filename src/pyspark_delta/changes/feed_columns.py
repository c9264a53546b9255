"""The columns that the change data feed adds to those of the table (C163, C171)."""

from __future__ import annotations

from pyspark_delta.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType

CHANGE_TYPE = StructField("_change_type", STRING)
COMMIT_VERSION = StructField("_commit_version", LONG)
COMMIT_TIMESTAMP = StructField("_commit_timestamp", TIMESTAMP)
CHANGE_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)

INSERT, DELETE, UPDATED = "insert", "delete", "update_postimage"


def with_change_columns(schema: StructType) -> StructType:
    """Return the columns of a table, followed by those that the feed adds."""
    return StructType((*schema, *CHANGE_COLUMNS))
