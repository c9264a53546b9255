"""The metadata tables of a version by name: each is a schema, and batches that are made as they are consumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.inspection.declarations import domain_rows, domains_schema, protocol_rows, protocol_schema
from pyspark_delta.inspection.files import file_rows, files_schema, tombstone_rows, tombstones_schema
from pyspark_delta.inspection.history import history_rows, history_schema
from pyspark_delta.inspection.partitions import partition_rows, partitions_schema
from pyspark_delta.inspection.row_groups import row_group_rows, row_groups_schema
from pyspark_delta.scan.statistics import statistics_batches, statistics_schema
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """One metadata table of one version. Nothing is read before its batches are consumed."""

    name: str
    snapshot: Snapshot
    schema: pa.Schema
    _rows: Callable[[Snapshot], Iterator[pa.RecordBatch]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Memory does not grow with the number of files. Raises CorruptLogError, DataFileError."""
        yield from self._rows(self.snapshot)


_Maker = tuple[Callable[[Snapshot], pa.Schema], Callable[[Snapshot], Iterator[pa.RecordBatch]]]

_TABLES: Mapping[str, _Maker] = MappingProxyType(
    {
        "files": (files_schema, file_rows),
        "partitions": (partitions_schema, partition_rows),
        "statistics": (statistics_schema, statistics_batches),
        "row_groups": (row_groups_schema, row_group_rows),
        "tombstones": (tombstones_schema, tombstone_rows),
        "history": (history_schema, history_rows),
        "protocol": (protocol_schema, protocol_rows),
        "domains": (domains_schema, domain_rows),
    }
)

NAMES = tuple(_TABLES)
"""The names of the metadata tables."""


def metadata_table(snapshot: Snapshot, name: str) -> MetadataTable:
    """Return a metadata table of a version. Raises InvalidOptionError for a name that is not in `NAMES`."""
    made = _TABLES.get(name) if isinstance(name, str) else None
    if made is None:
        raise InvalidOptionError(f"The metadata tables are {', '.join(NAMES)}; found {name!r}.", option="name")
    schema, rows = made
    return MetadataTable(name, snapshot, schema(snapshot), rows)
