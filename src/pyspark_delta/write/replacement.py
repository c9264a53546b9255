"""The files that a write removes from a table, and the rows of them that stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import partition_text
from pyspark_delta.expressions.tree import And, Column, Comparison, Expression, Literal, Or
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.scan.bounds import NUM_RECORDS
from pyspark_delta.scan.matches import match_files
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import TIMESTAMP, StructField
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.transaction.transaction import REMOVED_COLUMNS

# The columns of files whose rows are read or counted.
EXAMINED_COLUMNS = (*REMOVED_COLUMNS, "modification_time", "stats")
_MOST_PARTITIONS = 500


@dataclass(frozen=True, slots=True)
class Replaced:
    """`whole` files are removed with all their rows; the rows of `partly` replaced files that stay are rewritten.

    `rows` is the number of replaced rows, if it is known before they are written.
    """

    whole: pa.Table
    partly: pa.Table
    reads: ReadSet = field(default_factory=ReadSet)
    rows: int | None = None

    @property
    def removed(self) -> pa.Table:
        """All removed files."""
        if not self.partly.num_rows:
            return self.whole
        return pa.concat_tables([self.whole.select(self.partly.column_names), self.partly])


def replace_everything(snapshot: Snapshot) -> Replaced:
    """Return all files."""
    files = snapshot.files(REMOVED_COLUMNS)
    return Replaced(files, files.slice(0, 0), ReadSet(whole_table=True))


def replace_matching(snapshot: Snapshot, predicate: Expression, time_zone: str) -> Replaced:
    """Return the files with rows that may meet a condition."""
    found = match_files(snapshot, predicate, EXAMINED_COLUMNS, time_zone=time_zone)
    reads = ReadSet(
        predicates=(predicate,), paths=frozenset(found.partially_matched["path"].to_pylist()), time_zone=time_zone
    )
    return Replaced(found.fully_matched, found.partially_matched, reads)


def replace_partitions(snapshot: Snapshot, written: pa.Table, time_zone: str) -> Replaced:
    """Return the files of every partition that new files were written to.

    Partition values compare as values, not as text.
    """
    configuration = snapshot.configuration
    columns = _partition_columns(configuration)
    files = snapshot.files(REMOVED_COLUMNS)
    old = [_partition_values(files, column, configuration, time_zone) for column in columns]
    new = [_partition_values(written, column, configuration, time_zone) for column in columns]
    old_codes, new_codes = _codes(old, new)
    removed = files.filter(pa.array(np.isin(old_codes, new_codes)))
    reads = ReadSet(whole_table=True)
    _, first = np.unique(new_codes, return_index=True)
    rows = _rows(new, first) if len(first) <= _MOST_PARTITIONS else None
    if rows is not None:
        predicates = (_any_partition(columns, rows),) if rows else ()
        reads = ReadSet(predicates=predicates, time_zone=time_zone)
    return Replaced(removed, removed.slice(0, 0), reads)


def _rows(columns: Sequence[pa.Array], places: np.ndarray) -> list[list[object]] | None:
    """Return some rows of columns; None if they have a date or a time that Python does not have."""
    try:
        return [[values[int(place)].as_py() for values in columns] for place in places]
    except (ValueError, OverflowError):
        return None


def live_rows(files: pa.Table) -> pa.Array:
    """Return the number of rows of the table in each file; null if its statistics do not state it."""
    stats = parse_stats(_array(files["stats"]), (NUM_RECORDS,)).column("numRecords")
    deleted = pc.fill_null(pc.struct_field(_array(files["deletion_vector"]), "cardinality"), 0)
    return pc.subtract(stats, deleted)


def count_rows(files: pa.Table) -> int | None:
    """Return the number of rows of the table in all files; None if it is not known."""
    rows = live_rows(files)
    return None if rows.null_count else int(pc.sum(rows).as_py() or 0)


def _array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


# ---------------------------------------------------------------------------------------------------- partitions
def has_local_partition_times(snapshot: Snapshot, columns: Collection[str]) -> bool:
    """Return True if some columns' partition values are timestamps that depend on the time zone."""
    configuration = snapshot.configuration
    times = [c for c in _partition_columns(configuration) if c.name in columns and c.type == TIMESTAMP]
    if not times:
        return False
    files = snapshot.files(("path", "partition_values"))
    read = (
        tuple(_partition_values(files, column, configuration, zone) for zone in ("UTC", "+01:00")) for column in times
    )
    return any(not here.equals(there) for here, there in read)


def _partition_columns(configuration: TableConfiguration) -> list[StructField]:
    found = (configuration.schema.find(name) for name in configuration.partition_columns)
    return [column for column in found if column is not None]


def _partition_values(
    files: pa.Table, column: StructField, configuration: TableConfiguration, time_zone: str
) -> pa.Array:
    physical = physical_field(column, mapping_mode(configuration)).name
    encoded = partition_text(files, physical).dictionary_encode()
    values = parse_partition_column(encoded.dictionary, column.type, time_zone, column=column.name)
    return values.take(encoded.indices)


def _codes(old: Sequence[pa.Array], new: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each row, equal for rows with equal values in all columns; nulls are equal."""
    length = len(old[0])
    codes = np.zeros(length + len(new[0]), dtype=np.int64)
    for ours, theirs in zip(old, new, strict=True):
        both = pa.concat_arrays([ours, theirs]).dictionary_encode(null_encoding="encode")
        combined = codes * len(both.dictionary) + both.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(combined, return_inverse=True)
    return codes[:length], codes[length:]


def _any_partition(columns: Sequence[StructField], rows: Sequence[Sequence[object]]) -> Expression:
    partitions = [
        [Comparison("<=>", Column((c.name,), c.type), Literal(v, c.type)) for c, v in zip(columns, row, strict=True)]
        for row in rows
    ]
    alternatives: list[Expression] = [parts[0] if len(parts) == 1 else And(tuple(parts)) for parts in partitions]
    return alternatives[0] if len(alternatives) == 1 else Or(tuple(alternatives))
