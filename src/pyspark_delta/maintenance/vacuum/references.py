"""The files of a table that some version needs, as hashes: eight bytes for each file, whatever the length of its path.

Paths are compared below the table, decoded. Two paths with one hash only keep a file that could go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.deletion_vectors import vector_locations
from pyspark_delta.log.request import FileRequest
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.path_hashes import Hashes, text_hashes
from pyspark_delta.storage.paths import LOCAL_SCHEME, join, split
from pyspark_delta.storage.percent import paths_below_table, resolve_column


@dataclass(frozen=True)
class References:
    """A set of paths below a table."""

    hashes: Hashes

    @classmethod
    def of(cls, paths: Iterable[pa.Array]) -> References:
        """Return the set of some arrays of paths."""
        hashes = np.concatenate([np.empty(0, np.int64), *map(text_hashes, paths)])
        hashes.sort()
        return cls(hashes)

    def hold(self, paths: pa.Array) -> np.ndarray:
        """Return a mask of the paths that are in the set."""
        if not len(self.hashes):
            return np.zeros(len(paths), np.bool_)
        wanted = text_hashes(paths)
        order = np.argsort(wanted)  # searching in order stays in the caches of the processor
        ordered = wanted[order]
        at = np.minimum(np.searchsorted(self.hashes, ordered), len(self.hashes) - 1)
        found = np.empty(len(wanted), np.bool_)
        found[order] = self.hashes[at] == ordered
        return found


def live_paths(snapshot: Snapshot, table_location: str | None = None) -> Iterator[pa.Array]:
    """Yield the paths below a table, by default the snapshot's own, of its live files and their deletion vectors."""
    for batch in snapshot.read_files(FileRequest(("path", "deletion_vector"))):
        yield from paths_below(batch, snapshot.location, table_location or snapshot.location)


def tombstone_paths(
    snapshot: Snapshot, removed_since: int | None = None, table_location: str | None = None
) -> Iterator[pa.Array]:
    """Yield the paths below a table of files that were removed at a time, in ms since the epoch, or later (C217).

    Tombstones without a time count as removed at 0 (C154).
    """
    files = snapshot.tombstones(("path", "deletion_timestamp", "deletion_vector"))
    if removed_since is not None:
        files = files.filter(pc.greater_equal(pc.fill_null(files["deletion_timestamp"], 0), removed_since))
    for batch in files.to_batches():
        yield from paths_below(batch, snapshot.location, table_location or snapshot.location)


def paths_below(files: pa.RecordBatch, log_location: str, table_location: str) -> Iterator[pa.Array]:
    """Yield the paths of files and of their deletion vectors that lie below a table.

    `log_location` is the table whose log names the files.
    """
    paths = files.column("path")
    usual = paths_below_table(paths) if log_location == table_location else None
    yield below(resolve_column(log_location, paths), table_location) if usual is None else usual
    if "deletion_vector" in files.schema.names:
        yield below(vector_locations(log_location, files.column("deletion_vector")), table_location)


def below(locations: pa.Array, table_location: str) -> pa.Array:
    """Return the paths below a table of the locations that lie there; local links are followed."""
    prefix = join(table_location, "")
    inside = pc.starts_with(locations, prefix)
    found = pc.utf8_slice_codeunits(locations.filter(inside), len(prefix))
    others = locations.filter(pc.invert(inside))
    if not len(others) or split(table_location)[0] != LOCAL_SCHEME:
        return found
    return pa.concat_arrays([found, _through_links(others, table_location)])


def _through_links(locations: pa.Array, table_location: str) -> pa.Array:
    """Return the paths below a local table of locations that reach it by another path."""
    real = os.path.realpath(table_location).rstrip("/") + "/"
    directories: dict[str, str] = {}
    found = []
    for location in locations.to_pylist():  # of absolute paths only, as in clones
        directory, _, name = location.rpartition("/")
        if directory not in directories:
            directories[directory] = os.path.realpath(directory) + "/"
        if (path := directories[directory] + name).startswith(real):
            found.append(path[len(real) :])
    return pa.array(found, pa.string())
