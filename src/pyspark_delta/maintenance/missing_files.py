"""Which files of a version no longer exist: by requests if they are few, otherwise by a listing of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import deletion_vector_path, vector_locations
from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.parallel import map_requests
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.paths import join, resolve_file, to_hadoop
from pyspark_delta.storage.percent import resolve_column

REQUESTS = 1000
"""The most files that are asked for one by one in any case."""

_AT_ONCE = 32
_LOST_FILES = pa.schema(
    {
        "dataFilePath": pa.string(),
        "dataFileMissing": pa.bool_(),
        "deletionVectorPath": pa.string(),
        "deletionVectorFileMissing": pa.bool_(),
    }
)
_LISTED_SHARE = 8  # local files of which one is asked for in the time in which so many are listed


def missing_files(snapshot: Snapshot, files: pa.Table, live: int | None = None) -> pa.Table:
    """Return the files, with columns of `actions.columns`, that do not exist, or whose deletion vector does not.

    `live` is the number of files of the version, counted if it is not given.
    """
    paths = resolve_column(snapshot.location, files["path"])
    vector_files = vector_locations(snapshot.location, files["deletion_vector"].combine_chunks())
    gone = _gone(snapshot, pa.concat_arrays([*paths.chunks, vector_files]).unique(), live)
    if not len(gone):
        return files.slice(0, 0)
    lost = pc.is_in(paths, value_set=gone)
    lost_vectors = set(vector_files.filter(pc.is_in(vector_files, value_set=gone)).to_pylist())
    if lost_vectors:
        lost = pc.or_(lost, _with_vector_in(files, snapshot.location, lost_vectors))
    return files.filter(lost)


def lost_files(snapshot: Snapshot) -> pa.Table:
    """Return the files of a version that do not exist, or whose deletion vector does not, as FSCK REPAIR TABLE does.

    Paths are as Hadoop's.
    """
    lost = missing_files(snapshot, snapshot.files(("path", DELETION_VECTOR.name)))
    at = lost.column_names.index(DELETION_VECTOR.name)
    alone = lost.set_column(at, DELETION_VECTOR, pa.nulls(lost.num_rows, DELETION_VECTOR.type))
    gone = set(missing_files(snapshot, alone)["path"].to_pylist())
    found = []
    for path, vector in zip(lost["path"].to_pylist(), lost[DELETION_VECTOR.name].to_pylist(), strict=True):
        where = vector and deletion_vector_path(snapshot.location, DeletionVectorDescriptor(**vector))
        file, vector_file = to_hadoop(resolve_file(snapshot.location, path)), to_hadoop(where) if where else None
        values = (file, path in gone, vector_file, bool(where) and path not in gone)
        found.append(dict(zip(_LOST_FILES.names, values, strict=True)))
    return pa.Table.from_pylist(found, _LOST_FILES)


def _with_vector_in(files: pa.Table, table_location: str, lost: set[str]) -> pa.Array:
    """Return a mask of the files whose deletion vector is in one of the lost files."""

    def is_lost(vector: dict[str, Any] | None) -> bool:
        return vector is not None and deletion_vector_path(table_location, DeletionVectorDescriptor(**vector)) in lost

    return pa.array([is_lost(vector) for vector in files["deletion_vector"].to_pylist()], pa.bool_())


def _gone(snapshot: Snapshot, locations: pa.Array, live: int | None) -> pa.Array:
    is_local = isinstance(snapshot.store, LocalStore)
    if len(locations) > REQUESTS and not (is_local and len(locations) <= _listed_meanwhile(snapshot, live)):
        inside = pc.starts_with(locations, join(snapshot.location, ""))
        known = _listed(snapshot)
        below = locations.filter(inside)
        listed = pc.is_in(below, value_set=known)
        # Files of other tables, and what an unusual listing hides, are asked for.
        locations = pa.concat_arrays([below.filter(pc.invert(listed)), locations.filter(pc.invert(inside))])

    def is_gone(location: str) -> bool:
        try:
            store_for(location, snapshot.storage_options).status(location)
        except FileNotFoundInStoreError:
            return True
        return False

    asked = locations.to_pylist()
    answers = map_requests(is_gone, asked, 1 if is_local else min(_AT_ONCE, len(asked) or 1))
    return locations.filter(pa.array(list(answers), pa.bool_()))


def _listed_meanwhile(snapshot: Snapshot, live: int | None) -> int:
    """Return the number of local files that can be asked for one by one while all are listed."""
    return (snapshot.num_files() if live is None else live) // _LISTED_SHARE


def _listed(snapshot: Snapshot) -> pa.Array:
    prefix = join(snapshot.location, "")
    tree = snapshot.store.list_tree(snapshot.location, lambda name: name == "_delta_log")
    return pa.concat_arrays(
        [pa.array([], pa.string()), *(pc.binary_join_element_wise(prefix, batch.column("path"), "") for batch in tree)]
    )
