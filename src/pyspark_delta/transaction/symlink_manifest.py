"""Symlink manifests: text files that list the data files of each partition, for engines that do not read the log.

A manifest is `_symlink_format_manifest/[column=value/]manifest`, with one absolute path per line. Each file is replaced
as a whole, but a reader may see some partitions before others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.partition_paths import partition_directory
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.request import FileRequest
from pyspark_delta.parallel import map_requests
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import join, to_hadoop
from pyspark_delta.storage.percent import resolve_column

DIRECTORY = "_symlink_format_manifest"
_AT_ONCE = 16  # requests
_MANIFEST = "manifest"


def check_manifest(snapshot: Snapshot) -> None:
    """Check that the data files of a version are its rows, as engines without Delta read them.

    Raises InvalidOperationError for a table with column mapping or with deletion vectors.
    """
    if is_active(snapshot.configuration, Feature.COLUMN_MAPPING):
        raise InvalidOperationError(
            f"A manifest of '{snapshot.location}' would be read with wrong column names, because the table maps its "
            "columns to other names in the data files. Write its rows to a table without column mapping.",
            error_class="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        )
    for batch in snapshot.read_files(FileRequest(("path", "deletion_vector"))):
        vectors = batch.column("deletion_vector")
        if vectors.null_count < len(vectors):
            raise InvalidOperationError(
                f"A manifest of '{snapshot.location}' would bring deleted rows back, because the table marks them with "
                "deletion vectors. Rewrite the files without deleted rows, and turn delta.enableDeletionVectors off.",
                error_class="DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
            )


def manifests(snapshot: Snapshot) -> dict[str, pa.Array]:
    """Return the locations of the files of each manifest, by the manifest's path below the table."""
    files = snapshot.files(("path", "partition_values"))
    locations = pa.array([], pa.string())
    if files.num_rows:
        locations = pa.concat_arrays(resolve_column(snapshot.location, files["path"]).chunks)
    names = snapshot.partition_names
    if not names:
        return {join(DIRECTORY, _MANIFEST): locations}
    directories = partition_directories(files, names)
    groups = pa.table([directories, locations], names=["directory", "location"]).group_by("directory")
    return {
        join(DIRECTORY, directory, _MANIFEST): pa.array(found, pa.string())
        for directory, found in _rows(groups.aggregate([("location", "list")]).select(["directory", "location_list"]))
    }


def partition_directories(files: pa.Table, names: Iterable[str]) -> pa.Array:
    """Return the directory of the partition of each file, decoded, from the values in the log."""
    values = files["partition_values"].combine_chunks()
    texts = [pc.map_lookup(values, name, "first") for name in names]
    keys = pa.table(texts, names=[str(number) for number in range(len(texts))])
    distinct = keys.group_by(keys.column_names).aggregate([])
    directories = [
        partition_directory(zip(names, row, strict=True))
        for row in zip(*(column.to_pylist() for column in distinct.columns), strict=True)
    ]
    encoded, known = (_joined(table) for table in (keys, distinct))
    return pa.array(directories, pa.string()).take(pc.index_in(encoded, value_set=known))


def write_manifests(snapshot: Snapshot, wanted: dict[str, pa.Array]) -> None:
    """Create or replace manifests. Raises StorageError."""

    def write(manifest: tuple[str, pa.Array]) -> None:
        path, locations = manifest
        text = "".join(f"{to_hadoop(location)}\n" for location in locations.to_pylist())
        snapshot.store.write(join(snapshot.location, path), text.encode())

    for _ in map_requests(write, wanted.items(), min(_AT_ONCE, len(wanted) or 1)):
        pass


def refresh_manifests(snapshot: Snapshot, changed: Iterable[pa.Table]) -> None:
    """Write the manifests of the partitions of changed files again; delete those of partitions without files.

    Raises as `check_manifest`, and StorageError.
    """
    check_manifest(snapshot)
    current, names = manifests(snapshot), snapshot.partition_names
    touched = {join(DIRECTORY, _MANIFEST)} if not names else set[str]()
    for files in changed if names else ():
        if files.num_rows:
            directories = partition_directories(files, names).unique().to_pylist()
            touched |= {join(DIRECTORY, directory, _MANIFEST) for directory in directories}
    write_manifests(snapshot, {path: files for path, files in current.items() if path in touched})
    snapshot.store.delete(join(snapshot.location, path) for path in sorted(touched - current.keys()))


def _joined(values: pa.Table) -> pa.Array:
    """Return the values of each row as one text, in which null differs from every text."""
    columns = [pc.fill_null(pc.binary_join_element_wise("+", column, ""), "-") for column in values.columns]
    joined = pc.binary_join_element_wise(*columns, "\0")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _rows(table: pa.Table) -> Iterator[tuple[str, list[str]]]:
    for batch in table.to_batches(max_chunksize=64):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
