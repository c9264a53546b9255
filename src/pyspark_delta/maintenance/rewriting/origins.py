"""Where each row of a bin went, so that rows which others delete meanwhile can be deleted in the new files too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import read_deletion_vectors
from pyspark_delta.deletion_vectors.bitmap import to_indexes
from pyspark_delta.storage import store_for

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Positions of rows among all rows of the new files of a bin, which are counted in the order of the files."""

Deleted: TypeAlias = Mapping[int, BitMap64 | None]
"""Rows of sources, by the number of the source: their positions in that file, or None for all its rows."""


class Origins(Protocol):
    """Where the rows of the sources of a bin are in its new files; sources are numbers of files in the bin."""

    def places(self, deleted: Deleted) -> Positions:
        """Return the places of some rows, in any order. None of them was deleted when the bin was rewritten."""


@dataclass(frozen=True)
class KeptOrder:
    """The origins if rows keep their order: those of one source follow those of another, without the deleted ones.

    The rows of source i begin at `starts[i]`, and `starts` has one more number, that of all rows. `files` are the
    sources, whose deletion vectors are read again if they are needed. Sources in `copied` have kept their deleted rows.
    """

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    files: pa.Table = field(repr=False)
    starts: Positions = field(repr=False)
    copied: frozenset[int] = frozenset()

    def places(self, deleted: Deleted) -> Positions:
        """Return the places of some rows."""
        return _joined(self._places(source, rows) for source, rows in deleted.items())

    def _places(self, source: int, rows: BitMap64 | None) -> Positions:
        """Return the places of rows of a source: their positions, without the deleted rows before them."""
        if rows is None:
            return np.arange(self.starts[source], self.starts[source + 1], dtype=np.int64)
        if source in self.copied:
            return np.asarray(self.starts[source] + to_indexes(rows))
        (vector,) = read_vectors(self.location, self.storage_options, self.files.slice(source, 1))
        indexes = to_indexes(rows)
        deleted_before = np.searchsorted(to_indexes(vector), indexes)
        return np.asarray(self.starts[source] + indexes - deleted_before)


@dataclass(frozen=True)
class RowOrigins:
    """The origins if rows are in any order: for each new row, the number of its source and its position there.

    `load` reads both arrays, which may be in a temporary file; it is called only after a conflict.
    """

    load: Callable[[], tuple[Positions, Positions]]

    def places(self, deleted: Deleted) -> Positions:
        """Return the places of some rows, by a search in the origins of all rows."""
        sources, positions = self.load()

        def of(source: int, rows: BitMap64 | None) -> Positions:
            found = np.flatnonzero(sources == source)
            return found if rows is None else np.asarray(found[np.isin(positions[found], to_indexes(rows))])

        return _joined(of(source, rows) for source, rows in deleted.items())


def _joined(places: Iterable[Positions]) -> Positions:
    return np.concatenate([np.zeros(0, np.int64), *places])


def read_vectors(location: str, storage_options: Mapping[str, str], files: pa.Table) -> list[BitMap64]:
    """Return the deleted rows of each file, by its column `deletion_vector`. Raises DeletionVectorError."""
    descriptors = files["deletion_vector"].to_pylist()
    with_vector = [i for i, vector in enumerate(descriptors) if vector is not None]
    found: Sequence[BitMap64] = read_deletion_vectors(
        lambda path: store_for(path, storage_options),
        location,
        [DeletionVectorDescriptor(**descriptors[i]) for i in with_vector],
        data_files=[files["path"][i].as_py() for i in with_vector],
    )
    vectors = [BitMap64() for _ in descriptors]
    for i, vector in zip(with_vector, found, strict=True):
        vectors[i] = vector
    return vectors
