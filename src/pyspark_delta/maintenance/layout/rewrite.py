"""Rewriting a bin in a layout: its rows are divided among leaves by their values, and each leaf becomes a file.

Rows are read once, besides a sample of the columns of the layout if they do not fit into memory. They wait by leaf, in
files if they are many, and are then written file by file.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.actions.columns import CLUSTERING_PROVIDER, TAGS
from pyspark_delta.data.parts import delete_written, write_all
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
_OVERFULL = 2  # times its share of the bytes after which a file is continued in another one


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
        held, is_all = _held(batches, memory // 4)
        if is_all:
            sample = sampled(held, self.columns, rewriting.write.schema)
        else:
            sample = sample_rows(rewriting, source, self.columns)
        files = max(source.new_files, 1)
        most = LEAVES_PER_FILE if is_all else min(LEAVES_PER_FILE, most_leaves(memory // 2) // files)
        splits = splits_of(self.layout, sample, files, max(most, 1))
        origins = RowOrder() if _may_have_vectors(rewriting) else None
        with Distribution(splits, self.columns, memory=memory // 2) as rows:
            while held:
                rows.add(_numbered(held.pop(0), int(rows.rows.sum())))
            for batch in batches:
                rows.add(_numbered(batch, int(rows.rows.sum())))
            rows.finish()
            written = _write(self._context(rewriting, source), rows, source, self._order(check), rewriting, origins)
        return self._result(rewriting, source, written, origins)

    def _context(self, rewriting: Rewriting, source: Bin) -> WriteContext:
        memory = rewriting.memory // rewriting.threads
        group = max(_SMALLEST_GROUP, min(rewriting.write.row_group_bytes, memory // (4 * rewriting.readers)))
        limit = _OVERFULL * max(source.size // source.new_files, 1)
        return replace(rewriting.write, row_group_bytes=group, target_file_size=limit)

    def _order(self, check: Callable[[], None]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what orders the rows of one leaf."""

        def order(leaf: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            check()
            yield from ordered(self.layout, leaf, self.columns)

        return order

    def _result(
        self, rewriting: Rewriting, source: Bin, files: Sequence[Sequence[WrittenFile]], origins: RowOrder | None
    ) -> RewrittenBin:
        written = written_files(chain.from_iterable(files))
        new_files = as_added(written, source, rewriting)
        if self.cubes is not None and new_files.num_rows:
            cubes = new_cubes(int(written["size"].to_numpy().sum()), self.cubes)
            tags = [cube_tags(cubes[number * len(cubes) // len(files)], self.columns) for number in range(len(files))]
            of_file = [list(tags[number].items()) for number, some in enumerate(files) for _ in some]
            providers = pa.array([PROVIDER] * new_files.num_rows, CLUSTERING_PROVIDER.type)
            new_files = new_files.append_column(TAGS, pa.array(of_file, TAGS.type))
            new_files = new_files.append_column(CLUSTERING_PROVIDER, providers)
        rows = written["num_records"].to_numpy()
        kept = kept_order(rewriting.snapshot, source, int(rows.sum()))
        moved = None if kept is None or origins is None else Reordered(kept, origins)
        return RewrittenBin.of(source, new_files, rows, moved)


class RowOrder:
    """For each new row, its number among the rows as they were read; in a temporary file if the rows are many."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - as long as this object
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def append(self, numbers: Sequence[Positions]) -> None:
        """Add the numbers of the next rows."""
        self._file.writelines(some.tobytes() for some in numbers)

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
    order: RowOrder = field(repr=False)

    def places(self, source: int, rows: BitMap64) -> Positions:
        """Return the places of some rows of a source."""
        return self.order.places(np.sort(self.kept.places(source, rows)))

    def all_places(self, source: int) -> Positions:
        """Return the places of all rows of a source."""
        return self.order.places(self.kept.all_places(source))


def _write(
    context: WriteContext,
    rows: Distribution,
    source: Bin,
    order_leaf: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    rewriting: Rewriting,
    origins: RowOrder | None,
) -> list[list[WrittenFile]]:
    """Write the leaves of each file, and the order of the rows; return the files. After an error, they are deleted."""
    count = source.new_files
    per_file = -(-len(rows.rows) // count)
    done: list[WrittenFile] = []
    names = list(context.schema.names)

    def write(number: int) -> Iterator[tuple[list[WrittenFile], list[Any]]]:
        order: list[Any] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for leaf in range(number * per_file, min((number + 1) * per_file, len(rows.rows))):
                for batch in order_leaf(rows.read([leaf])):
                    if origins is not None:
                        order.append(batch.column(len(names)).to_numpy())
                    yield pa.RecordBatch.from_arrays(batch.columns[: len(names)], names)

        written = write_all(context, batches(), source.number * count + number)
        done.extend(written)
        yield written, order

    files: list[list[WrittenFile]] = []
    try:
        for written, order in flat_map_ordered(write, range(count), rewriting.readers):
            files.append(written)
            if origins is not None:
                origins.append(order)
    except BaseException:
        delete_written(context, done)
        raise
    return files


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


def _numbered(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Return rows with their numbers, in the order in which they are read, as the last column."""
    name = "number"
    while name in rows.schema.names:
        name += "_"
    return rows.append_column(name, pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64)))


def _may_have_vectors(rewriting: Rewriting) -> bool:
    """True if rows that others delete meanwhile can be deleted in the new files."""
    return is_active(rewriting.snapshot.configuration, Feature.DELETION_VECTORS)
