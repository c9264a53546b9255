"""A rewritten bin: its new files, and where its rows went. Every way of rewriting returns such a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors.bitmap import of_indexes
from pyspark_delta.deletion_vectors.files import deletion_vector_path
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.origins import Origins, Positions
from pyspark_delta.protocol.state import TableState
from pyspark_delta.transaction.deleted_rows import FilesWithDeletions, delete_rows

SOURCE = "source"
"""The column of removed files that says their number in the bin."""


@dataclass(frozen=True)
class RewrittenBin:
    """The bin `source` and its `new_files`, which no commit names yet, in the order in which `origins` counts rows.

    `new_files` have columns of `actions.columns`: `stats` with the number of records, and tags and the clustering
    provider if the files are to have some. `rows` is the number of stored rows of each. Without `origins`, the bin is
    given up if another commit changes one of its sources. `removes` are the sources as the commit removes them.
    `unused` are the numbers of new files that are not added, because all their rows are deleted meanwhile.
    `vector_files` are new files with deletion vectors, by their paths in the table; `temporary_files` are needed only
    until the commit.
    """

    source: Bin
    new_files: pa.Table = field(repr=False)
    rows: Positions = field(repr=False)
    origins: Origins | None = field(repr=False)
    removes: pa.Table = field(repr=False)
    unused: frozenset[int] = frozenset()
    vector_files: tuple[str, ...] = ()
    temporary_files: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Bin, new_files: pa.Table, rows: Positions, origins: Origins | None) -> RewrittenBin:
        """Return a bin whose files are removed as they were read."""
        numbers = pa.array(np.arange(source.files.num_rows))
        return cls(source, new_files, rows, origins, source.files.append_column(SOURCE, numbers))

    @property
    def adds(self) -> pa.Table:
        """The new files that the commit adds."""
        if not self.unused:
            return self.new_files
        return self.new_files.filter(pa.array([i not in self.unused for i in range(self.new_files.num_rows)]))

    @property
    def written(self) -> list[str]:
        """The paths of everything that was written for the bin."""
        return [*self.new_files["path"].to_pylist(), *self.vector_files, *self.temporary_files]

    def used_paths(self, location: str) -> Iterator[str]:
        """Yield the paths of what the commit names."""
        adds = self.adds
        yield from adds["path"].to_pylist()
        yield from _vector_files(adds, location)

    def without_labels(self) -> RewrittenBin:
        """Return the bin with new files that belong to no clustering."""
        kept = [name for name in self.new_files.column_names if name not in ("tags", "clustering_provider")]
        return replace(self, new_files=self.new_files.select(kept))

    def with_deletions(self, places: Positions, base: TableState, least_share: float) -> RewrittenBin | None:
        """Return the bin with deletion vectors for rows at some places; None if too small a share of rows would stay.

        Writes the vectors to a new file. Raises StorageError, DeletionVectorError.
        """
        ends = np.cumsum(self.rows)
        number = np.searchsorted(ends, places, side="right")
        first = ends - self.rows
        deletions: dict[int, BitMap64] = {
            file: of_indexes(places[number == file] - first[file])
            for file in np.unique(number).tolist()
            if file not in self.unused
        }
        if not deletions:
            return self
        files = with_all_columns(self.new_files)
        found = delete_rows(base.location, base.storage_options, files, deletions)
        numbers = np.array(sorted(deletions))
        if self._rows_besides(numbers) + found.remaining_rows < least_share * int(self.rows.sum()):
            return None
        return self._with(files, numbers, found, base.location)

    def _with(self, files: pa.Table, numbers: Positions, found: FilesWithDeletions, location: str) -> RewrittenBin:
        removed = np.asarray(found.is_removed)
        changed = found.with_vectors()
        order = np.arange(files.num_rows)
        order[numbers[~removed]] = files.num_rows + np.arange(changed.num_rows)
        return replace(
            self,
            new_files=pa.concat_tables([files, changed.select(files.column_names)]).take(pa.array(order)),
            unused=self.unused.union(numbers[removed].tolist()),
            vector_files=(*self.vector_files, *_vector_files(changed, location)),
        )

    def _rows_besides(self, numbers: Positions) -> int:
        """Return how many rows stay in the new files, except some of them."""
        others = np.setdiff1d(np.arange(len(self.rows)), [*numbers.tolist(), *self.unused])
        deleted = 0
        if "deletion_vector" in self.new_files.column_names:
            vectors = self.new_files["deletion_vector"].take(pa.array(others, pa.int64()))
            deleted = pc.sum(pc.struct_field(vectors, "cardinality")).as_py() or 0
        return int(self.rows[others].sum()) - deleted


def with_all_columns(files: pa.Table) -> pa.Table:
    """Return files with all columns of `actions.columns`."""
    columns = [
        files[f.name].cast(f.type) if f.name in files.column_names else pa.nulls(files.num_rows, f.type)
        for f in FILE_FIELDS
    ]
    return pa.table(columns, schema=pa.schema(FILE_FIELDS))


def _vector_files(files: pa.Table, location: str) -> Sequence[str]:
    """Return the paths in the table of the files that hold the deletion vectors of some files."""
    if "deletion_vector" not in files.column_names:
        return ()
    vectors = [DeletionVectorDescriptor(**one) for one in files["deletion_vector"].to_pylist() if one is not None]
    found = dict.fromkeys(deletion_vector_path(location, vector) for vector in vectors)
    prefix = location.rstrip("/") + "/"
    return [path.removeprefix(prefix) for path in found if path is not None]
