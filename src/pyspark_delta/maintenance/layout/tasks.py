"""Rewriting bins in a layout outside of this process, such as in a job of Spark with an exchange.

Tasks read the sources once and divide their rows among leaves, by splits that this process makes from a sample. The
exchange brings the rows of each new file to one task, leaf by leaf, which writes them as this process would. Only the
names of the new files come back.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.parts import delete_written
from pyspark_delta.data.reader import output_schema, read_each
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, WrittenFile, written_files
from pyspark_delta.engines.tasks import (
    FAILURE,
    Exchange,
    FileGroup,
    TaskRunner,
    numbered_groups,
    or_failure,
    raise_failure,
)
from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.distribute import Leaves, by_leaf, most_leaves
from pyspark_delta.maintenance.layout.layouts import LEAVES_PER_FILE, Layout, splits_of
from pyspark_delta.maintenance.layout.order_keys import Integers
from pyspark_delta.maintenance.layout.pieces import cut_long, in_batches, pieces_of, rows_of
from pyspark_delta.maintenance.layout.rewrite import LayoutWriter
from pyspark_delta.maintenance.layout.sample import sample_rows
from pyspark_delta.maintenance.layout.splits import Splits
from pyspark_delta.maintenance.layout.writing import file_context, number_name, write_leaves
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.maintenance.rewriting.stored_origins import OriginWriter, StoredOrigins, first_origin
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.write.written import delete_new

_MOST_TASKS = 10_000  # that write; each then writes several files
_TASK, _BIN, _LEAF, _FIRST, _ROWS = "task", "bin", "leaf", "first", "rows"
_PIECES = pa.schema(
    [
        pa.field(_TASK, pa.int32()),
        pa.field(_BIN, pa.int32()),
        pa.field(_LEAF, pa.int32()),
        pa.field(_FIRST, pa.int64()),  # the origin of the first row
        pa.field(_ROWS, pa.binary()),
        pa.field(FAILURE, pa.binary()),
    ]
)
_FILE, _ORIGINS = "file", "origins"
_RESULT = pa.schema(
    [
        *WRITTEN_SCHEMA,
        pa.field(FAILURE, pa.binary()),
        pa.field(_BIN, pa.int32()),
        pa.field(_FILE, pa.int64()),  # its number in the layout
        pa.field(_ORIGINS, pa.string()),  # the path of their file
    ]
)


def lay_out_in_tasks(
    writer: LayoutWriter, runner: TaskRunner, rewriting: Rewriting, bins: Sequence[Bin]
) -> list[RewrittenBin]:
    """Write the rows of some bins to new files in a layout, in one job.

    Raises the first error of a task; the files that other tasks report are then deleted.
    """
    with_origins = is_active(rewriting.snapshot.configuration, Feature.DELETION_VECTORS)
    read = rewriting.read_with_positions(number_name(rewriting.write.schema.names))
    schema = _row_schema(read, rewriting.write, with_origins)
    laid = _laid_out(writer, rewriting, bins)
    tasks = max(min(laid[-1].first_file + laid[-1].files, _MOST_TASKS), 1)
    divide = _Divide(writer.columns, schema, laid, tasks, rewriting.memory // 4)
    write = _Write(writer.layout, writer.columns, schema, laid, with_origins)
    exchange = Exchange(_PIECES, _TASK, tasks, (_BIN, _LEAF, _FIRST))
    result = runner.run_exchange(_items(read, bins, runner.cores()), divide, exchange, write, _RESULT)
    try:
        raise_failure(result)
    except DeltaError:
        _delete(rewriting, result)
        raise
    return [_rewritten(writer, rewriting, one, result, number) for number, one in enumerate(bins)]


@dataclass(frozen=True)
class _LaidOutBin:
    """How the rows of a bin are divided, and how its files are written; `first_file` counts those of bins before."""

    splits: Splits
    files: int
    first_file: int
    part: int
    context: WriteContext

    @property
    def per_file(self) -> int:
        """The number of leaves of a file."""
        return -(-self.splits.leaf_count // self.files)


def _laid_out(writer: LayoutWriter, rewriting: Rewriting, bins: Sequence[Bin]) -> tuple[_LaidOutBin, ...]:
    found: list[_LaidOutBin] = []
    first_file, in_task = 0, replace(rewriting, threads=1, readers=1)
    for source in bins:
        files = max(source.new_files, 1)
        most = max(min(LEAVES_PER_FILE, most_leaves(rewriting.memory) // files), 1)
        splits = splits_of(writer.layout, sample_rows(rewriting, source, writer.columns), files, most)
        context = file_context(in_task, source)
        found.append(_LaidOutBin(splits, files, first_file, source.number * files, context))
        first_file += files
    return tuple(found)


def _items(read: ReadContext, bins: Sequence[Bin], cores: int) -> Iterator[tuple[int, list[int], FileGroup]]:
    """Yield what each task reads: the number of the bin, and files of it with their numbers there."""
    for number, source in enumerate(bins):
        for sources, group in numbered_groups(read, source.files, cores):
            yield number, sources, group


def _row_schema(read: ReadContext, write: WriteContext, with_origins: bool) -> pa.Schema:
    """Return the columns of rows that travel: those of the table, and their origins if these are kept."""
    *fields, position = output_schema(read)
    named = [field.with_name(name) for field, name in zip(fields, write.schema.names, strict=True)]
    return pa.schema([*named, position] if with_origins else named)


# ---------------------------------------------------------------------------------------------------------- dividing
@dataclass(frozen=True)
class _Divide:
    """A task that reads files and yields their rows in pieces by leaf (`_PIECES`).

    After an error, each of the tasks that write gets it before anything else, so that none writes a file.
    """

    columns: tuple[LayoutColumn, ...]
    schema: pa.Schema
    bins: tuple[_LaidOutBin, ...]
    tasks: int
    memory: int

    def __call__(self, _: int, item: tuple[int, list[int], FileGroup]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._divided(*item)
        except DeltaError as error:
            failure = pickle.dumps(error)
            yield pa.RecordBatch.from_pylist(
                [{_TASK: task, _BIN: -1, _LEAF: -1, FAILURE: failure} for task in range(self.tasks)], _PIECES
            )

    def _divided(self, number: int, sources: list[int], group: FileGroup) -> Iterator[pa.RecordBatch]:
        waiting = _Waiting()
        for source, batch in read_each(group.context, group.tasks(), lambda at, rows: [(sources[at], rows)]):
            waiting.add(self._with_leaves(self.bins[number].splits, source, batch))
            if waiting.size >= self.memory:
                yield from self._pieces(number, waiting)
                waiting = _Waiting()
        if waiting.rows:
            yield from self._pieces(number, waiting)

    def _with_leaves(self, splits: Splits, source: int, batch: pa.RecordBatch) -> _Divided:
        """Return rows with their leaves and origins. The last column of `batch` is the position in the file."""
        origins = batch.columns[-1].to_numpy() + first_origin(source)
        columns = [*batch.columns[:-1], pa.array(origins)][: len(self.schema)]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        first = int(origins[0]) if len(origins) else 0
        return _Divided(rows, splits.leaves([column.values(rows) for column in self.columns], first), origins)

    def _pieces(self, number: int, waiting: _Waiting) -> Iterator[pa.RecordBatch]:
        found = by_leaf(waiting.rows, waiting.leaves)
        starts, of = cut_long(found.starts, waiting.size / max(found.rows.num_rows, 1))
        pieces = pieces_of(found.rows, starts)
        leaves, one, count = found.leaves[of], self.bins[number], len(pieces)
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array((one.first_file + leaves // one.per_file) % self.tasks, pa.int32()),
                pa.array(np.full(count, number, np.int32)),
                pa.array(leaves, pa.int32()),
                pa.array(np.concatenate(waiting.origins)[found.order[starts[:-1]]]),
                pieces,
                pa.nulls(count, pa.binary()),
            ],
            schema=_PIECES,
        )
        yield from in_batches(batch, pc.binary_length(pieces).to_numpy().astype(np.int64))


class _Divided(NamedTuple):
    """Rows, with the leaf and the origin of each."""

    rows: pa.RecordBatch
    leaves: Leaves
    origins: Integers


class _Waiting:
    """Rows that wait to be ordered by leaf."""

    def __init__(self) -> None:
        self.rows: list[pa.RecordBatch] = []
        self.leaves: list[Leaves] = []
        self.origins: list[Integers] = []
        self.size = 0

    def add(self, more: _Divided) -> None:
        if more.rows.num_rows:
            self.rows.append(more.rows)
            self.leaves.append(more.leaves.astype(np.uint32))
            self.origins.append(more.origins)
            self.size += more.rows.nbytes


# ----------------------------------------------------------------------------------------------------------- writing
class _Piece(NamedTuple):
    bin: int
    leaf: int
    rows: bytes


@dataclass(frozen=True)
class _Write:
    """A task that writes the rows of pieces, which arrive leaf by leaf, to the files of the layout (`_RESULT`)."""

    layout: Layout
    columns: tuple[LayoutColumn, ...]
    schema: pa.Schema
    bins: tuple[_LaidOutBin, ...]
    with_origins: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from or_failure(partial(self._written, _received(batches)), _RESULT)

    def _written(self, pieces: Iterator[_Piece]) -> pa.Table:
        """Write all files. Raises the errors of `write_leaves`, and the failure of a task before; then none exists."""
        done: list[tuple[WriteContext, list[WrittenFile]]] = []
        found = [_RESULT.empty_table()]
        try:
            for (number, file), some in groupby(pieces, self._file):
                files, result = self._write_file(number, file, some)
                done.append((self.bins[number].context, files))
                found.append(result)
        except BaseException:
            for context, files in done:
                delete_written(context, files)
            raise
        return pa.concat_tables(found)

    def _file(self, piece: _Piece) -> tuple[int, int]:
        return piece.bin, piece.leaf // self.bins[piece.bin].per_file

    def _write_file(self, number: int, file: int, pieces: Iterator[_Piece]) -> tuple[list[WrittenFile], pa.Table]:
        one, order = self.bins[number], OriginWriter()
        leaves = (map(self._rows, leaf) for _, leaf in groupby(pieces, lambda piece: piece.leaf))
        files = write_leaves(one.context, self.layout, self.columns, [(file, leaves)], order, one.part + file).files
        try:
            origins = (
                order.store(one.context.table_location, one.context.storage_options) if self.with_origins else None
            )
        except BaseException:
            delete_written(one.context, files)
            raise
        written, count = written_files(files), len(files)
        columns = [
            *written.columns,
            pa.nulls(count, pa.binary()),
            pa.array([number] * count, pa.int32()),
            pa.array([file] * count, pa.int64()),
            pa.array([origins] * count, pa.string()),
        ]
        return files, pa.Table.from_arrays(columns, schema=_RESULT)

    def _rows(self, piece: _Piece) -> pa.RecordBatch:
        return rows_of(piece.rows, self.schema)


def _received(batches: Iterable[pa.RecordBatch]) -> Iterator[_Piece]:
    """Yield the pieces that a task gets. Raises the error of a task that read the rows, which comes first."""
    for batch in batches:
        raise_failure(batch)
        numbers, leaves = batch.column(_BIN).to_pylist(), batch.column(_LEAF).to_pylist()
        for number, leaf, rows in zip(numbers, leaves, batch.column(_ROWS), strict=True):
            yield _Piece(number, leaf, rows.as_py())


# ----------------------------------------------------------------------------------------------------------- results
def _rewritten(writer: LayoutWriter, rewriting: Rewriting, source: Bin, result: pa.Table, number: int) -> RewrittenBin:
    """Return a bin from what the tasks report of its files, in the order of the layout."""
    files = result.filter(pc.equal(result[_BIN], number))
    files = files.take(pa.array(np.argsort(files[_FILE].to_numpy(), kind="stable")))
    written = files.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA)
    paths = tuple(path for path in files[_ORIGINS].unique().to_pylist() if path is not None)
    origins = None
    if paths:
        origins = StoredOrigins(rewriting.snapshot.location, rewriting.snapshot.storage_options, paths)
    made = writer.rewritten(rewriting, source, files[_FILE].to_pylist(), written, origins)
    return replace(made, temporary_files=paths)


def _delete(rewriting: Rewriting, result: pa.Table) -> None:
    """Delete what tasks wrote before another one failed."""
    paths = [*result["path"].to_pylist(), *result[_ORIGINS].to_pylist()]
    snapshot = rewriting.snapshot
    delete_new(snapshot.location, snapshot.storage_options, [path for path in dict.fromkeys(paths) if path])
