"""The methods of `Table` that look inside: metadata tables of the version, and differences between versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import pyarrow as pa

from pyspark_delta.display import html_facts, listed
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.inspection import MetadataTable, TableDiff, metadata_table
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.types import StructType, short_text
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table.arguments import check_version
from pyspark_delta.table.readable import Readable, filtered

MetadataName: TypeAlias = Literal[
    "files", "partitions", "statistics", "row_groups", "tombstones", "history", "protocol", "domains"
]


@dataclass(frozen=True, repr=False)
class Inspection(Readable):
    """A metadata table of a version. Nothing is read until rows are requested."""

    table: MetadataTable

    @cached_property
    def schema(self) -> StructType:
        """The schema of the rows."""
        return schema_from_arrow(self.table.schema)

    def __repr__(self) -> str:
        snapshot = self.table.snapshot
        facts = f"{self.table.name!r}, {snapshot.location!r}, version={snapshot.version}"
        return f"Inspection({facts}: {short_text(self.schema)})"

    def _repr_html_(self) -> str:
        snapshot = self.table.snapshot
        facts = {"location": snapshot.location, "version": snapshot.version, "columns": listed(self.schema.names)}
        return html_facts(f"Inspection: {self.table.name}", facts)

    def _pinned(self) -> Inspection:
        return self

    def _reader(
        self, columns: Sequence[str] | None = None, where: Expression | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        reader = pa.RecordBatchReader.from_batches(self.table.schema, self.table.batches())
        if where is not None:
            return filtered(reader, where, columns, limit)
        names = reader.schema.names if columns is None else list(columns)
        schema = pa.schema([reader.schema.field(name) for name in names])
        return pa.RecordBatchReader.from_batches(schema, _first(reader, names, limit))


def _first(reader: pa.RecordBatchReader, names: list[str], limit: int | None) -> Iterator[pa.RecordBatch]:
    missing = limit
    for batch in reader:
        if missing == 0:
            return
        found = batch.select(names).slice(0, missing)
        missing = None if missing is None else missing - found.num_rows
        yield found


class InspectedTable(ABC):
    """A look inside a table without Spark."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that this table reads."""

    def inspect(self, name: MetadataName) -> Inspection:
        """Return a metadata table of this version, to read as a scan: `to_arrow`, `to_batches`, `to_polars`, ...

        - `files`: the live data files, with typed partition values, sizes, records and deleted records;
        - `partitions`: the same in sums for each partition;
        - `statistics`: the statistics of the live files, typed, as from `stats`;
        - `row_groups`: the row groups of the live files and their columns, from the footers of the files;
        - `tombstones`: the removed files that the log still has, and when a vacuum may delete them;
        - `history`: the commits, newest first, with the columns of `DESCRIBE HISTORY`;
        - `protocol`: the table features, and whether they are active;
        - `domains`: the metadata domains.

        Rows are made as they are consumed: memory does not grow with the number of files. Sizes are bytes. Raises
        InvalidOptionError for another name; reading raises CorruptLogError, and DataFileError for a footer.
        """
        return Inspection(metadata_table(self.snapshot, name))

    def diff(self, version: int, other: int | None = None) -> TableDiff:
        """Return the differences from a version to `other`, by default to the version that this object shows.

        These are files, rows, columns, properties, protocol and metadata domains. Print it, or read its Arrow tables.
        Only the log is read. Raises VersionNotFoundError, and InvalidOptionError for what is not a version.
        """
        return TableDiff(self._version(version), self.snapshot if other is None else self._version(other))

    def _version(self, version: int) -> Snapshot:
        check_version(version)
        return self.snapshot if version == self.snapshot.version else self.snapshot.at_version(version)
