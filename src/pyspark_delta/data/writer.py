"""One data file being written, and the contents of its add action (Data Files; C005, C014, C138-C141).

Batches are collected into large row groups, because small row groups make files larger, and slower to write and read.
"""

from __future__ import annotations

import random
import string
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_delta.data.conform import cast_values
from pyspark_delta.data.dictionaries import dictionary_columns
from pyspark_delta.data.parquet_columns import bounded_columns
from pyspark_delta.data.partition_paths import partition_directory
from pyspark_delta.data.variant_shredding import Shredding
from pyspark_delta.data.variant_storage import fill_variants, has_variants
from pyspark_delta.data.violations import WatchedCheck
from pyspark_delta.logs import logger
from pyspark_delta.protocol.rows import ComputedColumn
from pyspark_delta.schema.arrow import field_to_arrow, schema_to_parquet
from pyspark_delta.schema.types import VARIANT, StructField, StructType
from pyspark_delta.stats.collect import collect_stats
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX, StatsColumn
from pyspark_delta.stats.observe import Observations
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import encode_path, join

_log = logger(__name__)

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
_SMALL_FILE = 50_000  # rows
COMPRESSIONS = tuple(_EXTENSIONS)


@dataclass(frozen=True, slots=True)
class WriteContext:
    """How rows are written to files of one table. It is picklable, so that it can be sent to workers.

    `schema` is the logical schema of the table; batches have its columns, by name, with its types or types that cast to
    them without loss. `data_schema` is the schema of files: physical names, and the partition columns at the end if
    `stores_partition_columns`, else none of them. With `random_prefix_length`, files are in directories with
    random names of this length, not in directories of their partitions. Sizes are bytes. `checks` are conditions that
    were already evaluated on the rows, in the order of their numbers in a column of violations. `numbered` are the
    identity columns whose values this write assigns. With `shreds_variants`, files store parts of variants as typed
    columns if the values of a variant column have a common form.
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
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    checks: tuple[WatchedCheck, ...] = ()
    numbered: tuple[ComputedColumn, ...] = ()
    shreds_variants: bool = False


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that no commit names yet. `path` is encoded as in the log; `partition_values` by physical name.

    `marks` are the high-water marks of identity columns, by logical name: the largest assigned value, or the smallest
    if the column counts down.
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
    """Return the files as columns: those of `actions.columns` that a new file has, and `num_records`."""
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


class FileLayout:
    """The columns of the data files of a context: their stored types, and the conversion of batches to them."""

    def __init__(self, context: WriteContext) -> None:
        stored = [f.name for f in context.schema if f.name not in context.partition_columns]
        stored += context.partition_columns if context.stores_partition_columns else ()
        fields = [f for name in stored if (f := context.schema.find(name)) is not None]
        self.schema = schema_to_parquet(context.data_schema)
        self._columns = [
            (field, field_to_arrow(field, all_nullable=True), at.type)
            for field, at in zip(fields, self.schema, strict=True)
        ]
        self.variants = [at for at, field in enumerate(fields) if field.type == VARIANT and context.shreds_variants]
        self._sampled = 0
        self._dictionaries: list[str] = []

    def stored(self, rows: pa.Table) -> pa.Table:
        """Return the rows as the file stores them. Raises ConstraintViolationError for a value that does not fit."""
        columns = [_stored(rows.column(field.name), field, *types) for field, *types in self._columns]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def dictionaries(self, rows: pa.Table) -> list[str]:
        """Return the columns that get a dictionary, by a file's first rows. Small files of similar size share them."""
        count = rows.num_rows
        if count > _SMALL_FILE or not count <= 2 * self._sampled <= 4 * count:
            self._dictionaries, self._sampled = dictionary_columns(rows), count
        return self._dictionaries


class DataFile:
    """One Parquet file being written. It is opened in the store with the first row group."""

    def __init__(
        self, context: WriteContext, layout: FileLayout, partition: tuple[str | None, ...], part: int, number: int
    ) -> None:
        self._context = context
        self._layout = layout
        self._partition_values = dict(zip(context.partition_names, partition, strict=True))
        name = f"part-{part:05d}-{uuid.uuid4()}.c{number:03d}{_EXTENSIONS[context.compression]}.parquet"
        directory = _directory(context, partition)
        relative = f"{directory}/{name}" if directory else name
        self._path = encode_path(relative)
        self.location = join(context.table_location, relative)
        self._footer: list[pq.FileMetaData] = []
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = 0
        self._marks: dict[str, int] = {}
        self.num_records = 0
        self.gathered_bytes = 0  # bytes of rows that wait for their row group
        self._sink: Any = None
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    @property
    def size(self) -> int:
        """The number of bytes sent to the store."""
        return 0 if self._sink is None else int(self._sink.tell())

    @property
    def is_begun(self) -> bool:
        """True if the file was opened in the store."""
        return self._sink is not None

    def add(self, batch: pa.RecordBatch) -> None:
        self._gathered.append(batch)
        self._gathered_rows += batch.num_rows
        self.gathered_bytes += batch.nbytes
        self.num_records += batch.num_rows
        if self._gathered_rows >= self._context.row_group_rows or self.gathered_bytes >= self._context.row_group_bytes:
            self.flush()

    def end(self) -> None:
        """Write the collected rows and the footer; `publish` follows."""
        if self._gathered:
            self.flush()
        if self._writer is not None:
            self._writer.close()

    def publish(self) -> WrittenFile:
        """Make the file durable and return it. This waits for the store and needs little CPU. Raises StorageError."""
        size = self.size
        self._stack.close()
        stats = self._stats()
        now = int(time.time() * 1000)
        _log.debug("Wrote %s: %d rows, %d bytes", self.location, self.num_records, size)
        return WrittenFile(self._path, self._partition_values, size, now, stats, self.num_records, self._marks)

    def _stats(self) -> str:
        return collect_stats(
            self._footer[0], self._stats_columns, self._observations, string_prefix=self._context.string_prefix
        )

    def discard(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # the footer goes to a sink that is discarded
                self._writer.close()
            self._writer.is_open = False  # otherwise it would close again when it is garbage-collected
        self._stack.__exit__(GeneratorExit, GeneratorExit(), None)

    def flush(self) -> None:
        """Write the collected rows as a row group."""
        rows = pa.Table.from_batches(self._gathered)
        self._note_marks(rows)
        rows = self._layout.stored(rows)
        if self._writer is None:
            self._learn(rows)
        self._observations.add(rows)
        shredded = self._shredding.apply(rows)
        writer = self._writer or self._begin(shredded)
        writer.write_table(shredded, row_group_size=rows.num_rows)
        self._gathered, self._gathered_rows, self.gathered_bytes = [], 0, 0

    def _learn(self, first: pa.Table) -> None:
        """Choose the shredding of variants by the first rows; the schema of the file depends on it."""
        self._shredding = Shredding.learn(first, self._layout.variants)
        self._stats_columns = self._shredding.moved(self._context.stats_columns, self._layout.schema.names)
        self._observations = Observations(self._stats_columns, self._context.string_prefix)

    def _begin(self, first: pa.Table) -> pq.ParquetWriter:
        """Begin the file. `first` are its first rows, with shredded variants."""
        self._sink = self._opened()
        schema = self._shredding.schema(self._layout.schema)
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            use_dictionary=self._layout.dictionaries(first),
            write_statistics=bounded_columns(schema),
            metadata_collector=self._footer,
            **parquet_options(self._context),
        )
        return self._writer

    def _opened(self) -> Any:
        """Open the file in the store and return its sink."""
        store = store_for(self._context.table_location, self._context.storage_options)
        return self._stack.enter_context(store.open_output(self.location))

    def _note_marks(self, rows: pa.Table) -> None:
        for column in self._context.numbered:
            furthest = max if column.step > 0 else min
            numbers = pc.min_max(rows.column(column.name)).as_py()
            known = self._marks.get(column.name)
            if numbers["min"] is None:
                continue  # the rows have no numbers
            found = furthest(numbers["min"], numbers["max"])
            self._marks[column.name] = found if known is None else furthest(known, found)


def parquet_options(context: WriteContext) -> dict[str, Any]:
    """Return the options of the Parquet writer that are the same for all files of a context."""
    first = context.format_version.startswith("1.")  # delta.parquet.format.version
    return {
        "compression": _codec(context.compression),
        "version": "1.0" if first else "2.6",
        "data_page_version": "1.0" if first else "2.0",
        "store_schema": False,  # the schema of the table has this information
        "store_decimal_as_integer": True,
    }


def _directory(context: WriteContext, partition: tuple[str | None, ...]) -> str:
    if context.random_prefix_length is not None:
        return "".join(random.choices(_PREFIX_CHARACTERS, k=context.random_prefix_length))
    return partition_directory(zip(context.partition_columns, partition, strict=True))


def _codec(name: str) -> str:
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)


def _stored(column: pa.ChunkedArray, field: StructField, logical: pa.Field, physical: pa.DataType) -> pa.ChunkedArray:
    """Return the values of a column as the file stores them: cast to the table's type, then renamed by position.

    Names are not matched, because the physical name of one member of a struct may be the logical name of another.
    """
    column = cast_values(column, logical.type, field.name)
    if has_variants(field.type):
        column = fill_variants(column, field.type)
    if column.type == physical:
        return column
    return pa.chunked_array([chunk.view(physical) for chunk in column.chunks], physical)
