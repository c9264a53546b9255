"""Rows by leaf: batches in any order go in, and each leaf comes out with its rows together, in bounded memory.

Rows wait in memory until the budget is used. They are then ordered by leaf and written to one file of the Arrow IPC
format, with a batch for each leaf. A leaf is read from all these files. Rows that fit into the budget never leave
memory.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.splits import Splits

DEFAULT_MEMORY = 512 << 20  # bytes
_MOST_BYTES = 1 << 30  # of rows that are ordered at once: offsets of texts have 32 bits
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class Distribution:
    """Rows by leaf. Use it in a `with` statement: its end deletes the files.

    `memory` is the number of bytes that rows may take while they are ordered; `directory` is where files are written,
    by default that of temporary files.
    """

    def __init__(
        self,
        splits: Splits,
        columns: Sequence[LayoutColumn],
        *,
        memory: int = DEFAULT_MEMORY,
        directory: str | None = None,
    ) -> None:
        self._splits, self._columns = splits, columns
        self._limit = min(max(memory // 2, 1), _MOST_BYTES)  # ordering makes a copy
        self._directory = directory
        self._folder: tempfile.TemporaryDirectory[str] | None = None
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
        """The size of the files."""
        return sum(run.size for run in self._runs)

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
            self._write(_OPTIONS)

    def finish(self) -> None:
        """Order the rows that are left; call it before `read`."""
        if self._waiting:
            self._write(_OPTIONS if self._runs else None)

    def read(self, leaves: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some leaves, one leaf after another, each in the order in which its rows came."""
        for leaf in leaves:
            for run in self._runs:
                found = run.read(leaf)
                if found is not None:
                    yield found

    def close(self) -> None:
        """Delete the files."""
        for run in self._runs:
            run.close()
        self._runs, self._waiting, self._leaves = [], [], []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _write(self, options: pa.ipc.IpcWriteOptions | None) -> None:
        """Order the waiting rows by leaf, and write them; without options, keep them in memory."""
        leaves = np.concatenate(self._leaves)
        rows = one_batch(self._waiting)
        self._waiting, self._leaves, self._bytes = [], [], 0
        order = np.argsort(leaves, kind="stable")
        ordered = rows.take(pa.array(order))
        del rows
        present, starts = np.unique(leaves[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        pieces = {
            leaf: ordered.slice(s, e - s)
            for leaf, s, e in zip(present.tolist(), starts.tolist(), ends.tolist(), strict=True)
        }
        if options is None:
            self._runs.append(_Run(pieces=pieces))
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pyspark-delta-layout-", dir=self._directory)
        path = os.path.join(self._folder.name, f"{len(self._runs)}.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, ordered.schema, options=options) as writer:
            for piece in pieces.values():
                writer.write_batch(piece)
        self._runs.append(_Run(path=path, numbers={leaf: number for number, leaf in enumerate(pieces)}))


class _Run:
    """Rows that were ordered together, in memory or in a file."""

    def __init__(
        self,
        pieces: dict[int, pa.RecordBatch] | None = None,
        path: str | None = None,
        numbers: dict[int, int] | None = None,
    ) -> None:
        self._pieces, self._numbers = pieces or {}, numbers or {}
        self._path, self._open = path, threading.local()  # a reader is not made for several threads
        self.size = 0 if path is None else os.path.getsize(path)

    def read(self, leaf: int) -> pa.RecordBatch | None:
        if self._path is None:
            return self._pieces.get(leaf)
        number = self._numbers.get(leaf)
        if number is None:
            return None
        reader = getattr(self._open, "reader", None)
        if reader is None:
            reader = self._open.reader = pa.ipc.open_file(pa.memory_map(self._path, "rb"))
        return reader.get_batch(number)

    def close(self) -> None:
        self._pieces, self._open = {}, threading.local()


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of some batches, of one or more, as one."""
    table = pa.Table.from_batches(batches).combine_chunks()
    found = table.to_batches()
    if len(found) == 1:
        return found[0]
    return pa.RecordBatch.from_arrays([pa.concat_arrays(c.chunks) for c in table.columns], schema=table.schema)
