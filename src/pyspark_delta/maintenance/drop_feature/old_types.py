"""Files that were written before a column was widened: their Parquet schema has the type before the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from pyspark_delta.data.file_columns import Column, FileSchema, Leaf, List, Map, Struct
from pyspark_delta.data.opened import opened_file
from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.log.request import FileRequest
from pyspark_delta.parallel import map_requests
from pyspark_delta.protocol.feature import any_field_has
from pyspark_delta.schema.arrow import from_arrow
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType
from pyspark_delta.schema.widening import TYPE_CHANGES, is_lossless
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import resolve_file

_THREADS = 16  # footers are small: most of the time is latency of the store


def files_with_old_types(snapshot: Snapshot, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the live files that hold a column with a narrower type than the schema, with `path` and other columns.

    Raises as `have_old_types`.
    """
    if any_field_has(snapshot.configuration, TYPE_CHANGES):
        for batch in snapshot.read_files(FileRequest(columns)):
            yield batch.filter(pa.array(have_old_types(snapshot, batch.column("path").to_pylist()), pa.bool_()))


def have_old_types(snapshot: Snapshot, paths: Sequence[str]) -> list[bool]:
    """Return which live files hold a column with a narrower type than the schema, by their paths in the log.

    Their footers are read, unless no column was ever widened. Raises DataFileError.
    """
    if not any_field_has(snapshot.configuration, TYPE_CHANGES):
        return [False] * len(paths)
    return list(map_requests(_reader(snapshot), paths, _THREADS))


def _reader(snapshot: Snapshot) -> Callable[[str], bool]:
    """Return the function that opens a data file, by its path in the log, and looks for narrower types."""
    configuration = snapshot.configuration
    mode, partitions = mapping_mode(configuration), configuration.partition_columns
    fields = [(field, physical_field(field, mode)) for field in configuration.schema if field.name not in partitions]

    def is_old(path: str) -> bool:
        location = resolve_file(snapshot.location, path)
        with opened_file(location, snapshot.storage_options) as file:
            found = FileSchema(file.schema_arrow, mode, location)
            return any(_is_narrower(found.resolve(logical, physical), logical.type) for logical, physical in fields)

    return is_old


def _is_narrower(column: Column, wanted: DataType) -> bool:
    """True if a column of a file, or something inside it, has a narrower type than the table."""
    match column, wanted:
        case Leaf(source), _:
            try:
                stored = from_arrow(source.type)
            except SchemaMismatchError:  # a type that only files have, such as times with nanoseconds
                return False
            return stored != wanted and is_lossless(stored, wanted)
        case Struct(_, _, members), StructType():
            types = {field.name: field.type for field in wanted}
            return any(_is_narrower(member, types[name]) for name, member in members)
        case List(_, _, element), ArrayType():
            return _is_narrower(element, wanted.element_type)
        case Map(_, _, key, value), MapType():
            return _is_narrower(key, wanted.key_type) or _is_narrower(value, wanted.value_type)
    return False
