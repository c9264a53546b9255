"""Delta's own statements, which Spark's grammar does not have, as frozen values.

Those that Spark parses as well are in `row_statements`, `table_statements` and `catalog_statements`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from pyspark_delta.parser.values import Path, SqlText, TableName, TableReference, TimeTravel


@dataclass(frozen=True, slots=True)
class Vacuum:
    """`VACUUM table [FULL | LITE] [USING INVENTORY table | (query)] [RETAIN number HOURS] [DRY RUN]`.

    `mode` and `retain_hours` are None if the statement does not give them.
    """

    table: TableReference
    mode: Literal["FULL", "LITE"] | None = None
    inventory: TableName | SqlText | None = None
    retain_hours: int | Decimal | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """`DESCRIBE DETAIL table`."""

    table: TableReference


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """`DESCRIBE HISTORY table [LIMIT n]`."""

    table: TableReference
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Optimize:
    """`OPTIMIZE table [FULL] [WHERE predicate] [ZORDER BY columns]`."""

    table: TableReference
    full: bool = False
    where: SqlText | None = None
    zorder_by: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ReorgPurge:
    """`REORG TABLE table [WHERE predicate] APPLY (PURGE)`."""

    table: TableReference
    where: SqlText | None = None


@dataclass(frozen=True, slots=True)
class ReorgUpgradeUniform:
    """`REORG TABLE table APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))`."""

    table: TableReference
    iceberg_compat_version: int


@dataclass(frozen=True, slots=True)
class Restore:
    """`RESTORE [TABLE] table [TO] VERSION AS OF n`, or `TIMESTAMP AS OF text`."""

    table: TableReference
    time: TimeTravel


@dataclass(frozen=True, slots=True)
class Undo:
    """`UNDO table`: take the last change back."""

    table: TableReference


@dataclass(frozen=True, slots=True)
class ConvertToDelta:
    """`CONVERT TO DELTA source [NO STATISTICS] [PARTITIONED BY (column type, ...)]`.

    `source` is a name such as ``parquet.`/path` ``. `partition_schema` is the text between the brackets.
    """

    source: TableName
    statistics: bool = True
    partition_schema: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """`GENERATE mode FOR TABLE table`."""

    mode: str
    table: TableReference


@dataclass(frozen=True, slots=True)
class Clone:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] target SHALLOW CLONE source ...`, or `REPLACE TABLE`.

    `creates` is False for `REPLACE TABLE`, which wants an existing target; `replaces` is True for both forms of
    REPLACE. `time` is the version of the source, None for the latest. A clone that is not `shallow` copies data files.
    """

    target: TableReference
    source: TableReference
    shallow: bool = True
    time: TimeTravel | None = None
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """`ALTER TABLE table ADD CONSTRAINT name CHECK (condition)`."""

    table: TableReference
    name: str
    condition: SqlText


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """`ALTER TABLE table DROP CONSTRAINT [IF EXISTS] name`."""

    table: TableReference
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFeature:
    """`ALTER TABLE table DROP FEATURE name [TRUNCATE HISTORY]`."""

    table: TableReference
    feature: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """`ALTER TABLE table CLUSTER BY (columns)`; no columns stand for `CLUSTER BY NONE`."""

    table: TableReference
    columns: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """`ALTER TABLE table ALTER COLUMN column SYNC IDENTITY`."""

    table: TableReference
    column: Path


@dataclass(frozen=True, slots=True)
class FsckRepair:
    """`FSCK REPAIR TABLE table [DRY RUN]`: remove files from the table that are not in storage any more."""

    table: TableReference
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class BeginTransaction:
    """`BEGIN TRANSACTION`: the following changes of one table become one commit."""


@dataclass(frozen=True, slots=True)
class CommitTransaction:
    """`COMMIT [TRANSACTION]`."""


@dataclass(frozen=True, slots=True)
class RollbackTransaction:
    """`ROLLBACK [TRANSACTION]`: discard the changes since `BEGIN TRANSACTION`."""


DeltaStatement: TypeAlias = (
    Vacuum
    | DescribeDetail
    | DescribeHistory
    | Optimize
    | ReorgPurge
    | ReorgUpgradeUniform
    | Restore
    | Undo
    | ConvertToDelta
    | Generate
    | Clone
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
    | SyncIdentity
    | FsckRepair
    | BeginTransaction
    | CommitTransaction
    | RollbackTransaction
)
"""A statement of Delta's own grammar."""
