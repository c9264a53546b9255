"""The origins of rows that tasks put into another order: files beside the data files, until these are committed.

A file holds the origin of each row, in the order of the rows: the number of its source and its position there, as one
number. It is an Arrow IPC stream of differences, which take about two bytes a row. The files are in the table's folder
under names that no other file has, so vacuum deletes those of a run that was killed, and executors need no other store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pyspark_delta.deletion_vectors.bitmap import to_indexes
from pyspark_delta.maintenance.rewriting.origins import Deleted, Positions
from pyspark_delta.parallel import map_requests
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import join

_POSITION_BITS = 40
_SCHEMA = pa.schema([pa.field("difference", pa.int64())])
_BATCH = 1 << 20  # rows
_AT_ONCE = 4  # files
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def first_origin(source: int) -> int:
    """Return the origin of the first row of a source, given by its number in the bin; others follow by position."""
    return source << _POSITION_BITS


class OriginWriter:
    """Collects the origins of rows as they are written, compressed in memory, and stores them."""

    def __init__(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pa.ipc.new_stream(self._sink, _SCHEMA, options=_OPTIONS)
        self._waiting: list[Positions] = []
        self._rows = 0

    def append(self, numbers: Positions) -> None:
        """Add the origins of the next rows."""
        self._waiting.append(numbers)
        self._rows += len(numbers)
        if self._rows >= _BATCH:
            self._flush()

    def store(self, location: str, storage_options: Mapping[str, str]) -> str:
        """Write the file to the table at a location, and return its path there. Raises StorageError."""
        self._flush()
        self._writer.close()
        name = f"row_origins_{uuid.uuid4()}.bin"
        store_for(location, storage_options).write(join(location, name), self._sink.getvalue().to_pybytes())
        return name

    def _flush(self) -> None:
        if self._waiting:
            differences = np.diff(np.concatenate(self._waiting), prepend=0)
            self._writer.write_batch(pa.RecordBatch.from_arrays([pa.array(differences)], schema=_SCHEMA))
        self._waiting, self._rows = [], 0


@dataclass(frozen=True)
class StoredOrigins:
    """The origins in some files, in the order of the rows; see `Origins`. They are read only after a conflict."""

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    paths: Sequence[str]

    def places(self, deleted: Deleted) -> Positions:
        """Return the places of some rows, by a search in the origins of all rows. Raises StorageError."""
        whole = np.array(sorted(source for source, rows in deleted.items() if rows is None), np.int64)
        some = [first_origin(source) + to_indexes(rows) for source, rows in sorted(deleted.items()) if rows is not None]
        wanted = np.concatenate([np.zeros(0, np.int64), *some])
        places, start = [np.zeros(0, np.int64)], 0
        for found, rows in map_requests(lambda path: self._search(path, whole, wanted), self.paths, _AT_ONCE):
            places.append(found + start)
            start += rows
        return np.concatenate(places)

    def _search(self, path: str, whole: Positions, wanted: Positions) -> tuple[Positions, int]:
        """Return the places of the wanted rows in one file, and its number of rows. `wanted` is sorted."""
        places, start = [np.zeros(0, np.int64)], 0
        for origins in self._read(path):
            is_deleted = np.isin(origins >> _POSITION_BITS, whole)
            if len(wanted):
                at = np.minimum(np.searchsorted(wanted, origins), len(wanted) - 1)
                is_deleted |= wanted[at] == origins
            places.append(np.flatnonzero(is_deleted) + start)
            start += len(origins)
        return np.concatenate(places), start

    def _read(self, path: str) -> Iterator[Positions]:
        data = store_for(self.location, self.storage_options).read(join(self.location, path))
        for batch in pa.ipc.open_stream(data):
            yield np.cumsum(batch.column(0).to_numpy())
