"""Rows by leaf: batches in any order go in, and each leaf comes out with its rows together, in bounded memory.

Rows wait in memory until the budget is used. They are then ordered by leaf and written to a file, a batch of the Arrow
IPC format for each leaf. A leaf is read from all places where it was written. Rows that fit into the budget never
leave memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.order_keys import Integers
from pyspark_delta.maintenance.layout.splits import Splits

Leaves: TypeAlias = "np.ndarray[Any, Any]"
"""The leaf of each row, in any type of whole numbers."""

_MOST_BYTES = 1 << 30  # of rows that are ordered at once: offsets of texts have 32 bits
_PIECE = 256 << 10  # bytes that the rows of a leaf should have, each time they are written
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def most_leaves(memory: int) -> int:
    """Return how many leaves rows should be divided among if they do not fit into memory, in bytes."""
    return max(_limit(memory) // _PIECE, 1)


class Distribution:
    """Rows by leaf. Use it in a `with` statement: its end deletes the file.

    `memory` is the number of bytes that rows may take while they are ordered; `directory` is where the file is written,
    by default that of temporary files.
    """

    def __init__(
        self, splits: Splits, columns: Sequence[LayoutColumn], *, memory: int, directory: str | None = None
    ) -> None:
        self._splits, self._columns = splits, columns
        self._limit, self._directory = _limit(memory), directory
        self._spill: _Spill | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._leaves: list[Any] = []
        self._bytes = 0
        self._runs: list[_Run] = []
        self.rows = np.zeros(splits.leaf_count, np.int64)
        """The number of rows of each leaf."""

    def __enter__(self) -> Distribution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def spilled_bytes(self) -> int:
        """The size of the file."""
        return 0 if self._spill is None else self._spill.size

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows in; columns have logical names. All batches have the same schema."""
        if not rows.num_rows:
            return
        keys = [column.values(rows) for column in self._columns]
        leaves = self._splits.leaves(keys, int(self.rows.sum()))
        self.rows += np.bincount(leaves, minlength=len(self.rows))
        self._waiting.append(rows)
        self._leaves.append(leaves.astype(np.uint16 if len(self.rows) <= 1 << 16 else np.uint32))
        self._bytes += rows.nbytes
        if self._bytes >= self._limit:
            self._order(spill=True)

    def finish(self) -> None:
        """Order the rows that are left; call it before `read`."""
        if self._waiting:
            self._order(spill=self._spill is not None)
        if self._spill is not None:
            self._spill.end()

    def read(self, leaves: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some leaves, one leaf after another, each in the order in which its rows came.

        Several threads may read at the same time.
        """
        for leaf in leaves:
            for run in self._runs:
                at = int(np.searchsorted(run.leaves, leaf))
                if at < len(run.leaves) and run.leaves[at] == leaf:
                    begin, length = int(run.starts[at]), int(run.starts[at + 1] - run.starts[at])
                    if run.rows is not None:
                        yield run.rows.slice(begin, length)
                    elif self._spill is not None:
                        yield self._spill.read(begin, length)

    def close(self) -> None:
        """Delete the file."""
        self._runs, self._waiting, self._leaves = [], [], []
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    def _order(self, *, spill: bool) -> None:
        """Order the waiting rows by leaf, and write them, or keep them in memory."""
        found = by_leaf(self._waiting, self._leaves)
        self._waiting, self._leaves, self._bytes = [], [], 0
        if not spill:
            self._runs.append(_Run(found.leaves, found.starts, found.rows))
            return
        if self._spill is None:
            self._spill = _Spill(found.rows.schema, self._directory)
        self._runs.append(_Run(found.leaves, self._spill.write(found.rows, found.starts)))


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Rows that were ordered together: where each of the leaves begins, in the rows or, without them, in the file."""

    leaves: np.ndarray[Any, Any]
    starts: Integers
    rows: pa.RecordBatch | None = None


class _Spill:
    """A file of batches, which are read one by one."""

    def __init__(self, schema: pa.Schema, directory: str | None) -> None:
        self._schema = schema
        self._folder = tempfile.TemporaryDirectory(prefix="pyspark-delta-layout-", dir=directory)
        self._path = os.path.join(self._folder.name, "rows.arrow")
        self._sink = pa.OSFile(self._path, "wb")
        self._writer = pa.ipc.new_stream(self._sink, schema, options=_OPTIONS)
        self._source: pa.MemoryMappedFile | None = None
        self.size = 0

    def write(self, rows: pa.RecordBatch, starts: Integers) -> Integers:
        """Write the batches that begin at some rows; return where each begins in the file, and where the last ends."""
        if not self.size:  # the schema comes with the first batch
            self._writer.write_batch(rows.slice(0, 0))
            self.size = self._sink.tell()
        places = [self.size]
        for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            self._writer.write_batch(rows.slice(start, end - start))
            places.append(self._sink.tell())
        self.size = places[-1]
        return np.array(places, np.int64)

    def end(self) -> None:
        """Make what was written readable."""
        self._writer.close()
        self._sink.close()
        self._source = pa.memory_map(self._path, "rb")

    def read(self, begin: int, length: int) -> pa.RecordBatch:
        assert self._source is not None
        message = pa.ipc.read_message(self._source.read_at(length, begin))
        return pa.ipc.read_record_batch(message, self._schema)

    def close(self) -> None:
        if self._source is None:
            self.end()
        assert self._source is not None
        self._source.close()
        self._folder.cleanup()


class RowsByLeaf(NamedTuple):
    """Rows ordered by leaf, the leaves that have some, and where each starts; the last start is the number of rows.

    `order` says which row each was before.
    """

    rows: pa.RecordBatch
    leaves: Leaves
    starts: Integers
    order: Integers


def by_leaf(batches: Sequence[pa.RecordBatch], leaves: Sequence[Leaves]) -> RowsByLeaf:
    """Return the rows of some batches, of one or more, ordered by their leaves. Rows of a leaf stay in order."""
    of_row = np.concatenate(leaves)
    order = np.argsort(of_row, kind="stable")
    present, starts = np.unique(of_row[order], return_index=True)
    rows = one_batch(batches).take(pa.array(order))
    return RowsByLeaf(rows, present, np.append(starts, len(order)).astype(np.int64), order)


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of some batches, of one or more, as one."""
    found = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if len(found) == 1:
        return found[0]
    table = pa.Table.from_batches(batches)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(c.chunks) for c in table.columns], schema=table.schema)


def _limit(memory: int) -> int:
    """Return the bytes of rows that wait: ordering them makes a copy."""
    return min(max(memory // 2, 1), _MOST_BYTES)
