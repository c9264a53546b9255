"""Raw rows of a data file: some columns of some row groups, without deleted or excluded rows.

Row indexes are physical positions in the file: skipped row groups and excluded rows are counted. Deletion vectors and
row ids depend on this (C271, C281).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
from pyroaring import BitMap64

from pyspark_delta.data.opened import translated
from pyspark_delta.deletion_vectors import indexes_between

_BATCH_ROWS = 65_536
_BATCH_BYTES = 32 << 20
_NARROW_ROWS = 262_144  # batches of a few columns of numbers are larger: their size is known
_NARROW_VALUES = 1 << 19
_RUN_BYTES = 128 << 20  # bytes; row groups are fetched together up to this size

Indexes = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The rows of a file to read. `rows` are the row indexes in its deletion vector, None if it has none.

    These rows are not read; with `selects`, only they are read. The bitmap is expanded for one batch at a time.
    """

    rows: BitMap64 | None = None
    selects: bool = False

    def mask(self, start: int, rows: int) -> Mask | None:
        """Return for each row of `[start, start + rows)` whether to read it; None for all."""
        if self.rows is None:
            return None
        listed = indexes_between(self.rows, start, start + rows) - start
        if not self.selects and not len(listed):
            return None
        mask = np.full(rows, not self.selects)
        mask[listed] = self.selects
        return mask

    def groups(self, metadata: pq.FileMetaData, wanted: Sequence[int]) -> Sequence[int]:
        """Return those of the wanted row groups that may have a row to read."""
        if self.rows is None or not self.selects:
            return wanted
        ends = [0, *accumulate(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))]
        return [group for group in wanted if self.rows.range_cardinality(ends[group], ends[group + 1])]


@dataclass(frozen=True, slots=True)
class Leaves:
    """The columns of a file to read: the indexes and the paths of their Parquet leaves."""

    indexes: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, file: pq.ParquetFile, indexes: Iterable[int]) -> Leaves:
        """Return the leaves with some indexes, each once."""
        unique = tuple(sorted(set(indexes)))
        return cls(unique, tuple(file.schema.column(leaf).path for leaf in unique))

    def bytes_in(self, metadata: pq.FileMetaData, groups: Sequence[int]) -> int:
        """Return the compressed bytes of the columns in some row groups of the file."""
        sizes = (metadata.row_group(group).column(leaf).total_compressed_size for group in groups for leaf in self)
        return sum(sizes)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indexes)


@dataclass(frozen=True, slots=True)
class RawRows:
    """Some raw rows of a file. `first` and `mask` tell their positions: the rows of `mask` from `first` on, or all."""

    batch: pa.RecordBatch
    first: int
    mask: Mask | None = None

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def index(self) -> Indexes:
        """The physical positions of the rows. Most scans need none."""
        if self.mask is None:
            return np.arange(self.first, self.first + len(self.batch))
        return np.flatnonzero(self.mask) + self.first

    def only(self, mask: Mask) -> RawRows:
        """Return the rows of a mask over these rows, which are adjacent."""
        if not self.batch.num_columns:
            return RawRows(without_columns(int(np.count_nonzero(mask))), self.first, mask)
        return RawRows(_without_views(self.batch).filter(pa.array(mask)), self.first, mask)


def raw_rows(
    file: pq.ParquetFile,
    path: str,
    columns: Leaves,
    groups: Sequence[int],
    selection: RowSelection,
    *,
    use_threads: bool,
) -> Iterator[RawRows]:
    """Yield the rows of some row groups, in order, without empty batches. Raises DataFileError."""
    for start, batch in _batches(file, path, columns, groups, use_threads=use_threads):
        rows = RawRows(batch, start)
        mask = selection.mask(start, len(batch))
        if mask is not None:
            rows = rows.only(mask)
        if len(rows):
            yield rows


def _batches(
    file: pq.ParquetFile, path: str, columns: Leaves, groups: Sequence[int], *, use_threads: bool
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of some row groups with the position of their first row in the file."""
    for run, start in runs(file.metadata, groups):
        if not columns.names:
            yield from _empty_batches(start, sum(file.metadata.row_group(i).num_rows for i in run))
            continue
        position = start
        with translated(path):
            for batch in file.iter_batches(
                batch_size=_batch_rows(file.metadata, run, columns),
                row_groups=run,
                columns=columns.names,
                use_threads=use_threads,
            ):
                yield position, batch
                position += batch.num_rows


def shared(metadata: pq.FileMetaData, wanted: Sequence[int], share: tuple[int, int] | None) -> Sequence[int]:
    """Return the wanted row groups of a share (number, of); all if it is None.

    A row group belongs to the share that contains the middle of its rows.
    """
    if share is None:
        return wanted
    number, of = share
    rows = np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], np.int64)
    shares = (2 * np.cumsum(rows) - rows) * of // (2 * max(1, metadata.num_rows))
    return [group for group in wanted if shares[group] == number]


def runs(metadata: pq.FileMetaData, wanted: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """Yield runs of adjacent row groups to fetch together, each with the position of its first row."""
    if metadata.num_row_groups == 1:
        if len(wanted):
            yield [0], 0
        return
    run: list[int] = []
    size = start = position = 0
    chosen = set(wanted)
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if run and (i not in chosen or size + group.total_byte_size > _RUN_BYTES):
            yield run, start
            run, size = [], 0
        if i in chosen:
            if not run:
                start = position
            run.append(i)
            size += group.total_byte_size
        position += group.num_rows
    if run:
        yield run, start


def _batch_rows(metadata: pq.FileMetaData, run: Sequence[int], columns: Leaves) -> int:
    """Return how many rows to decode at once: fewer if rows are wide, more if they are a few numbers."""
    groups = [metadata.row_group(i) for i in run]
    chunks = [group.column(leaf) for group in groups for leaf in columns]
    rows: int = sum(group.num_rows for group in groups)
    if not any("BYTE_ARRAY" in chunk.physical_type for chunk in chunks):
        values: int = sum(chunk.num_values for chunk in chunks)
        if (narrow := _NARROW_VALUES * rows // max(1, values)) > _BATCH_ROWS:
            first: int = groups[0].num_rows
            return min(_NARROW_ROWS, narrow, max(_BATCH_ROWS, first))  # without the next row group
    size: int = sum(chunk.total_uncompressed_size for chunk in chunks)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * rows // max(1, size)))


def _empty_batches(first: int, rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for start in range(0, rows, _BATCH_ROWS):
        yield first + start, without_columns(min(_BATCH_ROWS, rows - start))


def without_columns(rows: int) -> pa.RecordBatch:
    """Return a batch that has rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same values in types that are not views, at every level.

    Files of Rust writers request view types, which few Arrow kernels support.
    """
    schema = pa.schema([field.with_type(_type_without_views(field.type)) for field in batch.schema])
    if schema == batch.schema:
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _type_without_views(data_type: pa.DataType) -> pa.DataType:
    if pt.is_string_view(data_type):
        return pa.string()
    if pt.is_binary_view(data_type):
        return pa.binary()
    if pt.is_struct(data_type):
        return pa.struct([_field_without_views(member) for member in data_type])
    if pt.is_map(data_type):
        return pa.map_(_type_without_views(data_type.key_type), _field_without_views(data_type.item_field))
    if pt.is_list(data_type) or pt.is_list_view(data_type) or pt.is_large_list_view(data_type):
        return pa.list_(_field_without_views(data_type.value_field))
    if pt.is_large_list(data_type):
        return pa.large_list(_field_without_views(data_type.value_field))
    if pt.is_fixed_size_list(data_type):
        return pa.list_(_field_without_views(data_type.value_field), data_type.list_size)
    return data_type


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_type_without_views(field.type))
