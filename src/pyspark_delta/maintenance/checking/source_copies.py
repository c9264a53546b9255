"""Copies of files that a deep clone has lost: its source has them under the same names (F01)."""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.data.column_statistics import with_column_statistics
from pyspark_delta.errors import DeltaError
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.typed_statistics import differing_rows
from pyspark_delta.maintenance.clone.copying import Copier
from pyspark_delta.maintenance.clone.files import COPIES
from pyspark_delta.maintenance.missing_files import missing_files
from pyspark_delta.maintenance.statistics import measured_columns
from pyspark_delta.protocol.configuration import CLONE_OF
from pyspark_delta.scan.statistics import statistics_leaves
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.observe import select
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

_NAMES = tuple(field.name for field in FILE_FIELDS)


class SourceCopies:
    """Finds files of a clone in its source; a table that is no clone has none."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        try:
            named = orjson.loads(snapshot.properties.get(CLONE_OF, "null"))
        except orjson.JSONDecodeError:
            named = None
        found = named.get("path") if isinstance(named, dict) else None
        self._source = found if isinstance(found, str) and found != snapshot.location else None

    def place(self, path: str, size: int | None) -> str | None:
        """Return the location of the file of the same name and size in the source; None without one."""
        if self._source is None:
            return None
        try:
            location = resolve_file(self._source, path)
            found = store_for(location, self._snapshot.storage_options).status(location).size
        except DeltaError:
            return None
        return location if found == size else None

    def restore(self, lost: pa.Table) -> bool:
        """Copy back the files that the source has, with the size and the statistics of the log; True if there are any.

        `lost` are files that do not exist. Raises StorageError.
        """
        if self._source is None:
            return False
        names = pa.array(lost["path"].to_pylist(), pa.string())
        batches = (b.filter(pc.is_in(b.column("path"), value_set=names)) for b in self._files())
        files = pa.Table.from_batches([b for b in batches if len(b)], pa.schema(FILE_FIELDS))
        copies = []
        for at, (path, size) in enumerate(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)):
            place = self.place(path, size)
            target = resolve_file(self._snapshot.location, path)
            if place is not None and place != target and self._agrees(files.slice(at, 1), place):
                copies.append({"source": place, "target": target, "size": size})
        options = self._snapshot.storage_options
        Copier(options, options).run(pa.Table.from_pylist(copies, COPIES))
        return bool(copies)

    def _files(self) -> list[pa.RecordBatch]:
        return [batch.cast(pa.schema(FILE_FIELDS)) for batch in self._snapshot.read_files(FileRequest(_NAMES))]

    def _agrees(self, file: pa.Table, place: str) -> bool:
        """True if a copy has the statistics that the log has of the file, and these count its records."""
        snapshot, position = self._snapshot, _NAMES.index("stats")
        moved = file.set_column(_NAMES.index("path"), "path", pa.array([place], pa.string()))
        moved = moved.set_column(position, "stats", pa.nulls(1, pa.string()))
        try:
            measured = with_column_statistics(
                moved, snapshot.location, snapshot.configuration, measured_columns(snapshot), snapshot.storage_options
            )
        except DeltaError:
            return False
        leaves = [leaf.physical for leaf in statistics_leaves(snapshot.configuration)]
        ours = parse_stats(file["stats"].combine_chunks(), leaves)
        theirs = parse_stats(measured["stats"].combine_chunks(), leaves)
        compared = [leaf.path for leaf in leaves if leaf.path != ("tightBounds",)]
        counted = select(ours, ("numRecords",)).null_count == 0
        return counted and not any(np.any(differing_rows(select(ours, p), select(theirs, p))) for p in compared)


def restore_from_source(snapshot: Snapshot, lost: pa.Table) -> tuple[pa.Table, bool]:
    """Copy back lost files from the source of a clone; return those that are still lost, and if any was copied."""
    restored = SourceCopies(snapshot).restore(lost)
    return (missing_files(snapshot, lost) if restored else lost), restored
