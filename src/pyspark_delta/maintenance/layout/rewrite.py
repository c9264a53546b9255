"""Rewriting a bin in a layout: its rows are divided among leaves by their values, and each leaf becomes a file.

Rows are read once. If they do not fit into memory, a sample of the layout's columns is read before. Rows wait by leaf,
in files if they are many, and are then written file by file.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pyspark_delta.actions.columns import CLUSTERING_PROVIDER, TAGS
from pyspark_delta.data.parts import delete_written
from pyspark_delta.data.writer import WriteContext, WrittenFile, written_files
from pyspark_delta.features import Feature, is_active
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.cubes import PROVIDER, CubeSizes, cube_tags, new_cubes
from pyspark_delta.maintenance.layout.distribute import Distribution, most_leaves
from pyspark_delta.maintenance.layout.layouts import LEAVES_PER_FILE, Cluster, Layout, splits_of
from pyspark_delta.maintenance.layout.sample import sample_rows, sampled
from pyspark_delta.maintenance.layout.writing import file_context, number_name, write_leaves
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.origins import Deleted, KeptOrder, Origins, Positions
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, as_added, kept_order
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.parallel import flat_map_ordered

_IN_MEMORY = 32 << 20  # bytes of origins


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
            writer = _FileWriter(file_context(rewriting, source), rows, self.layout, self.columns, per_file, check)
            found = writer.write(files, source.number * files, rewriting.readers)
        orders = tuple(some.order for some in found)
        written = written_files(file for some in found for file in some.files)
        origins = self._origins(rewriting, source, written, orders)
        return self.rewritten(rewriting, source, [n for some in found for n in some.numbers], written, origins)

    def rewritten(
        self, rewriting: Rewriting, source: Bin, numbers: Sequence[int], written: pa.Table, origins: Origins | None
    ) -> RewrittenBin:
        """Return a bin whose files were written; each of them is or continues the file of a number in the layout."""
        new_files = as_added(written, source, rewriting)
        if self.cubes is not None and new_files.num_rows:
            cubes = new_cubes(int(written["size"].to_numpy().sum()), self.cubes)
            tags = [list(cube_tags(cube, self.columns).items()) for cube in cubes]
            count = max(source.new_files, 1)
            of_file = [tags[number * len(cubes) // count] for number in numbers]
            providers = pa.array([PROVIDER] * new_files.num_rows, CLUSTERING_PROVIDER.type)
            new_files = new_files.append_column(TAGS, pa.array(of_file, TAGS.type))
            new_files = new_files.append_column(CLUSTERING_PROVIDER, providers)
        return RewrittenBin.of(source, new_files, written["num_records"].to_numpy(), origins)

    def _origins(
        self, rewriting: Rewriting, source: Bin, written: pa.Table, orders: tuple[RowOrder, ...]
    ) -> Origins | None:
        rows = int(written["num_records"].to_numpy().sum())
        kept = kept_order(rewriting.snapshot, source, rows)
        is_known = sum(order.count for order in orders) == rows
        return Reordered(kept, orders) if kept is not None and is_known else None


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

    def places(self, deleted: Deleted) -> Positions:
        """Return the places of some rows."""
        wanted = np.sort(self.kept.places(deleted))
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
            order = RowOrder()
            files = ((number, self._leaves(number)) for number in numbers.tolist())
            first = part + int(numbers[0])
            found = write_leaves(self.context, self.layout, self.columns, files, order, first)
            done.extend(found.files)
            yield _FilesOfThread(*found, order)

        numbers = np.array_split(np.arange(count), max(min(threads, count), 1))
        try:
            return list(flat_map_ordered(write, numbers, threads))
        except BaseException:
            delete_written(self.context, done)
            raise

    def _leaves(self, number: int) -> Iterator[Iterator[pa.RecordBatch]]:
        """Yield the rows of each leaf of a file."""
        for leaf in range(number * self.per_file, min((number + 1) * self.per_file, len(self.rows.rows))):
            self.check()
            yield self.rows.read([leaf])


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


def _numbered(rewriting: Rewriting, rows: pa.RecordBatch, before: Distribution) -> pa.RecordBatch:
    """Return rows with their numbers, in the order in which they are read, as the last column.

    Numbers are needed only if rows that others delete meanwhile can be deleted in the new files.
    """
    if not is_active(rewriting.snapshot.configuration, Feature.DELETION_VECTORS):
        return rows
    first, name = int(before.rows.sum()), number_name(rows.schema.names)
    return rows.append_column(name, pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64)))
