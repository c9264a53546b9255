"""A sample of the rows of some files, of the columns of a layout only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import read_each, tasks_of
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.splits import SAMPLE_ROWS
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.candidates import RECORDS
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.types import StructType

_MOST_FILES = 1024
_MOST_ROWS = 64_000_000  # that are read; of a larger table, some row groups
_GROUP_ROWS = 1_000_000  # of a row group, about
_UNKNOWN_ROWS = 1_000_000


def sampled(batches: Sequence[pa.RecordBatch], columns: Sequence[LayoutColumn], schema: StructType) -> list[pa.Array]:
    """Return columns of some of the rows in memory, chosen by chance, the same ones each time."""
    share = SAMPLE_ROWS / max(sum(batch.num_rows for batch in batches), 1)
    return _joined([_some(batch, columns, share, number) for number, batch in enumerate(batches)], columns, schema)


def sample_rows(rewriting: Rewriting, source: Bin, columns: Sequence[LayoutColumn]) -> list[pa.Array]:
    """Return columns of some rows of a bin: of all files, or of some if they are many, and of some row groups of them.

    Raises DataFileError, StorageError.
    """
    names = list(dict.fromkeys(column.path[0] for column in columns))
    fields = tuple(field for name in names if (field := rewriting.snapshot.schema.find(name)) is not None)
    context = file_source(rewriting.snapshot).read_context(fields, time_zone=rewriting.time_zone)
    files, shares = _some_files(source.files)

    def some(number: int, batch: pa.RecordBatch) -> list[list[pa.Array]]:
        return [_some(batch, columns, shares[number], number)]

    parts = list(read_each(context, list(tasks_of(files)), some, rewriting.readers))
    return _joined(parts, columns, StructType(fields))


def _some_files(files: pa.Table) -> tuple[pa.Table, list[float]]:
    """Return files to read, in part if they are large, and the share of the rows to take of what is read of each."""
    records = pc.fill_null(files[RECORDS], _UNKNOWN_ROWS).to_numpy()
    chance = np.random.default_rng(0)
    chosen = np.arange(files.num_rows)
    if files.num_rows > _MOST_FILES:
        chosen = np.sort(chance.choice(files.num_rows, _MOST_FILES, replace=False))
    rows = records[chosen]
    parts = np.clip(rows // _GROUP_ROWS, 1, max(int(rows.sum()) // _MOST_ROWS, 1))
    numbers = chance.integers(parts)
    shares = pa.StructArray.from_arrays([pa.array(numbers, pa.int32()), pa.array(parts, pa.int32())], ["number", "of"])
    taken = SAMPLE_ROWS / max(int(rows.sum()), 1) * parts
    return files.take(pa.array(chosen)).append_column("share", shares), taken.tolist()


def _some(batch: pa.RecordBatch, columns: Sequence[LayoutColumn], share: float, seed: int) -> list[pa.Array]:
    """Return the columns of a share of the rows of a batch."""
    values = [column.values(batch) for column in columns]
    if share >= 1:
        return values
    mask = pa.array(np.random.default_rng(seed).random(batch.num_rows) < share)
    return [one.filter(mask) for one in values]


def _joined(parts: list[list[pa.Array]], columns: Sequence[LayoutColumn], schema: StructType) -> list[pa.Array]:
    if not parts:
        empty = schema_to_arrow(schema, all_nullable=True).empty_table()
        parts = [[column.values(empty) for column in columns]]
    return [_one([part[number] for part in parts]) for number in range(len(columns))]


def _one(arrays: list[pa.Array]) -> pa.Array:
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    return pa.concat_arrays(plain)
