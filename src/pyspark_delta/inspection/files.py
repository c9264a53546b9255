"""The metadata tables `files` and `tombstones`: one row for each live or removed file of a version."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import (
    BASE_ROW_ID,
    CLUSTERING_PROVIDER,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETION_VECTOR,
    PATH,
    SIZE,
    TAGS,
)
from pyspark_delta.protocol.properties import DELETED_FILE_RETENTION
from pyspark_delta.protocol.statistics import physical_partition_schema
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.record_count import NUM_RECORDS

TIME = pa.timestamp("us", "UTC")
PARTITION = "partition"
RECORDS = pa.field("num_records", pa.int64())
DELETED = pa.field("num_deleted_records", pa.int64())

_MICROSECONDS = 1000  # of a millisecond
_LIVE = ("size", "modification_time", "deletion_vector", "base_row_id", "default_row_commit_version", "tags")
_REMOVED = ("size", "deletion_timestamp", "deletion_vector", "base_row_id", "default_row_commit_version")


def files_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `files`: sizes are bytes, records include deleted ones, null where the log has none."""
    return pa.schema(
        [
            PATH,
            *partition_fields(snapshot),
            SIZE,
            pa.field("modification_time", TIME),
            RECORDS,
            DELETED,
            DELETION_VECTOR,
            BASE_ROW_ID,
            DEFAULT_ROW_COMMIT_VERSION,
            TAGS,
            CLUSTERING_PROVIDER,
        ]
    )


def file_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the live files, in no order. Raises CorruptLogError."""
    schema = files_schema(snapshot)
    columns = ("path", "partition_values", *_LIVE, "clustering_provider")
    for batch in snapshot.statistics((NUM_RECORDS,), columns):
        vectors = batch.column("deletion_vector")
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("path"),
                *partition_columns(snapshot, batch.column("partition_values")),
                batch.column("size"),
                times(batch.column("modification_time")),
                batch.column(len(columns)),
                deleted_records(vectors),
                vectors,
                *(batch.column(name) for name in (*_LIVE[3:], "clustering_provider")),
            ],
            schema=schema,
        )


def tombstones_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `tombstones`. `expires` is when a vacuum may delete the file."""
    return pa.schema(
        [
            PATH,
            *partition_fields(snapshot),
            SIZE,
            pa.field("deletion_time", TIME),
            pa.field("expires", TIME),
            DELETION_VECTOR,
            BASE_ROW_ID,
            DEFAULT_ROW_COMMIT_VERSION,
        ]
    )


def tombstone_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the removed files that are still in the log, expired or not (C217), in no order. Raises CorruptLogError."""
    schema = tombstones_schema(snapshot)
    kept = DELETED_FILE_RETENTION.of(snapshot.properties) // timedelta(milliseconds=1)
    for batch in snapshot.read_tombstones(("path", "partition_values", *_REMOVED)):
        removed = pc.fill_null(batch.column("deletion_timestamp"), 0)  # absent counts as 0 (C154)
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("path"),
                *partition_columns(snapshot, batch.column("partition_values")),
                batch.column("size"),
                times(removed),
                times(pc.add(removed, kept)),
                *(batch.column(name) for name in _REMOVED[2:]),
            ],
            schema=schema,
        )


# ------------------------------------------------------------------------------------------------ columns of both
def partition_fields(snapshot: Snapshot) -> list[pa.Field]:
    """Return the column `partition`, a struct by logical names; nothing for a table that is not partitioned."""
    typed = physical_partition_schema(snapshot.configuration)
    names = snapshot.configuration.partition_columns
    fields = [pa.field(name, to_arrow(field.type)) for name, field in zip(names, typed, strict=True)]
    return [pa.field(PARTITION, pa.struct(fields))] if fields else []


def partition_columns(snapshot: Snapshot, texts: pa.Array) -> list[pa.StructArray]:
    """Return the values of `partition_fields` from partition values as in the log. Raises CorruptLogError."""
    values = partition_values(snapshot, texts)
    if not values:
        return []
    (partition,) = partition_fields(snapshot)
    return [pa.StructArray.from_arrays(values, fields=list(partition.type))]


def partition_values(snapshot: Snapshot, texts: pa.Array) -> list[pa.Array]:
    """Return the typed values of each partition column. Raises CorruptLogError."""
    typed = physical_partition_schema(snapshot.configuration)
    return [
        parse_partition_column(
            pc.map_lookup(texts, pa.scalar(field.name), "last"), field.type, column=name, table=snapshot.location
        )
        for name, field in zip(snapshot.configuration.partition_columns, typed, strict=True)
    ]


def deleted_records(vectors: pa.StructArray) -> pa.Array:
    """Return how many rows deletion vectors delete; 0 without one."""
    return pc.fill_null(pc.struct_field(vectors, "cardinality"), 0)


def times(milliseconds: pa.Array) -> pa.Array:
    """Return milliseconds since the epoch as timestamps."""
    return pc.multiply(milliseconds, _MICROSECONDS).cast(TIME)
