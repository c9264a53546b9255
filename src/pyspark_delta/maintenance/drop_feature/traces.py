"""What a feature has left in a version: properties, metadata domains, metadata of fields, and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.drop_feature.droppable import Drop
from pyspark_delta.maintenance.drop_feature.old_types import files_with_old_types
from pyspark_delta.protocol.feature import any_field_has
from pyspark_delta.protocol.properties import find_property, lookup
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Traces:
    """What has to go before a feature can be dropped. `size` is the bytes of the files.

    `properties` are set, or unset where the value is None. `files` have something that is to go, `fields` says that the
    schema has.
    """

    properties: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    domains: tuple[str, ...] = ()
    fields: bool = False
    files: int = 0
    size: int = 0

    def __bool__(self) -> bool:
        return bool(self.properties or self.domains or self.fields or self.files)


def find_traces(snapshot: Snapshot, drop: Drop) -> Traces:
    """Return what a version has of a feature. Opens footers only if columns were widened. Raises CorruptLogError."""
    removal, configuration = drop.removal, snapshot.configuration
    files = size = 0
    for batch in _traced_files(snapshot, removal.files):
        files += batch.num_rows
        size += pc.sum(batch.column("size")).as_py() or 0
    return Traces(
        properties={name: value for name, value in removal.disabling.items() if _differs(snapshot, name, value)},
        domains=tuple(sorted(snapshot.domains())) if removal.all_domains else (),
        fields=bool(removal.field_keys) and any_field_has(configuration, *removal.field_keys),
        files=files,
        size=size,
    )


def _differs(snapshot: Snapshot, name: str, value: str | None) -> bool:
    """True if a property has another value than the wanted one, or is set and must not be."""
    if value is None:
        return lookup(snapshot.properties, name) is not None
    known = find_property(name)
    assert known is not None
    return known.of(snapshot.properties) != known.parse(value)


def _traced_files(snapshot: Snapshot, kind: FileTraces | None) -> Iterator[pa.RecordBatch]:
    """Yield the live files with a kind of traces, with at least their sizes."""
    match kind:
        case FileTraces.VECTORS:
            for batch in snapshot.read_files(FileRequest(("size", "deletion_vector"))):
                yield batch.filter(pc.is_valid(batch.column("deletion_vector")))
        case FileTraces.ROW_IDS:
            for batch in snapshot.read_files(FileRequest(("size", "base_row_id", "default_row_commit_version"))):
                yield batch.filter(is_numbered(batch))
        case FileTraces.PHYSICAL_NAMES:
            if is_active(snapshot.configuration, Feature.COLUMN_MAPPING):
                yield from snapshot.read_files(FileRequest(("size",)))
        case FileTraces.OLD_TYPES:
            yield from files_with_old_types(snapshot, ("path", "size"))


def is_numbered(files: pa.RecordBatch) -> pa.BooleanArray:
    """Return which files have row ids or a row commit version."""
    return pc.or_(pc.is_valid(files.column("base_row_id")), pc.is_valid(files.column("default_row_commit_version")))
