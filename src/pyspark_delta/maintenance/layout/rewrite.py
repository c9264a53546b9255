"""Rewriting a bin in a layout: its rows are divided among leaves by their values, and each leaf becomes a file.

Rows are read once. If they do not fit into memory, a sample of the layout's columns is read before. Rows wait by leaf,
in files if they are many, and are then written file by file.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.actions.columns import CLUSTERING_PROVIDER, TAGS
from pyspark_delta.data.parts import RollingFileWriter, delete_written
from pyspark_delta.data.writer import WriteContext, WrittenFile, written_files
from pyspark_delta.features import Feature, is_active
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.cubes import PROVIDER, CubeSizes, cube_tags, new_cubes
from pyspark_delta.maintenance.layout.distribute import Distribution, most_leaves
from pyspark_delta.maintenance.layout.layouts import LEAVES_PER_FILE, Cluster, Layout, ordered, splits_of
from pyspark_delta.maintenance.layout.sample import sample_rows, sampled
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.origins import KeptOrder, Positions
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, as_added, kept_order
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.parallel import flat_map_ordered

_IN_MEMORY = 32 << 20  # bytes of origins
_SMALLEST_GROUP = 16 << 20  # bytes of rows in a row group
_OVERFULL = 2  # times its share of the bytes after which a file is continued


@dataclass(frozen=True)
class LayoutWriter:
    """Writes the rows of bins in a layout, by some columns of the table; a `BinWriter`.

    With `cubes`, the files of a bin are the cubes of a clustered table.
    """

    layout: Layout
    columns: tuple[LayoutColumn, ...]
    cubes: CubeSizes | None = None

    @property
    def words(self) -> str:
        """How rows are laid out, in words."""
        names = ", ".join(column.name for column in self.columns)
        return f"{'clustered' if isinstance(self.layout, Cluster) else 'sorted'} by {names}"

    def __call__(self, rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        """Write a bin. Raises DataFileError, StorageError, and what `check` raises; then the files do not exist."""
        memory = rewriting.memory // rewriting.threads
        batches = rewriting.batches(source, check)
        held, is_all = _held(batches, memory // 2)
        if is_all:
            sample = sampled(held, self.columns, rewriting.write.schema)
        else:
            sample = sample_rows(rewriting, source, self.columns)
        files = max(source.new_files, 1)
        most = LEAVES_PER_FILE if is_all else min(LEAVES_PER_FILE, most_leaves(memory) // files)
        splits = splits_of(self.layout, sample, files, max(most, 1))
        with Distribution(splits, self.columns, memory=memory) as rows:
            while held:
                rows.add(_numbered(rewriting, held.pop(0), rows))
            for batch in batches:
                rows.add(_numbered(rewriting, batch, rows))
            rows.finish()
            per_file = -(-splits.leaf_count // files)
            writer = _FileWriter(_file_context(rewriting, source), rows, self.layout, self.columns, per_file, check)
            found = writer.write(files, source.number * files, rewriting.readers)
        return self._result(rewriting, source, files, found)

    def _result(self, rewriting: Rewriting, source: Bin, count: int, found: Sequence[_FilesOfThread]) -> RewrittenBin:
        written = written_files(file for some in found for file in some.files)
        new_files = as_added(written, source, rewriting)
        if self.cubes is not None and new_files.num_rows:
            cubes = new_cubes(int(written["size"].to_numpy().sum()), self.cubes)
            tags = [list(cube_tags(cube, self.columns).items()) for cube in cubes]
            of_file = [tags[number * len(cubes) // count] for some in found for number in some.numbers]
            providers = pa.array([PROVIDER] * new_files.num_rows, CLUSTERING_PROVIDER.type)
            new_files = new_files.append_column(TAGS, pa.array(of_file, TAGS.type))
            new_files = new_files.append_column(CLUSTERING_PROVIDER, providers)
        rows = written["num_records"].to_numpy()
        kept = kept_order(rewriting.snapshot, source, int(rows.sum()))
        orders = tuple(some.order for some in found)
        is_known = kept is not None and sum(order.count for order in orders) == rows.sum()
        return RewrittenBin.of(source, new_files, rows, Reordered(kept, orders) if kept and is_known else None)


class RowOrder:
    """For each new row, its number among the rows as they were read; in a temporary file if the rows are many."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - as long as this object
        self._lock = threading.Lock()
        self.count = 0
        weakref.finalize(self, self._file.close)

    def append(self, numbers: Positions) -> None:
        """Add the numbers of the next rows."""
        self._file.write(numbers.tobytes())
        self.count += len(numbers)

    def places(self, wanted: Positions) -> Positions:
        """Return the places of the rows with some numbers, which are sorted."""
        found, start = [np.zeros(0, np.int64)], 0
        with self._lock:
            self._file.seek(0)
            while len(wanted) and (block := self._file.read(_IN_MEMORY)):
                numbers = np.frombuffer(block, np.int64)
                at = np.minimum(np.searchsorted(wanted, numbers), len(wanted) - 1)
                found.append(np.flatnonzero(wanted[at] == numbers) + start)
                start += len(numbers)
        return np.concatenate(found)


@dataclass(frozen=True)
class Reordered:
    """Where rows of sources are, if they were put into another order; see `Origins`. `kept` counts them as read."""

    kept: KeptOrder
    orders: tuple[RowOrder, ...] = field(repr=False)

    def places(self, source: int, rows: BitMap64) -> Positions:
        """Return the places of some rows of a source."""
        return self._moved(np.sort(self.kept.places(source, rows)))

    def all_places(self, source: int) -> Positions:
        """Return the places of all rows of a source."""
        return self._moved(self.kept.all_places(source))

    def _moved(self, wanted: Positions) -> Positions:
        before = np.cumsum([0, *(order.count for order in self.orders)])
        found = [order.places(wanted) + first for order, first in zip(self.orders, before.tolist(), strict=False)]
        return np.concatenate(found)


@dataclass(frozen=True)
class _FileWriter:
    """Writes ordered rows to files, `per_file` leaves to each, on several threads."""

    context: WriteContext
    rows: Distribution
    layout: Layout
    columns: tuple[LayoutColumn, ...]
    per_file: int
    check: Callable[[], None]

    def write(self, count: int, part: int, threads: int) -> list[_FilesOfThread]:
        """Write so many files; return what each thread has written, in order. After an error, the files are deleted."""
        done: list[WrittenFile] = []

        def write(numbers: np.ndarray[Any, Any]) -> Iterator[_FilesOfThread]:
            found = self._write(numbers.tolist(), part)
            done.extend(found.files)
            yield found

        numbers = np.array_split(np.arange(count), max(min(threads, count), 1))
        try:
            return list(flat_map_ordered(write, numbers, threads))
        except BaseException:
            delete_written(self.context, done)
            raise

    def _write(self, numbers: Sequence[int], part: int) -> _FilesOfThread:
        """Write some files with one writer, which then learns only once how to encode them."""
        order = RowOrder()
        writer = RollingFileWriter(self.context, part + numbers[0])
        files: list[WrittenFile] = []
        of_number: list[int] = []
        try:
            for number in numbers:
                begun = writer.files_begun
                for batch in self._batches(number, order):
                    files += writer.add(batch)
                files += writer.end_file()
                of_number += [number] * (writer.files_begun - begun)
            files += writer.finish()
        except BaseException:
            writer.abandon()
            delete_written(self.context, files)
            raise
        return _FilesOfThread(files, of_number, order)

    def _batches(self, number: int, order: RowOrder) -> Iterator[pa.RecordBatch]:
        names = list(self.context.schema.names)
        for leaf in range(number * self.per_file, min((number + 1) * self.per_file, len(self.rows.rows))):
            self.check()
            for batch in ordered(self.layout, self.rows.read([leaf]), self.columns):
                if batch.num_columns > len(names):
                    order.append(batch.column(len(names)).to_numpy())
                yield pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)


class _FilesOfThread(NamedTuple):
    """Files, the number of each in the layout (a file that is too large is continued), and the order of their rows."""

    files: list[WrittenFile]
    numbers: list[int]
    order: RowOrder


def _held(batches: Iterator[pa.RecordBatch], limit: int) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first rows, up to a limit of bytes, and whether they are all rows."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= limit:
            return held, False
    return held, True


def _file_context(rewriting: Rewriting, source: Bin) -> WriteContext:
    """Return how files are written. A file that gets far more than its share of rows is continued in another one."""
    memory = rewriting.memory // rewriting.threads
    group = max(_SMALLEST_GROUP, min(rewriting.write.row_group_bytes, memory // (4 * rewriting.readers)))
    limit = _OVERFULL * max(source.size // max(source.new_files, 1), 1)
    return replace(rewriting.write, row_group_bytes=group, target_file_size=limit)


def _numbered(rewriting: Rewriting, rows: pa.RecordBatch, before: Distribution) -> pa.RecordBatch:
    """Return rows with their numbers, in the order in which they are read, as the last column.

    Numbers are needed only if rows that others delete meanwhile can be deleted in the new files.
    """
    if not is_active(rewriting.snapshot.configuration, Feature.DELETION_VECTORS):
        return rows
    name, first = "number", int(before.rows.sum())
    while name in rows.schema.names:
        name += "_"
    return rows.append_column(name, pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64)))
