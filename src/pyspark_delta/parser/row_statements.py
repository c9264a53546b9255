"""Statements that read or change rows, as frozen values. Spark parses them too; other sessions need them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pyspark_delta.parser.values import Path, SqlText, TableReference, TimeTravel
from pyspark_delta.schema.column_paths import column_path_text


@dataclass(frozen=True, slots=True)
class Query:
    """A query: SELECT, WITH, VALUES, FROM, TABLE, or a query in brackets."""

    query: SqlText


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = value`."""

    column: Path
    value: SqlText


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """A column of `PARTITION (...)`; `value` is None if the query has it."""

    column: Path
    value: SqlText | None = None


@dataclass(frozen=True, slots=True)
class InsertInto:
    """`INSERT INTO table ... query`, or `INSERT OVERWRITE`.

    `columns` are None if the statement does not list them. At most one of `overwrite`, `replace_where`, `replace_on`
    and `replace_using` says which rows the new rows replace. `evolves` is True for `WITH SCHEMA EVOLUTION`.
    """

    table: TableReference
    query: SqlText
    columns: tuple[Path, ...] | None = None
    by_name: bool = False
    partition: tuple[PartitionValue, ...] = ()
    if_not_exists: bool = False
    overwrite: bool = False
    replace_where: SqlText | None = None
    replace_on: SqlText | None = None
    replace_using: tuple[Path, ...] = ()
    alias: str | None = None
    evolves: bool = False

    @property
    def replaces(self) -> bool:
        """True if the new rows replace others."""
        return self.overwrite or bool(self.replace_where or self.replace_on or self.replace_using)

    @property
    def overwritten_partition(self) -> str | None:
        """The condition on the rows that OVERWRITE replaces, from the values of PARTITION; None for all rows."""
        if not self.overwrite:
            return None
        given = [(one.column, one.value) for one in self.partition if one.value is not None]
        return " AND ".join(f"{column_path_text(path)} <=> ({value.text})" for path, value in given) or None


@dataclass(frozen=True, slots=True)
class DeleteFrom:
    """`DELETE FROM table [AS alias] [WHERE condition]`. `ctes` is the text from WITH on, if there is one."""

    table: TableReference
    where: SqlText | None = None
    alias: str | None = None
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """`UPDATE table [AS alias] SET column = value, ... [WHERE condition]`."""

    table: TableReference
    assignments: tuple[Assignment, ...]
    where: SqlText | None = None
    alias: str | None = None
    ctes: SqlText | None = None


class MergeRows(Enum):
    """The rows that a clause of MERGE is about."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(Enum):
    """What a clause of MERGE does."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`WHEN ... THEN ...`; `assignments` are None for `UPDATE SET *` and `INSERT *`, and for DELETE."""

    rows: MergeRows
    action: MergeAction
    condition: SqlText | None = None
    assignments: tuple[Assignment, ...] | None = None


@dataclass(frozen=True, slots=True)
class MergeInto:
    """`MERGE INTO target USING source ON condition WHEN ...`.

    `source` is a table, at the version of `source_time`, or the query between brackets.
    """

    target: TableReference
    source: TableReference | SqlText
    condition: SqlText
    clauses: tuple[MergeClause, ...]
    target_alias: str | None = None
    source_alias: str | None = None
    source_time: TimeTravel | None = None
    evolves: bool = False
    ctes: SqlText | None = None


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """`TRUNCATE TABLE table`: delete all rows."""

    table: TableReference


RowStatement: TypeAlias = Query | InsertInto | DeleteFrom | UpdateTable | MergeInto | TruncateTable
