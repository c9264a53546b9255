"""Checkpoints: classic, multi-part, and V2 with a Parquet or JSON top level and sidecars (C020-C079).

The kind of a file follows from its content, not from its name (C039): sidecar rows make a second level in any file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.decode import Fields, decode_sidecar
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.commits import CommitText, read_commit
from pyspark_delta.log.listing import Checkpoint, log_location
from pyspark_delta.log.loaded_files import LoadedFiles
from pyspark_delta.log.names import SIDECAR_DIRECTORY, UuidCheckpointName
from pyspark_delta.log.parquet_part import ParquetPart, json_value
from pyspark_delta.parallel import map_requests
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import decode, file_name, join

_PARALLEL_OPENS = 16
_REQUIRED_LEAF = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
    "checkpointMetadata": "version",
}
_ONCE = frozenset({"protocol", "metaData", "checkpointMetadata"})  # a checkpoint has one action of each kind


class CheckpointReader:
    """The content of one complete checkpoint. Files are opened on first use."""

    def __init__(self, store: ObjectStore, table_location: str, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._store = store
        self._table_location = table_location
        self.loaded = LoadedFiles(self.parts)

    @cached_property
    def text(self) -> CommitText | None:
        """The text of a JSON top level; None for Parquet."""
        name = self.checkpoint.name
        if isinstance(name, UuidCheckpointName) and name.format == "json":
            return read_commit(self._store, self.checkpoint.files[0], name.version)
        return None

    @cached_property
    def top_level(self) -> tuple[ParquetPart, ...]:
        """The Parquet files of the top level."""
        if self.text is not None:
            return ()
        return tuple(ParquetPart(self._store, file) for file in self.checkpoint.files)

    @cached_property
    def sidecars(self) -> tuple[ParquetPart, ...]:
        """The sidecars, by the rows that name them."""
        files = [self._sidecar_file(fields) for fields in self.actions("sidecar")]
        return tuple(ParquetPart(self._store, file) for file in files)

    def actions(self, name: str) -> list[Fields]:
        """Return the actions of one kind that is not a file action, ready for the decoders of `actions.decode`."""
        return self.actions_of(name)[name]

    def actions_of(self, *names: str) -> dict[str, list[Fields]]:
        """Like `actions` for several kinds, which are read together."""
        if self.text is not None:
            return {name: self.text.fields(name) for name in names}
        found: dict[str, list[Fields]] = {name: [] for name in names}
        for part in self.top_level:
            for name, fields in _rows(part, names):
                found[name].append(fields)
            if all(found[name] and name in _ONCE for name in names):
                break
        return found

    def parts(self) -> Sequence[ParquetPart]:
        """Return the Parquet files that may hold file actions."""
        return (*self.top_level, *self.sidecars)

    @cached_property
    def has_typed_statistics(self) -> bool:
        """True if statistics of files are stored as columns; their text may then be absent."""
        return any(part.leaves_below("add.stats_parsed") for part in self.parts())

    def open(self) -> None:
        """Read all footers, of object stores several at a time. Raises CorruptLogError.

        Also raises it if a file is missing whose footer was read before: log cleanup of another process may delete it.
        """
        parts = self.parts()
        at_once = 1 if self._table_location.startswith("/") else min(_PARALLEL_OPENS, len(parts))
        for _ in map_requests(ParquetPart.open_again, parts, at_once):
            pass

    def _sidecar_file(self, fields: Fields) -> FileStatus:
        sidecar = decode_sidecar(fields)
        name = file_name(decode(sidecar.path))
        if not name or name in (".", ".."):
            raise fields.error(f"the sidecar path {sidecar.path!r} is not a valid file path")
        # Sidecars are in the table's own directory, for any path (C072).
        location = join(log_location(self._table_location), SIDECAR_DIRECTORY, name)
        return FileStatus(location, sidecar.size_in_bytes, sidecar.modification_time)


def _rows(part: ParquetPart, names: Sequence[str]) -> Iterator[tuple[str, Fields]]:
    """Yield the rows that are actions of some kinds, by kind."""
    table = part.read_present({name: f"{name}.{_REQUIRED_LEAF[name]}" for name in names}, once=_ONCE)
    if table is None:
        return
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if not pa.types.is_struct(column.type):
            raise CorruptLogError(f"The column '{name}' of '{part.path}' is not a struct.", path=part.path)
        required = pc.struct_field(column, [column.type.get_field_index(_REQUIRED_LEAF[name])])
        for row in column.filter(pc.is_valid(required)).to_pylist():
            yield name, Fields(json_value(row, column.type), name, part.path)
