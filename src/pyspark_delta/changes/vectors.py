"""Files whose deletion vector is all that a commit changed (C173). Rows that are only in the new vector were deleted;
rows that are only in the old vector were restored. Each set is passed to the reader as a vector that selects rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.actions.columns import DELETION_VECTOR, SELECTS_ROWS
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.changes.feed_columns import CHANGE_TYPE, DELETE, INSERT
from pyspark_delta.deletion_vectors import encode_inline, read_deletion_vectors
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for

_Vector = dict[str, Any]


def vector_changes(before: pa.Table, after: pa.Table, latest: Snapshot) -> pa.Table:
    """Return the changed rows of files: row i of `before` is the remove, and row i of `after` the add, of one file.

    The result has the columns of `after`, "selects_rows" and "_change_type". Raises DeletionVectorError.
    """
    olds, news = before[DELETION_VECTOR.name].to_pylist(), after[DELETION_VECTOR.name].to_pylist()
    bitmaps = _read(olds, news, after["path"].to_pylist(), latest)
    rows: list[int] = []
    kinds: list[str] = []
    vectors: list[_Vector] = []
    for row, (old, new) in enumerate(zip(olds, news, strict=True)):
        for kind, vector in _differences(old, new, bitmaps.get(row)):
            rows.append(row)
            kinds.append(kind)
            vectors.append(vector)
    found = after.take(pa.array(rows, pa.int64()))
    position = found.column_names.index(DELETION_VECTOR.name)
    found = found.set_column(position, DELETION_VECTOR, pa.array(vectors, DELETION_VECTOR.type))
    found = found.append_column(SELECTS_ROWS, pa.repeat(True, len(rows)) if rows else pa.array([], pa.bool_()))
    return found.append_column(pa.field(CHANGE_TYPE.name, pa.string()), pa.array(kinds, pa.string()))


def _differences(
    old: _Vector | None, new: _Vector | None, bitmaps: tuple[BitMap64, BitMap64] | None
) -> Iterator[tuple[str, _Vector]]:
    if bitmaps is not None:
        marked_before, marked_now = bitmaps
        for kind, rows in ((DELETE, marked_now - marked_before), (INSERT, marked_before - marked_now)):
            if rows:
                yield kind, _wire(encode_inline(rows))
    elif old is None and new is not None:
        yield DELETE, new
    elif new is None and old is not None:
        yield INSERT, old


def _read(
    olds: list[_Vector | None], news: list[_Vector | None], paths: list[str], latest: Snapshot
) -> dict[int, tuple[BitMap64, BitMap64]]:
    """Return the bitmaps, by row, of files with two different vectors; adjacent ones are read together."""
    pairs = {
        row: (old, new)
        for row, (old, new) in enumerate(zip(olds, news, strict=True))
        if old is not None and new is not None and old != new
    }
    described = {row: tuple(DeletionVectorDescriptor(**vector) for vector in pair) for row, pair in pairs.items()}
    # The new vector of one commit is the old vector of the next.
    wanted = {descriptor: paths[row] for row, pair in described.items() for descriptor in pair}
    bitmaps = read_deletion_vectors(
        lambda location: store_for(location, latest.storage_options),
        latest.location,
        list(wanted),
        data_files=list(wanted.values()),
    )
    found = dict(zip(wanted, bitmaps, strict=True))
    return {row: (found[old], found[new]) for row, (old, new) in described.items()}


def _wire(descriptor: DeletionVectorDescriptor) -> _Vector:
    return {f.name: getattr(descriptor, f.name) for f in DELETION_VECTOR.type}


def paired(adds: pa.Table, removes: pa.Table, key: str) -> tuple[pa.Array, pa.Array]:
    """Return the matching rows of `adds` and `removes` by the column `key`, in the same order."""
    at = pc.index_in(adds[key], value_set=removes[key])
    if isinstance(at, pa.ChunkedArray):
        at = at.combine_chunks()
    together = pc.indices_nonzero(at.is_valid())
    return together, at.take(together)
