"""A sample of the rows of some files, of the columns of a layout only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import read_plan
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.splits import SAMPLE_ROWS
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.candidates import RECORDS
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.types import StructType

_MOST_FILES = 1024
_SHARE_ROWS = 200_000  # of which a row group is read, in a file with many
_UNKNOWN_ROWS = 1_000_000


def sampled(batches: Sequence[pa.RecordBatch], columns: Sequence[LayoutColumn], schema: StructType) -> list[pa.Array]:
    """Return columns of some of the rows in memory, chosen by chance, the same ones each time."""
    share = SAMPLE_ROWS / max(sum(batch.num_rows for batch in batches), 1)
    parts = [[column.values(some) for column in columns] for some in _some(batches, share)]
    return _joined(parts, columns, schema)


def sample_rows(rewriting: Rewriting, source: Bin, columns: Sequence[LayoutColumn]) -> list[pa.Array]:
    """Return columns of some rows of a bin: of all files, or of some if they are many, and of some row groups of them.

    Raises DataFileError, StorageError.
    """
    snapshot = rewriting.snapshot
    names = list(dict.fromkeys(column.path[0] for column in columns))
    fields = tuple(field for name in names if (field := snapshot.schema.find(name)) is not None)
    context = file_source(snapshot).read_context(fields, time_zone=rewriting.time_zone)
    files, rows = _some_files(source.files)
    plan = ScanPlan(snapshot.version, StructType(fields), context, files)
    share = SAMPLE_ROWS / max(rows, 1)
    parts = [[column.values(some) for column in columns] for some in _some(read_plan(plan, rewriting.readers), share)]
    return _joined(parts, columns, StructType(fields))


def _some_files(files: pa.Table) -> tuple[pa.Table, int]:
    """Return files to read, with a share of the row groups of each, and about how many rows these have."""
    records = pc.fill_null(files[RECORDS], _UNKNOWN_ROWS).to_numpy()
    chance = np.random.default_rng(0)
    chosen = np.arange(files.num_rows)
    if files.num_rows > _MOST_FILES:
        chosen = np.sort(chance.choice(files.num_rows, _MOST_FILES, replace=False))
    of = np.maximum(records[chosen] * len(chosen) // (_SHARE_ROWS * 64), 1)
    of = np.minimum(of, np.maximum(records[chosen] // _SHARE_ROWS, 1))
    shares = [{"number": int(chance.integers(parts)), "of": int(parts)} for parts in of.tolist()]
    column = pa.array(shares, pa.struct([("number", pa.int32()), ("of", pa.int32())]))
    return files.take(pa.array(chosen)).append_column("share", column), int((records[chosen] / of).sum())


def _some(batches: Iterable[pa.RecordBatch], share: float) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(0)
    for batch in batches:
        yield batch if share >= 1 else batch.filter(pa.array(chance.random(batch.num_rows) < share))


def _joined(parts: list[list[pa.Array]], columns: Sequence[LayoutColumn], schema: StructType) -> list[pa.Array]:
    if not parts:
        empty = schema_to_arrow(schema, all_nullable=True).empty_table()
        parts = [[column.values(empty) for column in columns]]
    return [_one([part[number] for part in parts]) for number in range(len(columns))]


def _one(arrays: list[pa.Array]) -> pa.Array:
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    return pa.concat_arrays(plain)
