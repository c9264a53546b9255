"""The metadata table `row_groups`: one row for each row group, from the Parquet footers of the live data files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.data.opened import check_chunks, opened_file, translated
from pyspark_delta.log.request import FileRequest
from pyspark_delta.parallel import flat_map_ordered
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import resolve_file

_THREADS = 16  # footers are small: most of the time is latency of the store
_FILES_PER_BATCH = 64
_CHUNK = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("type", pa.string()),
        pa.field("compression", pa.string()),
        pa.field("encodings", pa.list_(pa.string())),
        pa.field("compressed_size", pa.int64()),
        pa.field("uncompressed_size", pa.int64()),
        pa.field("num_values", pa.int64()),
        pa.field("null_count", pa.int64()),
    ]
)
_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("row_group", pa.int32()),
        pa.field("num_rows", pa.int64()),
        pa.field("compressed_size", pa.int64()),
        pa.field("uncompressed_size", pa.int64()),
        pa.field("created_by", pa.string()),
        pa.field("columns", pa.list_(_CHUNK)),
    ]
)


def row_groups_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `row_groups`: sizes are bytes, columns and types those of Parquet, by physical name."""
    return _SCHEMA


def row_group_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the row groups of the live files, which are opened. Raises DataFileError for one that cannot be."""

    def read(paths: list[str]) -> Iterator[pa.RecordBatch]:
        rows = [row for path in paths for row in _groups(snapshot, path)]
        yield pa.RecordBatch.from_pylist(rows, _SCHEMA)

    yield from flat_map_ordered(read, _paths(snapshot), _THREADS)


def _paths(snapshot: Snapshot) -> Iterator[list[str]]:
    for batch in snapshot.read_files(FileRequest(("path",))):
        paths = batch.column("path")
        for start in range(0, len(paths), _FILES_PER_BATCH):
            yield paths.slice(start, _FILES_PER_BATCH).to_pylist()


def _groups(snapshot: Snapshot, path: str) -> Iterator[dict[str, Any]]:
    with opened_file(resolve_file(snapshot.location, path), snapshot.storage_options) as file:
        footer = file.metadata
        check_chunks(file, path, range(footer.num_columns), codecs=True)
        with translated(path):
            created_by = footer.created_by
    for place in range(footer.num_row_groups):
        group = footer.row_group(place)
        chunks = [_chunk(group.column(column)) for column in range(group.num_columns)]
        yield {
            "path": path,
            "row_group": place,
            "num_rows": group.num_rows,
            "compressed_size": sum(chunk["compressed_size"] for chunk in chunks),
            "uncompressed_size": group.total_byte_size,
            "created_by": created_by,
            "columns": chunks,
        }


def _chunk(chunk: pq.ColumnChunkMetaData) -> dict[str, Any]:
    statistics = chunk.statistics
    return {
        "path": chunk.path_in_schema,
        "type": chunk.physical_type,
        "compression": chunk.compression,
        "encodings": list(chunk.encodings),
        "compressed_size": chunk.total_compressed_size,
        "uncompressed_size": chunk.total_uncompressed_size,
        "num_values": chunk.num_values,
        "null_count": statistics.null_count if statistics is not None and statistics.has_null_count else None,
    }
