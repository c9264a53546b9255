"""Delete rows of data files: with deletion vectors, or by removing complete files (Deletion Vectors; C250-C282)."""

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
class FilesWithDeletions:
    """Files with deleted rows, and for each the complete bitmap of deleted row indexes.

    `files` has all columns of `actions.columns`. `deletions` are physical row indexes and include the rows that were
    deleted before; `stored` is the number of rows in the file, deleted or not.
    """

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    files: pa.Table
    deletions: Sequence[BitMap64]
    stored: np.ndarray

    @cached_property
    def is_removed(self) -> pa.Array:
        """For each file, True if all its rows are deleted."""
        return pa.array(np.array([len(bitmap) for bitmap in self.deletions], np.int64) >= self.stored)

    @property
    def removed(self) -> pa.Table:
        """The files whose rows are all deleted."""
        return self.files.filter(self.is_removed)

    @property
    def updated(self) -> pa.Table:
        """The files that keep some rows."""
        return self.files.filter(pc.invert(self.is_removed))

    @property
    def remaining_rows(self) -> int:
        """The number of rows that the files keep."""
        deleted = np.array([len(bitmap) for bitmap in self.deletions], np.int64)
        return int(np.maximum(self.stored - deleted, 0).sum())

    def with_vectors(self, prefix: str = "") -> pa.Table:
        """Return the files that keep some rows, as they are added again: with new vectors, which share one new file.

        Their statistics get wide bounds, because the rows with the extreme values may be among the deleted ones (C413).
        """
        vectors = self._of_updated()
        if not vectors:
            return self.updated
        store = store_for(self.location, self.storage_options)
        files = _with_vectors(self.updated, write_deletion_vectors(store, self.location, vectors, prefix=prefix))
        counts = self.stored[~self.is_removed.to_numpy(zero_copy_only=False)]
        texts = [_widened(text, int(rows)) for text, rows in zip(files["stats"].to_pylist(), counts, strict=True)]
        return files.set_column(files.column_names.index("stats"), "stats", pa.array(texts, pa.string()))

    def readable(self) -> pa.Table:
        """Return the same files to be read, not to be committed: their vectors are in the table itself."""
        return _with_vectors(self.updated, [encode_inline(bitmap) for bitmap in self._of_updated()])

    def _of_updated(self) -> list[BitMap64]:
        return [
            bitmap for bitmap, removed in zip(self.deletions, self.is_removed.to_pylist(), strict=True) if not removed
        ]


def delete_rows(
    location: str, storage_options: Mapping[str, str], files: pa.Table, deletions: Mapping[int, BitMap64]
) -> FilesWithDeletions:
    """Delete rows of files: `deletions` are their physical indexes by the position of the file in `files`.

    Reads the existing vectors of the files, and the footers of files whose statistics lack the number of rows. Raises
    DeletionVectorError, DataFileError.
    """
    found = files.take(pa.array(sorted(deletions), pa.int64())).combine_chunks()
    found = with_record_counts(found, location, storage_options)
    new = [deletions[position] for position in sorted(deletions)]
    vectors = found["deletion_vector"].to_pylist()
    with_vector = [i for i, vector in enumerate(vectors) if vector is not None]
    old = read_deletion_vectors(
        lambda path: store_for(path, storage_options),
        location,
        [DeletionVectorDescriptor(**vectors[i]) for i in with_vector],
        data_files=[found["path"][i].as_py() for i in with_vector],
    )
    counts = parse_stats(found["stats"].combine_chunks(), (NUM_RECORDS,)).column("numRecords")
    for i, bitmap in zip(with_vector, old, strict=True):
        check_rows(bitmap, counts[i].as_py(), found["path"][i].as_py())
        new[i] = new[i] | bitmap
    return FilesWithDeletions(location, storage_options, found, new, np.asarray(counts))


def _with_vectors(files: pa.Table, vectors: Sequence[DeletionVectorDescriptor]) -> pa.Table:
    names = [f.name for f in DELETION_VECTOR.type]
    column = pa.array([{name: getattr(one, name) for name in names} for one in vectors], DELETION_VECTOR.type)
    return files.set_column(files.column_names.index("deletion_vector"), DELETION_VECTOR, column)


def _widened(text: str, rows: int) -> str:
    """Return statistics that count all stored rows, as a file with a vector requires (C256), with wide bounds.

    All other members keep their text, so bounds stay exact. If a text is not a JSON object, only the count is kept.
    """
    members = members_of(text) or {"numRecords": f'"numRecords":{rows}'}
    members["tightBounds"] = '"tightBounds":false'
    return object_of(*members.values())
