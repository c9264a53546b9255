"""Rows in temporary files: the source of a merge that is too large for memory, and both sides split by keys.

Temporary files are Arrow files in a folder of their process. They are removed when they are no longer used, and those
of killed processes when another process makes some.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

_PREFIX = "pyspark-delta-spill-"
_DEAD_AFTER = 24 * 3600  # seconds since the last write to the folder of a process that has ended
_MOST_PARTS = 256  # files of one side that are open at the same time


class SpillFolder:
    """A temporary folder, removed at the end of the block, or when nothing uses the object any more."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        self._remove()


def remove_abandoned() -> None:
    """Remove the folders that processes of this machine left behind when they were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            process = int(folder.name.removeprefix(_PREFIX).split("-")[0])
            if time.time() - folder.stat().st_mtime > _DEAD_AFTER and not _is_running(process):
                shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of another user
    return True


@dataclass(frozen=True)
class SpilledRows:
    """Rows in a temporary file, which can be read again and again, one batch at a time. `nbytes` is their size."""

    schema: pa.Schema
    num_rows: int
    nbytes: int
    path: Path
    folder: SpillFolder = field(repr=False)
    columns: tuple[str, ...] | None = None

    def select(self, names: Sequence[str]) -> SpilledRows:
        """Return some columns."""
        fields = pa.schema([self.schema.field(name) for name in names])
        size = self.nbytes * len(names) // max(1, len(self.schema))
        return SpilledRows(fields, self.num_rows, size, self.path, self.folder, tuple(names))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with pa.OSFile(str(self.path)) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield batch if self.columns is None else batch.select(list(self.columns))


def hold_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None) -> pa.Table | SpilledRows:
    """Read rows: into memory if they take at most `most` bytes (None: any size), else into a temporary file."""
    held: list[pa.RecordBatch] = []
    size = 0
    batches = iter(batches)
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if most is not None and size > most:
            return _spilled(held, batches, schema)
    return pa.Table.from_batches(held, schema)


def _spilled(held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], schema: pa.Schema) -> SpilledRows:
    folder = SpillFolder()
    path, rows, size = folder.path / "source.arrow", 0, 0
    try:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
            while held:
                rows, size = rows + held[0].num_rows, size + held[0].nbytes
                stream.write_batch(held.pop(0))
            for batch in rest:
                rows, size = rows + batch.num_rows, size + batch.nbytes
                stream.write_batch(batch)
    except BaseException:
        folder.remove()
        raise
    return SpilledRows(schema, rows, size, path, folder)


class Parts:
    """Rows split into temporary files by a number between 0 and `count`; `buffered` bytes wait in memory."""

    def __init__(self, folder: SpillFolder, name: str, count: int, buffered: int) -> None:
        self._folder, self._name, self._count = folder, name, count
        self._most = max(1, buffered // count)
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
        self._sizes = [0] * count
        self._files: dict[int, tuple[pa.OSFile, pa.RecordBatchStreamWriter]] = {}

    @staticmethod
    def count_for(size: int, part: int) -> int:
        """Return the number of parts for rows of some bytes, so that each has about `part` bytes."""
        return min(_MOST_PARTS, max(1, -(-size // max(1, part))))

    def add(self, rows: pa.RecordBatch, numbers: np.ndarray) -> None:
        """Add rows; `numbers` are their parts."""
        numbers = numbers.astype(np.uint16)
        rows = rows.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = np.cumsum(np.bincount(numbers, minlength=self._count)).tolist()
        start = 0
        for number, end in enumerate(ends):
            if end > start:
                piece = rows.slice(start, end - start)
                self._waiting[number].append(piece)
                self._sizes[number] += piece.nbytes
                if self._sizes[number] >= self._most:
                    self._write(number)
            start = end

    def finish(self) -> None:
        """Write the rows that wait; `batches` follows."""
        for number in range(self._count):
            if self._waiting[number]:
                self._write(number)
        self.close()

    def close(self) -> None:
        """Close the files."""
        while self._files:
            file, writer = self._files.popitem()[1]
            writer.close()
            file.close()

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, and remove its file at the end."""
        path = self._path(number)
        if not path.exists():
            return
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            yield from stream
        path.unlink()

    def _write(self, number: int) -> None:
        rows = pa.Table.from_batches(self._waiting[number]).combine_chunks()
        if number not in self._files:
            file = pa.OSFile(str(self._path(number)), "wb")
            self._files[number] = file, pa.ipc.new_stream(file, rows.schema)
        self._files[number][1].write_table(rows)
        self._waiting[number], self._sizes[number] = [], 0

    def _path(self, number: int) -> Path:
        return self._folder.path / f"{self._name}-{number}.arrow"
