"""The files of a clone, in the columns of `actions.columns`: by reference to the source, or as copies below the clone.

A copy keeps the path of its file. The copy of a file outside of the source's directory, such as one of a clone, lies
in a directory that is named by a hash of the file's own directory; so a later run finds the same names.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION, FILE_FIELDS
from pyspark_delta.data.record_counts import with_record_counts
from pyspark_delta.deletion_vectors import each_vector_location, with_absolute_paths, z85
from pyspark_delta.log.request import FileRequest
from pyspark_delta.parallel import map_ordered
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import encode_path, join, to_absolute_path
from pyspark_delta.storage.percent import absolute_path_column, is_absolute, resolve_column

COPIES = pa.schema(
    [pa.field("source", pa.string()), pa.field("target", pa.string()), pa.field("size", pa.int64())],
)
"""Files to copy: the locations of a file and of its copy, and the size in bytes; null if the log does not have it."""

_NAMES = tuple(field.name for field in FILE_FIELDS)
_VECTOR_NAME = re.compile(r"deletion_vector_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.bin")


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    """The files that a deep clone adds, and the copies that make them; `copies` has the columns of `COPIES`."""

    files: pa.Table
    copies: pa.Table


def source_files(source: Snapshot, *, counted: bool) -> pa.Table:
    """Return the live files of the source; with `counted`, each has its number of records, from its footer if needed.

    Raises CorruptLogError, and DataFileError for a file that must be opened and cannot be.
    """
    files = pa.Table.from_batches(
        [batch.cast(pa.schema(FILE_FIELDS)) for batch in source.read_files(FileRequest(_NAMES))], pa.schema(FILE_FIELDS)
    )
    return with_record_counts(files, source.location, source.storage_options) if counted else files


def referenced_files(source: Snapshot, files: pa.Table) -> pa.Table:
    """Return the files as a shallow clone names them: by absolute paths, without row ids and commit versions."""

    def paths(path: pa.Array) -> pa.Array:
        return absolute_path_column(resolve_column(source.location, path))

    def vectors(vector: pa.StructArray) -> pa.StructArray:
        return vector if vector.null_count == len(vector) else with_absolute_paths(source.location, vector)

    files = _mapped(_mapped(files, "path", paths), "deletion_vector", vectors)
    return _without(files, BASE_ROW_ID.name, DEFAULT_ROW_COMMIT_VERSION.name)


def copied_files(source: Snapshot, files: pa.Table, target_location: str) -> CopiedFiles:
    """Return the files as a deep clone names them, and the copies to make. Commit versions are those of the clone."""

    def paths(path: pa.Array) -> pa.Array:
        return _inside(path, source.location)

    def vectors(vector: pa.StructArray) -> pa.StructArray:
        return _vectors_inside(vector, source.location, target_location)

    named = _mapped(_mapped(files, "path", paths), "deletion_vector", vectors)
    data = pa.table(
        [
            resolve_column(source.location, files["path"]),
            resolve_column(target_location, named["path"]),
            files["size"],
        ],
        schema=COPIES,
    )
    stored = _vector_copies(files, named, source.location, target_location)
    return CopiedFiles(_without(named, DEFAULT_ROW_COMMIT_VERSION.name), pa.concat_tables([data, stored]))


# ------------------------------------------------------------------------------------------------------ paths
def _inside(paths: pa.Array, source_location: str) -> pa.Array:
    """Return the paths below the clone; those below the source keep their text."""
    outside = is_absolute(paths)
    if not pc.any(outside).as_py():
        return paths
    coded = resolve_column(source_location, paths.filter(outside)).dictionary_encode()
    texts = [encode_path(_below(location, source_location)) for location in coded.dictionary.to_pylist()]
    return pc.replace_with_mask(paths, outside, pa.array(texts, pa.string()).take(coded.indices))


def _below(location: str, source_location: str) -> str:
    """Return the path below the clone of a file with an absolute path."""
    prefix = join(source_location, "")
    if location.startswith(prefix):
        return location[len(prefix) :]
    directory, _, name = location.rpartition("/")
    return f"{hashlib.sha256(directory.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}/{name}"


def _vectors_inside(vectors: pa.StructArray, source_location: str, target_location: str) -> pa.StructArray:
    """Return the deletion vectors with files below the clone; those with relative paths keep their text."""
    kinds, texts, *others = vectors.flatten()
    absolute = pc.fill_null(pc.equal(kinds, "p"), False)
    if not pc.any(absolute).as_py():
        return vectors
    coded = each_vector_location(source_location, vectors).filter(absolute).dictionary_encode()
    moved = [_vector_inside(location, source_location, target_location) for location in coded.dictionary.to_pylist()]
    new_kinds, new_texts = (pa.array([one[at] for one in moved], pa.string()).take(coded.indices) for at in (0, 1))
    kinds, texts = (
        pc.replace_with_mask(column, absolute, values) for column, values in ((kinds, new_kinds), (texts, new_texts))
    )
    return pa.StructArray.from_arrays([kinds, texts, *others], fields=list(vectors.type), mask=vectors.is_null())


def _vector_inside(location: str, source_location: str, target_location: str) -> tuple[str, str]:
    """Return the storage type and the path of the copy of a file of vectors; relative if its name allows it."""
    directory, _, name = _below(location, source_location).rpartition("/")
    match = _VECTOR_NAME.fullmatch(name)
    if match is None:
        return "p", to_absolute_path(join(target_location, *filter(None, (directory, name))))
    return "u", directory + z85.encode(uuid.UUID(match[1]).bytes)


def _vector_copies(files: pa.Table, named: pa.Table, source_location: str, target_location: str) -> pa.Table:
    """Return the copies of the files that hold deletion vectors, each once."""
    pairs = [COPIES.empty_table().select(["source", "target"])]
    for before, after in zip(files["deletion_vector"].chunks, named["deletion_vector"].chunks, strict=True):
        if before.null_count < len(before):
            places = [each_vector_location(source_location, before), each_vector_location(target_location, after)]
            pairs.append(pa.table(places, names=["source", "target"]).drop_null())
    distinct = pa.concat_tables(pairs).group_by(["source", "target"]).aggregate([])
    return distinct.append_column(COPIES.field("size"), pa.nulls(distinct.num_rows, pa.int64()))


# ---------------------------------------------------------------------------------------------------- columns
def _mapped(files: pa.Table, name: str, function: Callable[[Any], pa.Array]) -> pa.Table:
    chunks = list(map_ordered(function, files[name].chunks))
    field = files.schema.field(name)
    return files.set_column(files.column_names.index(name), field, pa.chunked_array(chunks, field.type))


def _without(files: pa.Table, *names: str) -> pa.Table:
    for name in names:
        field = files.schema.field(name)
        nulls = pa.nulls(files.num_rows, field.type)
        files = files.set_column(files.column_names.index(name), field, nulls)
    return files
