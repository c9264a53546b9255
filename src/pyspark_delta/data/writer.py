"""Arrow record batches become data files and the rows of their add actions (Data Files; C005, C014, C138-C141).

Batches are gathered into large row groups: row groups of a single small batch make files larger and slower, to write
and to read.
"""

from __future__ import annotations

import random
import string
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.data.not_null import check_not_null
from pyspark_delta.data.partition_paths import partition_directory
from pyspark_delta.data.variant_shredding import Shredding
from pyspark_delta.data.variant_storage import fill_variants, has_variants
from pyspark_delta.data.violations import WatchedCheck
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.protocol.rows import ComputedColumn
from pyspark_delta.schema.arrow import field_to_arrow, schema_to_parquet
from pyspark_delta.schema.partition_values import serialize_partition_column
from pyspark_delta.schema.types import VARIANT, StructField, StructType
from pyspark_delta.stats.collect import collect_stats
from pyspark_delta.stats.columns import DEFAULT_STRING_PREFIX, StatsColumn
from pyspark_delta.stats.observe import Observations
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import encode_path, join

_EXTENSIONS = {
    "none": "",
    "uncompressed": "",
    "snappy": ".snappy",
    "gzip": ".gz",
    "zstd": ".zstd",
    "brotli": ".br",
    "lz4": ".lz4hadoop",
    "lz4_raw": ".lz4raw",
}
_PREFIX_CHARACTERS = string.ascii_letters + string.digits
COMPRESSIONS = tuple(_EXTENSIONS)


@dataclass(frozen=True, slots=True)
class WriteContext:
    """How rows become files of one table: plain data that travels to workers.

    `schema` is the logical schema of the table; batches have its columns, by name, and are of its types or of types
    that cast to them without loss. `data_schema` is what files hold: physical names, and the partition columns at the
    end if `stores_partition_columns`, else none of them. With `random_prefix_length`, files lie below random prefixes
    of that length, not in directories of their partition.
    Sizes are bytes. `checks` are conditions that were put to the rows already, in the order in which a column of
    violations counts them; `numbered` are the identity columns whose numbers this write makes. With `shreds_variants`,
    files keep parts of variants as typed columns where the values of a variant column have something in common.
    """

    table_location: str
    schema: StructType
    data_schema: StructType
    partition_columns: tuple[str, ...] = ()  # logical names
    partition_names: tuple[str, ...] = ()  # the same columns by physical name
    stores_partition_columns: bool = False
    random_prefix_length: int | None = None
    stats_columns: tuple[StatsColumn, ...] = ()
    string_prefix: int = DEFAULT_STRING_PREFIX
    compression: str = "snappy"
    format_version: str = "1.0.0"
    row_group_rows: int = 1_000_000
    row_group_bytes: int = 128 << 20
    target_file_size: int | None = None
    max_records_per_file: int | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False)
    checks: tuple[WatchedCheck, ...] = ()
    numbered: tuple[ComputedColumn, ...] = ()
    shreds_variants: bool = False


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that no commit names yet. `path` is encoded as in the log; `partition_values` by physical name.

    `marks` are the last numbers that identity columns were given, by logical name: the largest, or the smallest where
    the column counts down.
    """

    path: str
    partition_values: Mapping[str, str | None] = field(hash=False)
    size: int
    modification_time: int  # ms since the epoch
    stats: str
    num_records: int
    marks: Mapping[str, int] = field(default_factory=dict, hash=False)


WRITTEN_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("partition_values", pa.map_(pa.string(), pa.string())),
        pa.field("size", pa.int64()),
        pa.field("modification_time", pa.int64()),
        pa.field("stats", pa.string()),
        pa.field("num_records", pa.int64()),
        pa.field("marks", pa.map_(pa.string(), pa.int64())),
    ]
)


def written_files(files: Iterable[WrittenFile]) -> pa.Table:
    """The files as columns: those of `actions.columns` that a new file has, and `num_records`."""
    rows = [
        {
            "path": f.path,
            "partition_values": list(f.partition_values.items()),
            "size": f.size,
            "modification_time": f.modification_time,
            "stats": f.stats,
            "num_records": f.num_records,
            "marks": list(f.marks.items()),
        }
        for f in files
    ]
    return pa.Table.from_pylist(rows, WRITTEN_SCHEMA)


def write_files(context: WriteContext, batches: Iterable[pa.RecordBatch], part: int = 0) -> Iterator[WrittenFile]:
    """Write the rows to data files, and yield each file once it is complete and durable.

    Rows of the same partition should come one after another: a file is closed when the partition changes. `part` is
    the number in the file names. Raises ConstraintViolationError for null in a NOT NULL column, StorageError.
    """
    writer = PartWriter(context, part)
    try:
        for batch in batches:
            if batch.num_rows:
                yield from writer.add(batch)
        yield from writer.finish()
    except BaseException:
        writer.abandon()
        raise


class PartWriter:
    """Writes the batches of one task, one file at a time: what `write_files` drives, for callers that hold the batches.

    `add` and `finish` yield each file once it is complete and durable; `abandon` discards the one that is not.
    """

    def __init__(self, context: WriteContext, part: int) -> None:
        self._context = context
        self._part = part
        self._files = 0
        self._open: _DataFile | None = None
        self._partition: tuple[str | None, ...] | None = None
        self._limit = context.max_records_per_file or 0

    def add(self, batch: pa.RecordBatch) -> Iterator[WrittenFile]:
        check_not_null(batch, self._context.schema)
        if not self._context.partition_columns:
            yield from self._append(batch, ())
            return
        partition_fields = [self._context.schema.find(name) for name in self._context.partition_columns]
        keys = [serialize_partition_column(batch.column(f.name), f.type) for f in partition_fields if f is not None]
        for start, stop in _runs(keys):
            yield from self._append(batch.slice(start, stop - start), tuple(key[start].as_py() for key in keys))

    def finish(self) -> Iterator[WrittenFile]:
        if self._open is not None:
            written = self._open.close()
            self._open = None  # only now: what fails to close is discarded
            yield written

    def abandon(self) -> None:
        if self._open is not None:
            self._open.discard()
            self._open = None

    def _append(self, batch: pa.RecordBatch, partition: tuple[str | None, ...]) -> Iterator[WrittenFile]:
        if partition != self._partition:
            yield from self.finish()
            self._partition = partition
        while batch.num_rows:
            if self._open is None:
                self._open = _DataFile(self._context, partition, self._part, self._files)
                self._files += 1
            room = self._limit - self._open.num_records if self._limit else batch.num_rows
            self._open.add(batch.slice(0, room))
            batch = batch.slice(room)
            if self._is_full(self._open):
                yield from self.finish()

    def _is_full(self, file: _DataFile) -> bool:
        target = self._context.target_file_size
        return bool(self._limit and file.num_records >= self._limit) or bool(target and file.size >= target)


class _DataFile:
    """One Parquet file being written."""

    def __init__(self, context: WriteContext, partition: tuple[str | None, ...], part: int, number: int) -> None:
        self._context = context
        self._partition_values = dict(zip(context.partition_names, partition, strict=True))
        name = f"part-{part:05d}-{uuid.uuid4()}.c{number:03d}{_EXTENSIONS[context.compression]}.parquet"
        directory = _directory(context, partition)
        relative = f"{directory}/{name}" if directory else name
        self._path = encode_path(relative)
        self._schema = schema_to_parquet(context.data_schema)
        stored = [f.name for f in context.schema if f.name not in context.partition_columns]
        stored += context.partition_columns if context.stores_partition_columns else ()
        self._columns = [f for name in stored if (f := context.schema.find(name)) is not None]
        self._footer: list[pq.FileMetaData] = []
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = self._gathered_bytes = 0
        self._marks: dict[str, int] = {}
        self.num_records = 0
        store = store_for(context.table_location, context.storage_options)
        with ExitStack() as stack:
            self._sink = stack.enter_context(store.open_output(join(context.table_location, relative)))
            self._stack = stack.pop_all()
        self._writer: pq.ParquetWriter | None = None

    @property
    def size(self) -> int:
        """Bytes that have left for the store."""
        return int(self._sink.tell())

    def add(self, batch: pa.RecordBatch) -> None:
        self._gathered.append(batch)
        self._gathered_rows += batch.num_rows
        self._gathered_bytes += batch.nbytes
        self.num_records += batch.num_rows
        if self._gathered_rows >= self._context.row_group_rows or self._gathered_bytes >= self._context.row_group_bytes:
            self._write_row_group()

    def close(self) -> WrittenFile:
        if self._gathered:
            self._write_row_group()
        assert self._writer is not None
        self._writer.close()
        size = self.size
        self._stack.close()
        stats = collect_stats(
            self._footer[0],
            self._stats_columns,
            self._observations,
            string_prefix=self._context.string_prefix,
        )
        now = int(time.time() * 1000)
        return WrittenFile(self._path, self._partition_values, size, now, stats, self.num_records, self._marks)

    def discard(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # the footer goes to a sink that is discarded anyway
                self._writer.close()
            self._writer.is_open = False  # or it would try once more when it is collected
        self._stack.__exit__(GeneratorExit, GeneratorExit(), None)

    def _write_row_group(self) -> None:
        rows = pa.Table.from_batches(self._gathered)
        self._note_marks(rows)
        columns = [_stored(rows.column(f.name), f, at.type) for f, at in zip(self._columns, self._schema, strict=True)]
        rows = pa.Table.from_arrays(columns, schema=self._schema)
        writer = self._writer or self._open_writer(rows)
        self._observations.add(rows)
        writer.write_table(self._shredding.apply(rows), row_group_size=rows.num_rows)
        self._gathered, self._gathered_rows, self._gathered_bytes = [], 0, 0

    def _open_writer(self, first: pa.Table) -> pq.ParquetWriter:
        """Begin the file, whose schema depends on the variants of its first rows where they are shredded."""
        context = self._context
        variants = [at for at, field in enumerate(self._columns) if field.type == VARIANT]
        self._shredding = Shredding.learn(first, variants if context.shreds_variants else ())
        self._stats_columns = self._shredding.moved(context.stats_columns, self._schema.names)
        self._observations = Observations(self._stats_columns, context.string_prefix)
        self._writer = pq.ParquetWriter(
            self._sink,
            self._shredding.schema(self._schema),
            compression=_codec(context.compression),
            metadata_collector=self._footer,
            **_format(context.format_version),
        )
        return self._writer

    def _note_marks(self, rows: pa.Table) -> None:
        for column in self._context.numbered:
            furthest = max if column.step > 0 else min
            numbers = pc.min_max(rows.column(column.name)).as_py()
            known = self._marks.get(column.name)
            if numbers["min"] is None:
                continue  # rows of before, which have no number
            found = furthest(numbers["min"], numbers["max"])
            self._marks[column.name] = found if known is None else furthest(known, found)


def _format(version: str) -> dict[str, Any]:
    """Options of the Parquet writer; `version` is of the table property delta.parquet.format.version."""
    first = version.startswith("1.")
    return {
        "version": "1.0" if first else "2.6",
        "data_page_version": "1.0" if first else "2.0",
        "store_schema": False,  # the schema of the table says it all
        "store_decimal_as_integer": True,
    }


def _directory(context: WriteContext, partition: tuple[str | None, ...]) -> str:
    if context.random_prefix_length is not None:
        return "".join(random.choices(_PREFIX_CHARACTERS, k=context.random_prefix_length))
    return partition_directory(zip(context.partition_columns, partition, strict=True))


def _codec(name: str) -> str:
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)


def _stored(column: pa.ChunkedArray, field: StructField, physical: pa.DataType) -> pa.ChunkedArray:
    """The values of a column as the file holds them: of the table's type first, then under physical names by position.

    Names must not decide: the physical name of one member of a struct may be the logical name of another.
    """
    column = _cast(column, field_to_arrow(field, all_nullable=True))
    if has_variants(field.type):
        column = fill_variants(column, field.type)
    if column.type == physical:
        return column
    return pa.chunked_array([chunk.view(physical) for chunk in column.chunks], physical)


def _cast(column: pa.ChunkedArray, target: pa.Field) -> pa.ChunkedArray:
    if column.type == target.type:
        return column
    try:
        return column.cast(target.type)
    except pa.ArrowInvalid as error:
        raise ConstraintViolationError(
            f"A value does not fit the type {target.type} of the column '{target.name}': {error}. Nothing was "
            "committed. Cast or filter the rows.",
            error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            column=target.name,
        ) from None


def _runs(keys: list[pa.Array]) -> Iterator[tuple[int, int]]:
    """The ranges of adjacent rows whose keys are all equal."""
    changes = np.zeros(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        codes = key.dictionary_encode(null_encoding="encode").indices.to_numpy()
        changes |= codes[1:] != codes[:-1]
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    yield from zip(starts, [*starts[1:], len(keys[0])], strict=True)
