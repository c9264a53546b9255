"""Repairs of what the log says of single files: statistics, sizes, deletion vectors, tags of clustered files.

The files are those that findings name, by their paths in the log. Each repair returns the files that it has repaired;
it leaves those that cannot be read, and those that are live twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import CLUSTERING_PROVIDER, DELETION_VECTOR, FILE_FIELDS, TAGS, TOMBSTONE_FIELDS
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.data.column_statistics import with_column_statistics
from pyspark_delta.data.opened import check_chunks, opened_file, rows_in_file
from pyspark_delta.deletion_vectors import each_vector_location, read_deletion_vector
from pyspark_delta.errors import DeletionVectorError, DeltaError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.features.support import check_removable, check_writable
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.cubes import wrong_cubes
from pyspark_delta.maintenance.recommitting import commit_again
from pyspark_delta.maintenance.statistics import check_allowed, measured_columns
from pyspark_delta.parallel import map_requests
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, ReadSet
from pyspark_delta.schema.types import LONG
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

_FILE = tuple(field.name for field in FILE_FIELDS)
_SCHEMA = pa.schema(FILE_FIELDS)
_REMOVED = [field.name for field in TOMBSTONE_FIELDS if field.name in _FILE]
_NUM_RECORDS = Column(("numRecords",), LONG)
_CUBE = "ZCUBE_"  # how the names of its tags begin
_THREADS = 8

Repaired = frozenset[str]


# --------------------------------------------------------------------------------------------------------- statistics
def compute_statistics(snapshot: Snapshot, paths: Collection[str], engine_info: str) -> Repaired:
    """Replace the statistics of files by new ones, as COMPUTE STATS measures them (C404 to C412)."""
    check_allowed(snapshot)
    columns = measured_columns(snapshot)
    files = _named(snapshot, _in(paths))
    files = files.set_column(_FILE.index("stats"), "stats", pa.nulls(files.num_rows, pa.string()))

    def measured(at: int) -> pa.Table | None:
        try:
            return with_column_statistics(
                files.slice(at, 1), snapshot.location, snapshot.configuration, columns, snapshot.storage_options
            )
        except DeltaError:
            return None  # which other findings say

    found = [one for one in map_requests(measured, range(files.num_rows), _THREADS) if one is not None]
    if not found:
        return frozenset()
    draft = CommitDraft(
        operation=Operation("COMPUTE STATS", {"predicate": "[]"}),
        isolation=IsolationLevel.SNAPSHOT,
        engine_info=engine_info,
    )
    return _again(snapshot, pa.concat_tables(found), draft)


# -------------------------------------------------------------------------------------------------------------- sizes
def trust_sizes(snapshot: Snapshot, paths: Collection[str], engine_info: str) -> Repaired:
    """Take the sizes of files into the log, where their footers can be read and have the rows that the log says (C140).

    Files whose statistics lack the number of records need only a footer.
    """
    check_writable(snapshot.configuration, snapshot.location)
    files = _named(snapshot, _in(paths))
    known = zip(files["path"].to_pylist(), _records(files), strict=True)

    def size(file: tuple[str, int | None]) -> int | None:
        location = resolve_file(snapshot.location, file[0])
        try:
            with opened_file(location, snapshot.storage_options) as parquet:
                check_chunks(parquet, location, range(parquet.metadata.num_columns))
                rows = parquet.metadata.num_rows
            found = store_for(location, snapshot.storage_options).status(location).size
            return found if file[1] in (None, rows) else None
        except DeltaError:
            return None

    sizes = pa.array(list(map_requests(size, known, _THREADS)), pa.int64())
    changed = files.set_column(_FILE.index("size"), "size", sizes)
    return _correct(snapshot, changed.filter(sizes.is_valid()), "file-sizes", engine_info)


# ------------------------------------------------------------------------------------------------------------ vectors
def correct_cardinalities(snapshot: Snapshot, paths: Collection[str], engine_info: str) -> Repaired:
    """Write how many rows deletion vectors have (C280). The key of a file has no cardinality, so none is removed.

    Vectors that name rows beyond their file stay: they may belong to another one.
    """
    check_writable(snapshot.configuration, snapshot.location)
    files = _named(snapshot, _in(paths))
    found = []
    for path, vector in zip(files["path"].to_pylist(), files["deletion_vector"].to_pylist(), strict=True):
        number = None if vector is None else _cardinality(snapshot, path, DeletionVectorDescriptor(**vector))
        found.append(None if number is None else {**vector, "cardinality": number})
    vectors = pa.array(found, DELETION_VECTOR.type)
    changed = files.set_column(_FILE.index("deletion_vector"), DELETION_VECTOR, vectors)
    return _correct(snapshot, changed.filter(vectors.is_valid()), "vector-cardinality", engine_info)


def _cardinality(snapshot: Snapshot, path: str, vector: DeletionVectorDescriptor) -> int | None:
    """Return the number of rows of a vector whose descriptor has another one; None if it cannot be corrected."""
    try:
        _read(snapshot, vector)
    except DeletionVectorError as error:
        number: int | None = error.facts.get("cardinality")
        if number is None:
            return None
        try:
            rows = rows_in_file(resolve_file(snapshot.location, path), snapshot.storage_options)
            bitmap = _read(snapshot, replace(vector, cardinality=number))
        except DeltaError:
            return None
        return number if not bitmap or bitmap.max() < rows else None
    except DeltaError:
        return None
    return None


def _read(snapshot: Snapshot, vector: DeletionVectorDescriptor) -> Any:
    return read_deletion_vector(
        lambda location: store_for(location, snapshot.storage_options), snapshot.location, vector
    )


def drop_vectors(snapshot: Snapshot, named: Collection[str], engine_info: str) -> Repaired:
    """Take deletion vectors that cannot be read from their files: the rows that they deleted come back.

    `named` are paths of data files, or locations of files of vectors. Vectors that can be read now stay.
    """
    check_writable(snapshot.configuration, snapshot.location)
    check_removable(snapshot.configuration, "REPAIR")
    wanted = _in(named)

    def chosen(batch: pa.RecordBatch) -> pa.Array:
        vectors = batch.column("deletion_vector")
        found = wanted(batch)
        try:
            places = each_vector_location(snapshot.location, vectors)
        except DeltaError:
            places = pa.nulls(len(vectors), pa.string())  # those with a valid descriptor are found without this one
        found = pc.or_(found, pc.is_in(places, value_set=pa.array(list(named), pa.string())))
        return pc.and_(found, vectors.is_valid())

    files = _named(snapshot, chosen)
    vectors = files["deletion_vector"].to_pylist()
    broken = [_is_unreadable(snapshot, DeletionVectorDescriptor(**vector)) for vector in vectors]
    files = files.filter(pa.array(broken, pa.bool_()))
    if not files.num_rows:
        return frozenset()
    places = _places_of(snapshot, files)
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": "drop-vector"}),
        adds=files.set_column(
            _FILE.index("deletion_vector"), DELETION_VECTOR, pa.nulls(files.num_rows, DELETION_VECTOR.type)
        ),
        removes=files.select(_REMOVED),
        reads=ReadSet(paths=frozenset(files["path"].to_pylist())),
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return frozenset(files["path"].to_pylist()) | places


def _places_of(snapshot: Snapshot, files: pa.Table) -> Repaired:
    """Return the locations of the files of vectors, as far as their descriptors are valid."""
    found: set[str] = set()
    for at in range(files.num_rows):
        try:
            found.update(
                each_vector_location(snapshot.location, files["deletion_vector"].slice(at, 1).combine_chunks())
                .drop_null()
                .to_pylist()
            )
        except DeltaError:
            continue
    return frozenset(found)


def _is_unreadable(snapshot: Snapshot, vector: DeletionVectorDescriptor) -> bool:
    """True for a damaged or missing vector; a wrong cardinality can be corrected, and a store may answer later."""
    try:
        _read(snapshot, vector)
    except DeletionVectorError as error:
        return "cardinality" not in error.facts
    except DeltaError:
        return False
    return False


# --------------------------------------------------------------------------------------------------------------- tags
def clear_cubes(snapshot: Snapshot, engine_info: str) -> bool:
    """Take wrong tags of cubes, and the provider of their clustering, from files (C352)."""
    check_writable(snapshot.configuration, snapshot.location)
    names = snapshot.schema.names

    def chosen(batch: pa.RecordBatch) -> pa.Array:
        found = wrong_cubes(batch.column("tags"), batch.column("clustering_provider"), names)
        return reduce(pc.or_, (mask for _, mask in found))

    files = _named(snapshot, chosen)
    if not files.num_rows:
        return False
    kept = [[tag for tag in tags or () if not tag[0].startswith(_CUBE)] for tags in files["tags"].to_pylist()]
    cleared = files.set_column(_FILE.index("tags"), TAGS, pa.array([tags or None for tags in kept], TAGS.type))
    cleared = cleared.set_column(
        _FILE.index("clustering_provider"), CLUSTERING_PROVIDER, pa.nulls(files.num_rows, pa.string())
    )
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": "cube-tags"}),
        isolation=IsolationLevel.SNAPSHOT,
        engine_info=engine_info,
    )
    return bool(_again(snapshot, cleared, draft))


# ------------------------------------------------------------------------------------------------------------- common
def _in(paths: Collection[str]) -> Callable[[pa.RecordBatch], pa.Array]:
    wanted = pa.array(list(paths), pa.string())
    return lambda batch: pc.is_in(batch.column("path"), value_set=wanted)


def _named(snapshot: Snapshot, chosen: Callable[[pa.RecordBatch], pa.Array]) -> pa.Table:
    """Return the files that `chosen` marks, with all fields; a path that is live twice is a finding of its own."""
    batches = (batch.filter(chosen(batch)) for batch in snapshot.read_files(FileRequest(_FILE)))
    files = pa.Table.from_batches([batch.cast(_SCHEMA) for batch in batches if len(batch)], _SCHEMA)
    counts = pc.value_counts(files["path"].combine_chunks())
    single = counts.field("values").filter(pc.equal(counts.field("counts"), 1))
    return files.filter(pc.is_in(files["path"], value_set=single))


def _records(files: pa.Table) -> list[int | None]:
    records: list[int | None] = parse_stats(files["stats"].combine_chunks(), [_NUM_RECORDS]).column(0).to_pylist()
    return records


def _again(snapshot: Snapshot, files: pa.Table, draft: CommitDraft) -> Repaired:
    commit_again(snapshot, files, lambda part: part, draft)
    return frozenset(files["path"].to_pylist())


def _correct(snapshot: Snapshot, files: pa.Table, repair: str, engine_info: str) -> Repaired:
    """Commit files again whose sizes or cardinalities change, which the totals of a version checksum count.

    Without paths that were read, the checksum of the version is not computed from the one before; a removal of one of
    the files meanwhile is a conflict anyway, because the commit adds it.
    """
    if not files.num_rows:
        return frozenset()
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": repair}),
        adds=files,
        data_change=False,
        reads=ReadSet(whole_table=True),
        isolation=IsolationLevel.SNAPSHOT,
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return frozenset(files["path"].to_pylist())
