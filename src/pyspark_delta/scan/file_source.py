"""The source of data files: a table, and the version of its schema to read them with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.scan.planner import read_context
from pyspark_delta.schema.types import StructField
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FileSource:
    """A table, and the version of its schema with which to read its files. Rows can have additional columns:
    `stored_too` names columns of the files, and `constants` values per file, stored among its partition values.
    """

    location: str
    configuration: TableConfiguration
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    version: int | None = None
    stored_too: tuple[StructField, ...] = ()
    constants: tuple[StructField, ...] = ()

    def read_context(
        self,
        output: Sequence[StructField] | None = None,
        *,
        time_zone: str,
        residual: Expression | None = None,
        row_ids: bool = False,
        row_index: str | None = None,
    ) -> ReadContext:
        """Return how tasks of the Arrow reader read the files. Arguments and errors as in `planner.read_context`."""
        return read_context(
            self.location,
            self.configuration,
            output,
            residual=residual,
            row_ids=row_ids,
            row_index=row_index,
            storage_options=self.storage_options,
            time_zone=time_zone,
        )


def file_source(snapshot: Snapshot) -> FileSource:
    """Return the table of a snapshot, with the schema of that snapshot."""
    return FileSource(snapshot.location, snapshot.configuration, snapshot.storage_options, snapshot.version)
