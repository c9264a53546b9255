"""Statements about catalogs, schemas, and what tables declare, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark_delta.parser.row_statements import PartitionValue
from pyspark_delta.parser.values import Path, TableName, TableReference


@dataclass(frozen=True, slots=True)
class Use:
    """`USE name`; `kind` is CATALOG for `USE CATALOG` and `SET CATALOG`, SCHEMA for `USE SCHEMA`, else None."""

    name: Path
    kind: Literal["CATALOG", "SCHEMA"] | None = None


@dataclass(frozen=True, slots=True)
class ShowCatalogs:
    """`SHOW CATALOGS [LIKE pattern]`."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowSchemas:
    """`SHOW SCHEMAS [IN catalog] [LIKE pattern]`; DATABASES and NAMESPACES are the same."""

    namespace: Path = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """`SHOW TABLES [IN namespace] [LIKE pattern]`."""

    namespace: Path = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """`SHOW COLUMNS IN table [IN namespace]`."""

    table: TableReference
    namespace: Path = ()


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """`SHOW PARTITIONS table [PARTITION (column = value, ...)]`."""

    table: TableReference
    partition: tuple[PartitionValue, ...] = ()


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """`SHOW TBLPROPERTIES table [(key)]`."""

    table: TableReference
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """`SHOW CREATE TABLE table`."""

    table: TableReference


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """`DESCRIBE [TABLE] [EXTENDED] table [column]`."""

    table: TableReference
    extended: bool = False
    column: Path = ()


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """`CREATE SCHEMA [IF NOT EXISTS] name [COMMENT text] [LOCATION path]`."""

    name: TableName
    if_not_exists: bool = False
    comment: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    """`DROP SCHEMA [IF EXISTS] name [CASCADE]`."""

    name: TableName
    if_exists: bool = False
    cascade: bool = False


CatalogStatement: TypeAlias = (
    Use
    | ShowCatalogs
    | ShowSchemas
    | ShowTables
    | ShowColumns
    | ShowPartitions
    | ShowProperties
    | ShowCreateTable
    | DescribeTable
    | CreateSchema
    | DropSchema
)
