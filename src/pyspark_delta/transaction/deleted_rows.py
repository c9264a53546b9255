"""Rows that leave data files: as deletion vectors, or as files that go whole (Deletion Vectors; C250-C282)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.actions.columns import DELETION_VECTOR
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.data.record_counts import with_record_counts
from pyspark_delta.deletion_vectors.bitmap import check_rows
from pyspark_delta.deletion_vectors.files import encode_inline, read_deletion_vectors, write_deletion_vectors
from pyspark_delta.scan.bounds import NUM_RECORDS
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.stats.texts import members_of, object_of
from pyspark_delta.storage import store_for


@dataclass(frozen=True)
class TouchedFiles:
    """Files of which rows go: `files` with all columns of `actions.columns`, and for each the rows that are gone then.

    `gone` are physical row indexes, those that were deleted before among them; `stored` is how many rows the file
    holds, deleted or not.
    """

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    files: pa.Table
    gone: Sequence[BitMap64]
    stored: np.ndarray

    @cached_property
    def is_whole(self) -> pa.Array:
        """For each file, whether no row of it stays."""
        return pa.array(np.array([len(bitmap) for bitmap in self.gone], np.int64) >= self.stored)

    @property
    def whole(self) -> pa.Table:
        """The files of which no row stays."""
        return self.files.filter(self.is_whole)

    @property
    def partly(self) -> pa.Table:
        """The files of which rows stay."""
        return self.files.filter(pc.invert(self.is_whole))

    def marked(self, prefix: str = "") -> pa.Table:
        """The files of which rows stay, as they are added again: with new vectors, which share one new file.

        Bounds of statistics are wide from now on, as the rows that had the extreme values may be among those that are
        gone (C413).
        """
        vectors = self._staying()
        if not vectors:
            return self.partly
        store = store_for(self.location, self.storage_options)
        files = _with_vectors(self.partly, write_deletion_vectors(store, self.location, vectors, prefix=prefix))
        counts = self.stored[~self.is_whole.to_numpy(zero_copy_only=False)]
        texts = [_widened(text, int(rows)) for text, rows in zip(files["stats"].to_pylist(), counts, strict=True)]
        return files.set_column(files.column_names.index("stats"), "stats", pa.array(texts, pa.string()))

    def readable(self) -> pa.Table:
        """The same files to be read, not to be committed: their vectors are in the table itself."""
        return _with_vectors(self.partly, [encode_inline(bitmap) for bitmap in self._staying()])

    def _staying(self) -> list[BitMap64]:
        return [bitmap for bitmap, whole in zip(self.gone, self.is_whole.to_pylist(), strict=True) if not whole]


def take_rows(
    location: str, storage_options: Mapping[str, str], files: pa.Table, hits: Mapping[int, BitMap64]
) -> TouchedFiles:
    """Take rows out of files: `hits` are their physical indexes by the position of the file in `files`.

    Reads the vectors that the files have, and the footers of files whose statistics do not say how many rows they
    hold. Raises DeletionVectorError, DataFileError.
    """
    touched = files.take(pa.array(sorted(hits), pa.int64())).combine_chunks()
    touched = with_record_counts(touched, location, storage_options)
    new = [hits[position] for position in sorted(hits)]
    vectors = touched["deletion_vector"].to_pylist()
    marked = [i for i, vector in enumerate(vectors) if vector is not None]
    old = read_deletion_vectors(
        lambda path: store_for(path, storage_options),
        location,
        [DeletionVectorDescriptor(**vectors[i]) for i in marked],
        data_files=[touched["path"][i].as_py() for i in marked],
    )
    counts = parse_stats(touched["stats"].combine_chunks(), (NUM_RECORDS,)).column("numRecords")
    for i, bitmap in zip(marked, old, strict=True):
        check_rows(bitmap, counts[i].as_py(), touched["path"][i].as_py())
        new[i] = new[i] | bitmap
    return TouchedFiles(location, storage_options, touched, new, np.asarray(counts))


def _with_vectors(files: pa.Table, vectors: Sequence[DeletionVectorDescriptor]) -> pa.Table:
    names = [f.name for f in DELETION_VECTOR.type]
    column = pa.array([{name: getattr(one, name) for name in names} for one in vectors], DELETION_VECTOR.type)
    return files.set_column(files.column_names.index("deletion_vector"), DELETION_VECTOR, column)


def _widened(text: str, rows: int) -> str:
    """Statistics, which count all stored rows as a file with a vector must have them (C256), with wide bounds.

    All other members keep their text, so bounds stay exact. Of a text that is no JSON object, the count alone stays.
    """
    members = members_of(text) or {"numRecords": f'"numRecords":{rows}'}
    members["tightBounds"] = '"tightBounds":false'
    return object_of(*members.values())
