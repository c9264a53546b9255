"""Tombstones for the files of deletion vectors, so that clients without deletion vectors do not vacuum them.

Versions within the retention need these files. Such a client keeps the files that tombstones name by their path, but
does not know those that their deletion vectors name.
"""

from __future__ import annotations

import time
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import PARTITION_VALUES, PATH, SIZE
from pyspark_delta.deletion_vectors import vector_locations
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.properties import DELETED_FILE_RETENTION
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import encode_path, join
from pyspark_delta.storage.percent import resolve_column
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

_UNESCAPED = r"^[A-Za-z0-9_./\-]+$"


def keep_vector_files(snapshot: Snapshot, engine_info: str = "") -> Snapshot:
    """Commit tombstones of the vector files of removed files that have none; return the newest version.

    Nothing is committed if all have one. Files outside of the table are not named. Raises as `commit_draft`.
    """
    paths = unprotected_vector_files(snapshot)
    if not len(paths):
        return snapshot
    columns = [paths, pa.nulls(len(paths), PARTITION_VALUES.type), pa.nulls(len(paths), SIZE.type)]
    draft = CommitDraft(
        operation=Operation("Deletion Vector Tombstones"),
        removes=pa.Table.from_arrays(columns, schema=pa.schema([PATH, PARTITION_VALUES, SIZE])),
        data_change=False,
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return snapshot.update()


def unprotected_vector_files(snapshot: Snapshot) -> pa.Array:
    """Return the paths, as in the log, of vector files that only the vectors of unexpired tombstones name."""
    retention = DELETED_FILE_RETENTION.of(snapshot.properties)
    oldest = int(time.time() * 1000) - retention // timedelta(milliseconds=1)
    vectors: list[pa.Array] = []
    named: list[pa.Array] = []
    for batch in snapshot.read_tombstones(("path", "deletion_timestamp", "deletion_vector")):
        recent = batch.filter(pc.greater(pc.fill_null(batch.column("deletion_timestamp"), 0), oldest))
        with_vector = pc.is_valid(recent.column("deletion_vector"))
        vectors.append(vector_locations(snapshot.location, recent.filter(with_vector).column("deletion_vector")))
        plain = recent.filter(pc.invert(with_vector)).column("path")
        named.append(resolve_column(snapshot.location, plain))
    if not vectors:
        return pa.array([], pa.string())
    found, known = pa.concat_arrays(vectors).unique(), pa.concat_arrays(named)
    prefix = join(snapshot.location, "")
    found = found.filter(pc.and_(pc.starts_with(found, prefix), pc.invert(pc.is_in(found, value_set=known))))
    return _encoded(pc.utf8_slice_codeunits(found, len(prefix)))


def _encoded(paths: pa.Array) -> pa.Array:
    """Return paths below the table as the log writes them; nearly all are written as they are."""
    unusual = pc.invert(pc.match_substring_regex(paths, _UNESCAPED))
    texts = [encode_path(path) for path in paths.filter(unusual).to_pylist()]
    return pc.replace_with_mask(paths, unusual, pa.array(texts, pa.string()))
