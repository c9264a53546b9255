"""The plan of a scan: picklable data that every engine can interpret and that is sent to workers.

The planner makes a `ScanPlan`; the Arrow reader runs its tasks, Spark's scans read its file table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.schema.types import DataType, StructField, StructType


@dataclass(frozen=True, slots=True)
class FromFile:
    """A column that data files hold: matched by `physical.name`, or by field id in `id` mode.

    `field` is the logical column (name, type, nullability); `physical` the same column with physical names at every
    nesting level and with its field ids in the metadata. A file without the column gives nulls; a file with a
    narrower type is widened to the type of `field`; fields that the file has beyond the schema are ignored.
    """

    field: StructField
    physical: StructField


@dataclass(frozen=True, slots=True)
class PartitionConstant:
    """A partition column: its value is in the log under `physical_name`, serialized as a string."""

    field: StructField
    physical_name: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A column that no file holds: all null (void columns)."""

    field: StructField


@dataclass(frozen=True, slots=True)
class RowId:
    """The stable row id (C327): the materialised column if it is not null, else base row id + position.

    Without a base row id it is an error; with `is_optional` it is null.
    """

    field: StructField
    materialized_name: str | None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class RowCommitVersion:
    """The row commit version (C328): the materialised column if it is not null, else the file's default.

    Without a default it is an error; with `is_optional` it is null.
    """

    field: StructField
    materialized_name: str | None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class RowIndex:
    """The position of a row in its data file, including deleted rows (C271)."""

    field: StructField


@dataclass(frozen=True, slots=True)
class ChangeType:
    """The kind of change of a row (C163): constant for the file, as a partition value, or stored in the file.

    The column is found by name, which column mapping does not change.
    """

    field: StructField


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of the files that the schema of the table does not have; null in files without it.

    The column is found by name, which column mapping does not change.
    """

    field: StructField


ColumnPlan: TypeAlias = (
    FromFile | PartitionConstant | Missing | RowId | RowCommitVersion | RowIndex | ChangeType | Stored
)


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What every task of a scan shares; small, picklable.

    `column_mapping_mode` is `none`, `name` or `id`. `residual` is evaluated on the rows read, over the logical columns
    in `columns`; columns that only the residual needs come after the `output` names and are dropped afterwards.
    """

    table_location: str
    columns: tuple[ColumnPlan, ...]
    output: tuple[str, ...]
    column_mapping_mode: str = "none"
    residual: Expression | None = None
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    time_zone: str = "UTC"  # of zone-less timestamp partition values (C421)


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One data file to read. `path` is as in the log; `partition_values` by physical name, as strings.

    `deletion_vector` contains the deleted rows or, with `selects_rows`, the only rows to return. With `share` = (n,
    of), only the n-th of so many equal shares of its row groups is read.
    """

    path: str
    size: int
    partition_values: Mapping[str, str | None] = field(hash=False)
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    selects_rows: bool = False
    share: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PruningStage:
    """One stage of file skipping, with an explanation if conditions could not be used.

    `name` is `partition pruning` or `data skipping`; `predicate` contains the conditions it could use, as SQL, and
    `pushed` their form on partition values or statistics (None if none could be used); `note` explains why others could
    not. Planning reads the log only once and leaves the counts None; `scan.explain.count_stages` sets them.
    """

    name: str
    files_before: int | None
    files_after: int | None
    predicate: str
    note: str = ""
    pushed: Expression | None = None


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A planned scan: the surviving files in columnar form (`actions.columns`), and how to read them."""

    version: int
    schema: StructType  # the logical output schema
    context: ReadContext
    files: pa.Table
    stages: tuple[PruningStage, ...] = ()


def column_type(column: ColumnPlan) -> DataType:
    """Return the logical type of a planned column."""
    return column.field.type
