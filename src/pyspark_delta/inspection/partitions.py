"""The metadata table `partitions`: one row for each partition that has files, a single one without partitioning."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.inspection.files import deleted_records, partition_fields, partition_values, times
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.record_count import NUM_RECORDS

_COLUMNS = ("partition_values", "size", "modification_time", "deletion_vector")
_MEASURES = (  # of each file, and how those of a partition are combined
    ("files", "sum"),
    ("size", "sum"),
    ("smallest", "min"),
    ("largest", "max"),
    ("records", "sum"),
    ("counted", "sum"),
    ("deleted", "sum"),
    ("modified", "max"),
)
_MOST_WAITING = 200_000  # rows that wait to be combined


def partitions_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of `partitions`: sizes are bytes; records include deleted ones, null if unknown."""
    numbers = ("num_files", "size", "smallest_file", "largest_file", "num_records", "num_deleted_records")
    fields = [pa.field(name, pa.int64()) for name in numbers]
    return pa.schema([*partition_fields(snapshot), *fields, pa.field("last_modified", pa.timestamp("us", "UTC"))])


def partition_rows(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the partitions by their values, which two spellings of a value share. Raises CorruptLogError.

    Memory grows with the number of partitions, not of files.
    """
    keys = [f"key{place}" for place in range(len(snapshot.configuration.partition_columns))]
    combined: pa.Table | None = None
    waiting: list[pa.Table] = []
    for batch in snapshot.statistics((NUM_RECORDS,), _COLUMNS):
        waiting.append(_measured(snapshot, batch, keys))
        if sum(map(len, waiting)) >= _MOST_WAITING:
            combined = _combined([*([] if combined is None else [combined]), *waiting], keys)
            waiting = []
    rest = [*([] if combined is None else [combined]), *waiting]
    if rest:
        found = _combined(rest, keys)
        if keys:
            found = found.sort_by([(key, "ascending") for key in keys])
        yield from _shown(snapshot, found, keys).to_batches()


def _measured(snapshot: Snapshot, batch: pa.RecordBatch, keys: list[str]) -> pa.Table:
    """Return the keys and measures of the files of a batch."""
    sizes, records = batch.column("size"), batch.column(len(_COLUMNS))
    measures = {
        "files": pa.repeat(pa.scalar(1, pa.int64()), len(batch)),
        "size": sizes,
        "smallest": sizes,
        "largest": sizes,
        "records": pc.fill_null(records, 0),
        "counted": pc.is_valid(records).cast(pa.int64()),
        "deleted": deleted_records(batch.column("deletion_vector")),
        "modified": batch.column("modification_time"),
    }
    values = partition_values(snapshot, batch.column("partition_values"))
    return pa.table({**dict(zip(keys, values, strict=True)), **measures})


def _combined(tables: list[pa.Table], keys: list[str]) -> pa.Table:
    """Return one row for each partition."""
    grouped = pa.concat_tables(tables).group_by(keys).aggregate(list(_MEASURES))
    names = {f"{name}_{function}": name for name, function in _MEASURES}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])


def _shown(snapshot: Snapshot, found: pa.Table, keys: list[str]) -> pa.Table:
    schema = partitions_schema(snapshot)
    found = found.combine_chunks()
    columns = {name: found.column(name).combine_chunks() for name in found.column_names}
    complete = pc.equal(columns["counted"], columns["files"])
    shown = [
        *(columns[name] for name in ("files", "size", "smallest", "largest")),
        pc.if_else(complete, columns["records"], pa.scalar(None, pa.int64())),
        columns["deleted"],
        times(columns["modified"]),
    ]
    if keys:
        fields = list(schema.field("partition").type)
        shown.insert(0, pa.StructArray.from_arrays([columns[key] for key in keys], fields=fields))
    return pa.Table.from_arrays(shown, schema=schema)
