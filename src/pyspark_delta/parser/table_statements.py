"""Statements that define tables, as frozen values. Spark parses them too; other sessions need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pyspark_delta.parser.values import Path, SqlText, TableName, TableReference

Properties: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE [OR REPLACE] TABLE ...` and `REPLACE TABLE ...`, with or without a query.

    `columns` are the definitions between the brackets, and `constraints` the CHECK constraints there: names, None for a
    constraint without one, and conditions. `creates` is False for `REPLACE TABLE`, `replaces` is True for
    both forms of REPLACE. `partition_columns` are definitions in `PARTITIONED BY`; `partitioned_by` are names there.
    """

    table: TableReference
    columns: SqlText | None = None
    query: SqlText | None = None
    using: str | None = None
    partitioned_by: tuple[Path, ...] = ()
    partition_columns: SqlText | None = None
    cluster_by: tuple[Path, ...] = ()
    comment: str | None = None
    location: str | None = None
    properties: Properties = ()
    options: Properties = ()
    constraints: tuple[tuple[str | None, str], ...] = ()
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableLike:
    """`CREATE TABLE table LIKE source [USING ...] [TBLPROPERTIES ...] [LOCATION ...]`."""

    table: TableReference
    source: TableName
    using: str | None = None
    location: str | None = None
    properties: Properties = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """`DROP TABLE [IF EXISTS] table [PURGE]`."""

    table: TableReference
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class CommentOnTable:
    """`COMMENT ON TABLE table IS text`, or `IS NULL`."""

    table: TableReference
    comment: str | None


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """`FIRST`, or `AFTER column`."""

    after: str | None = None

    @property
    def first(self) -> bool:
        """True for `FIRST`."""
        return self.after is None


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column of `ADD COLUMNS` and `REPLACE COLUMNS`."""

    column: Path
    data_type: SqlText
    nullable: bool = True
    comment: str | None = None
    default: SqlText | None = None
    position: ColumnPosition | None = None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """`ALTER TABLE table ADD COLUMNS (...)`."""

    table: TableReference
    columns: tuple[NewColumn, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """`ALTER TABLE table REPLACE COLUMNS (...)`."""

    table: TableReference
    columns: tuple[NewColumn, ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    """`ALTER TABLE table DROP COLUMNS [IF EXISTS] (...)`."""

    table: TableReference
    columns: tuple[Path, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """`ALTER TABLE table RENAME COLUMN column TO name`."""

    table: TableReference
    column: Path
    name: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    """`ALTER TABLE table RENAME TO name`."""

    table: TableReference
    name: TableName


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What `ALTER COLUMN` changes of one column; None and False for what stays. `comment` may be an empty text."""

    column: Path
    name: str | None = None
    data_type: SqlText | None = None
    nullable: bool | None = None
    comment: str | None = None
    position: ColumnPosition | None = None
    default: SqlText | None = None
    drop_default: bool = False


@dataclass(frozen=True, slots=True)
class AlterColumns:
    """`ALTER TABLE table ALTER COLUMN column ...`, for one column or more."""

    table: TableReference
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """`ALTER TABLE table SET TBLPROPERTIES (...)`."""

    table: TableReference
    properties: Properties


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """`ALTER TABLE table UNSET TBLPROPERTIES [IF EXISTS] (...)`."""

    table: TableReference
    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AnalyzeTable:
    """`ANALYZE TABLE table COMPUTE STATISTICS [NOSCAN | FOR COLUMNS ... | FOR ALL COLUMNS]`.

    `columns` are None for all columns. `scans` is False for `NOSCAN`, and `partition` is the text of `PARTITION (...)`.
    """

    table: TableReference
    columns: tuple[str, ...] | None = None
    scans: bool = True
    partition: SqlText | None = None


@dataclass(frozen=True, slots=True)
class RefreshTable:
    """`REFRESH TABLE table`."""

    table: TableReference


TableStatement: TypeAlias = (
    CreateTable
    | CreateTableLike
    | DropTable
    | CommentOnTable
    | AddColumns
    | ReplaceColumns
    | DropColumns
    | RenameColumn
    | RenameTable
    | AlterColumns
    | SetProperties
    | UnsetProperties
    | AnalyzeTable
    | RefreshTable
)
