"""Statements that define tables, on `Table`: CREATE, DROP, ALTER, COMMENT ON; and ANALYZE and REFRESH TABLE."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import compress, count
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from pyspark_delta.catalog.connections import connected_catalog
from pyspark_delta.ddl.constraints import constraint_properties
from pyspark_delta.ddl.dropping import no_name_to_drop
from pyspark_delta.ddl.like import definition_like
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    InvalidOperationError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.interpreter import results
from pyspark_delta.interpreter.literals import with_plain_strings
from pyspark_delta.interpreter.names import Target
from pyspark_delta.interpreter.session import Session
from pyspark_delta.parser.arguments import sql_literal
from pyspark_delta.parser.table_statements import (
    AddColumns,
    AlterColumns,
    AnalyzeTable,
    ColumnChange,
    CommentOnTable,
    CreateTable,
    CreateTableLike,
    DropColumns,
    DropTable,
    NewColumn,
    RefreshTable,
    RenameColumn,
    RenameTable,
    ReplaceColumns,
    SetProperties,
    TableStatement,
    UnsetProperties,
)
from pyspark_delta.parser.values import Path, TableName
from pyspark_delta.schema.column_definitions import parse_columns
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.table.alter import TableAlter
from pyspark_delta.table.creation import IfExists, create, definition
from pyspark_delta.table.sources import open_rows
from pyspark_delta.table.writing import write

_FORMATS = ("delta", "deltapy")


# ---------------------------------------------------------------------------------------------------------- CREATE
def create_table(statement: CreateTable, session: Session) -> pa.Table:
    """Create or replace a table, with the rows of a query if there is one, in one commit."""
    _check_format(statement.using)
    target = _located(session.names.resolve(statement.table), statement.location, session)
    if statement.if_not_exists and target.exists():
        return results.NOTHING
    if not statement.creates and not target.exists():
        raise TableNotFoundError(target.shown, "REPLACE TABLE replaces a table that exists")
    if statement.query is not None:
        return _create_as_query(statement, target, session)
    columns = [
        with_plain_strings(part.text) for part in (statement.columns, statement.partition_columns) if part is not None
    ]
    if not columns:
        raise InvalidOperationError(
            f"The statement gives no columns for {target.shown}. Define them, as in CREATE TABLE t (id BIGINT), or "
            "create the table from a query with AS SELECT.",
            error_class="DELTA_SCHEMA_NOT_PROVIDED",
        )
    if_exists: IfExists = "replace" if statement.replaces else "error"
    table = definition(
        ", ".join(columns),
        partitioning(statement),
        [column_path_text(path) for path in statement.cluster_by],
        {**dict(statement.properties), **_constraints(statement)},
        statement.comment,
    )
    create(target.place(), table, if_exists)
    return results.NOTHING


def _constraints(statement: CreateTable) -> dict[str, str]:
    """Return the CHECK constraints as properties; those without a name get one with the name of the table."""
    parts = statement.table.parts if isinstance(statement.table, TableName) else (statement.table.path,)
    table = re.sub(r"\W+", "_", PurePosixPath(parts[-1]).name)
    numbers = count(1)
    return constraint_properties(
        (f"{table}_chk_{next(numbers)}" if name is None else name, condition)
        for name, condition in statement.constraints
    )


def _check_format(using: str | None) -> None:
    if using is not None and using.lower() not in _FORMATS:
        raise InvalidOperationError(
            f"USING {using} is not supported: tables are Delta tables. Write USING delta, or leave it out.",
            error_class="DELTA_UNSUPPORTED_SOURCE",
        )


def _located(target: Target, location: str | None, session: Session) -> Target:
    """Return the target of a new table. Raises InvalidOperationError for a location that its name contradicts."""
    if location is None:
        return target
    raise InvalidOperationError(
        f"LOCATION '{location}' is not supported with the name {target.shown}. Create the table by its path, as in "
        f"CREATE TABLE delta.{quoted(location)}, and give it a name with register(name, path) of the catalog.",
        error_class="DELTA_TABLE_LOCATION_MISMATCH",
    )


def partitioning(statement: CreateTable) -> list[str]:
    """Return the names of the partition columns. Raises InvalidOperationError for a member of a struct."""
    if statement.partition_columns is not None:
        return [field.name for field in parse_columns(with_plain_strings(statement.partition_columns.text))]
    return [_top_level(path) for path in statement.partitioned_by]


def _top_level(path: Path) -> str:
    if len(path) != 1:
        raise InvalidOperationError(
            f"{column_path_text(path)} cannot be a partition column: it is inside of a struct. Use a column of the "
            "table itself."
        )
    return path[0]


def check_query_definition(statement: CreateTable) -> None:
    """Raise InvalidOperationError for what a table that is created from a query cannot have."""
    _check_format(statement.using)
    if statement.columns is not None or statement.constraints or statement.partition_columns is not None:
        raise InvalidOperationError(
            "CREATE TABLE ... AS takes its columns from the query. Leave the definitions of columns out.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )


def query_operation(statement: CreateTable) -> str:
    """Return the name of the operation that creates or replaces a table with the rows of a query."""
    words = "CREATE OR REPLACE" if statement.creates and statement.replaces else "CREATE"
    return f"{words if statement.creates else 'REPLACE'} TABLE AS SELECT"


def _create_as_query(statement: CreateTable, target: Target, session: Session) -> pa.Table:
    check_query_definition(statement)
    if not statement.replaces and target.exists():
        raise TableAlreadyExistsError(target.shown, "Use CREATE OR REPLACE TABLE, or INSERT INTO.")
    assert statement.query is not None
    rows = open_rows(session.query(statement.query.text))
    place = target.place()
    options = place.options(
        partition_by=tuple(partitioning(statement)) or None,
        cluster_by=tuple(column_path_text(path) for path in statement.cluster_by),
        properties=dict(statement.properties),
        description=statement.comment,
    )
    with session.operation():
        mode = "replace" if statement.replaces else "error"
        write(place, rows, mode, options, must_exist=False, statement=query_operation(statement))
    return results.NOTHING


def create_like(statement: CreateTableLike, session: Session) -> pa.Table:
    """Create an empty table with the definition of another one."""
    _check_format(statement.using)
    target = _located(session.names.resolve(statement.table), statement.location, session)
    if statement.if_not_exists and target.exists():
        return results.NOTHING
    table = definition_like(session.open(statement.source).snapshot, dict(statement.properties))
    create(target.place(), table, "error")
    return results.NOTHING


def drop_table(statement: DropTable, session: Session) -> pa.Table:
    """Remove the name of a table from its catalog."""
    target = session.names.resolve(statement.table)
    if target.name is None:
        if statement.if_exists and not target.exists():
            return results.NOTHING
        raise no_name_to_drop(target.shown)
    try:
        connected_catalog(target.name.catalog).drop_table(target.name)
    except CatalogNameNotFoundError:
        if not statement.if_exists:
            raise
    return results.NOTHING


# ----------------------------------------------------------------------------------------------------------- ALTER
def rename_table(statement: RenameTable, session: Session) -> pa.Table:
    """Rename a table of a catalog."""
    target = session.names.resolve(statement.table)
    if target.name is None:
        raise InvalidOperationError(
            f"{target.shown} is not in a catalog, so that it has no name to change. Move its folder instead.",
            error_class="DELTA_UNSUPPORTED_STATEMENT",
        )
    new = session.names.resolve(statement.name)
    if new.name is None:
        raise InvalidOperationError(f"{new.shown} is not a name in the catalog '{target.name.catalog}'.")
    connected_catalog(target.name.catalog).rename_table(target.name, new.name)
    return results.NOTHING


def comment_on(statement: CommentOnTable, session: Session) -> pa.Table:
    """Set the description of a table."""
    return _altered(session, statement.table, lambda alter: alter.set_comment(statement.comment))


def add_columns(statement: AddColumns, session: Session) -> pa.Table:
    """Add columns in one commit."""
    if statement.if_not_exists:
        raise InvalidOperationError("ADD COLUMNS IF NOT EXISTS is not supported by Delta tables. Leave it out.")
    columns = statement.columns
    if all(len(one.column) == 1 and one.position is None for one in columns):
        return _altered(session, statement.table, lambda alter: alter.add_columns(", ".join(map(_definition, columns))))
    if len(columns) > 1 or columns[0].default is not None or not columns[0].nullable:
        raise InvalidOperationError(
            "A column inside of a struct, or with a position, is added by a statement of its own, without NOT NULL and "
            "DEFAULT."
        )
    one = columns[0]
    position = one.position
    return _altered(
        session,
        statement.table,
        lambda alter: alter.add_column(
            column_path_text(one.column),
            one.data_type.text,
            comment=one.comment,
            first=position is not None and position.first,
            after=None if position is None else position.after,
        ),
    )


def _definition(column: NewColumn) -> str:
    parts = [quoted(column.column[0]), column.data_type.text]
    if not column.nullable:
        parts.append("NOT NULL")
    if column.default is not None:
        parts += ["DEFAULT", column.default.text]
    if column.comment is not None:
        parts += ["COMMENT", sql_literal(column.comment)]
    return with_plain_strings(" ".join(parts))


def replace_columns(statement: ReplaceColumns, session: Session) -> pa.Table:
    """Set all columns in one commit."""
    columns = statement.columns
    if any(len(one.column) > 1 or one.position is not None for one in columns):
        raise InvalidOperationError("REPLACE COLUMNS takes whole columns, in their order, without FIRST and AFTER.")
    return _altered(session, statement.table, lambda alter: alter.replace_columns(", ".join(map(_definition, columns))))


def drop_columns(statement: DropColumns, session: Session) -> pa.Table:
    """Drop columns in one commit."""
    names = [column_path_text(path) for path in statement.columns]
    if statement.if_exists:
        schema = session.schema(statement.table)
        found = [len(path) > 1 or schema.find(path[0]) is not None for path in statement.columns]
        names = list(compress(names, found))
    if names:
        session.alter(statement.table).drop_columns(*names)
    return results.NOTHING


def rename_column(statement: RenameColumn, session: Session) -> pa.Table:
    """Rename a column."""
    column, name = column_path_text(statement.column), quoted(statement.name)
    return _altered(session, statement.table, lambda alter: alter.rename_column(column, name))


def alter_columns(statement: AlterColumns, session: Session) -> pa.Table:
    """Change columns in one commit."""
    alter = session.alter(statement.table)
    if len(statement.changes) == 1:
        _changed(alter, statement.changes[0])
        return results.NOTHING
    with alter._together() as together:
        for change in statement.changes:
            _changed(together, change)
    return results.NOTHING


def _changed(alter: TableAlter, change: ColumnChange) -> TableAlter:
    name = column_path_text(change.column)
    if change.name is not None:
        raise InvalidOperationError(
            f"Give one change of {name}: RENAME COLUMN, or ALTER COLUMN with TYPE, COMMENT, FIRST or AFTER."
        )
    if change.data_type is not None:
        return alter.change_type(name, change.data_type.text)
    if change.nullable is not None:
        return alter.drop_not_null(name) if change.nullable else alter.set_not_null(name)
    if change.comment is not None:
        return alter.set_column_comment(name, change.comment)
    if change.position is not None:
        return alter.move_column(name, first=change.position.first, after=change.position.after)
    if change.default is not None:
        return alter.set_default(name, change.default.text)
    return alter.drop_default(name)


def set_properties(statement: SetProperties, session: Session) -> pa.Table:
    """Set table properties."""
    return _altered(session, statement.table, lambda alter: alter.set_properties(dict(statement.properties)))


def unset_properties(statement: UnsetProperties, session: Session) -> pa.Table:
    """Reset table properties."""
    return _altered(
        session, statement.table, lambda alter: alter.unset_properties(*statement.keys, if_exists=statement.if_exists)
    )


def _altered(session: Session, table: Any, change: Callable[[TableAlter], TableAlter]) -> pa.Table:
    change(session.alter(table))
    return results.NOTHING


def analyze(statement: AnalyzeTable, session: Session) -> pa.Table:
    """Compute the statistics of data files that lack them. Raises as `Table.compute_statistics`."""
    if statement.partition is not None:
        raise InvalidOperationError(
            "ANALYZE TABLE ... PARTITION is not supported for Delta tables. Nothing was changed. Leave PARTITION out.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sqlstate="0AKDC",
        )
    table = session.open(statement.table)
    if statement.scans:
        columns = None if statement.columns is None else [quoted(name) for name in statement.columns]
        table.compute_statistics(columns=columns, progress=session.progress)
    return results.NOTHING


def refresh(statement: RefreshTable, session: Session) -> pa.Table:
    """Check that the table exists. Each statement reads its newest version, so nothing is out of date."""
    session.open(statement.table)
    return results.NOTHING


HANDLERS: dict[type[TableStatement], Callable[[Any, Session], pa.Table]] = {
    AddColumns: add_columns,
    AlterColumns: alter_columns,
    AnalyzeTable: analyze,
    CommentOnTable: comment_on,
    CreateTable: create_table,
    CreateTableLike: create_like,
    DropColumns: drop_columns,
    DropTable: drop_table,
    RefreshTable: refresh,
    RenameColumn: rename_column,
    RenameTable: rename_table,
    ReplaceColumns: replace_columns,
    SetProperties: set_properties,
    UnsetProperties: unset_properties,
}
