"""The source of data files: a table, and the version of its schema to read them with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.plan import (
    ChangeType,
    ColumnPlan,
    PartitionConstant,
    ReadContext,
    RowCommitVersion,
    RowId,
    Stored,
)
from pyspark_delta.scan.planner import read_context
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FileSource:
    """A table, and the version of its schema with which to read its files. Rows can have additional columns:
    `stored_too` names columns of the files, `sometimes_stored` columns that are null in the files that lack them, and
    `constants` values per file, stored among its partition values. With `is_staged`, some files have no row ids yet.
    """

    location: str
    configuration: TableConfiguration
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    version: int | None = None
    stored_too: tuple[StructField, ...] = ()
    sometimes_stored: tuple[StructField, ...] = ()
    constants: tuple[StructField, ...] = ()
    is_staged: bool = False

    def read_context(
        self,
        output: Sequence[StructField] | None = None,
        *,
        time_zone: str,
        residual: Expression | None = None,
        row_ids: bool = False,
        row_index: str | None = None,
    ) -> ReadContext:
        """Return how tasks of the Arrow reader read the files. Arguments and errors as in `planner.read_context`.

        `output` and `residual` may name the additional columns of the files.
        """
        more: dict[str, ColumnPlan] = {f.name: ChangeType(f) for f in self.stored_too}
        more |= {f.name: Stored(f) for f in self.sometimes_stored}
        more |= {f.name: PartitionConstant(f, f.name) for f in self.constants}
        context = read_context(
            self.location,
            self.configuration,
            None if output is None else [f for f in output if f.name not in more],
            residual=residual,
            row_ids=row_ids,
            row_index=row_index,
            storage_options=self.storage_options,
            time_zone=time_zone,
        )
        if row_ids and self.is_staged:
            context = replace(context, columns=tuple(map(_optional, context.columns)))
        if output is None or not more:
            return context
        shown = tuple(f.name for f in output)
        needed = {*shown, *(() if residual is None else (column.path[0] for column in columns_of(residual)))}
        added = tuple(plan for name, plan in more.items() if name in needed)
        return replace(context, columns=(*context.columns, *added), output=shown)

    @property
    def in_files_too(self) -> tuple[StructField, ...]:
        """The additional columns that are in files."""
        return (*self.stored_too, *self.sometimes_stored)

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows, with the additional columns."""
        return StructType((*self.configuration.schema, *self.in_files_too, *self.constants))


def file_source(snapshot: Snapshot) -> FileSource:
    """Return the table of a snapshot, with the schema of that snapshot."""
    return FileSource(
        snapshot.location,
        snapshot.configuration,
        snapshot.storage_options,
        snapshot.version,
        is_staged=is_staged(snapshot),
    )


def is_staged(snapshot: Snapshot) -> bool:
    """Return True if a snapshot has files of a commit that is not in the log (`Snapshot.with_commit`)."""
    return snapshot.version > snapshot.as_committed.version


def _optional(plan: ColumnPlan) -> ColumnPlan:
    return replace(plan, is_optional=True) if isinstance(plan, RowId | RowCommitVersion) else plan
