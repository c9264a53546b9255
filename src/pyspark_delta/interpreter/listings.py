"""Statements about catalogs and schemas, and SHOW and DESCRIBE, with the columns of Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.catalog.connections import connected_catalog, connected_names, find_catalog
from pyspark_delta.ddl.create_statement import create_statement
from pyspark_delta.errors import CatalogNameExistsError, CatalogNameNotFoundError, InvalidOperationError
from pyspark_delta.inspection.described import Place, Row, declared_properties, details
from pyspark_delta.interpreter import results
from pyspark_delta.interpreter.session import Session
from pyspark_delta.interpreter.values import constant
from pyspark_delta.parser.catalog_statements import (
    CatalogStatement,
    CreateSchema,
    DescribeTable,
    DropSchema,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
    Use,
)
from pyspark_delta.parser.values import TableName, TableReference
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.schema.text_lengths import declared_lengths, declared_type
from pyspark_delta.schema.types import StructField
from pyspark_delta.table import Table


# ------------------------------------------------------------------------------------------- catalogs and schemas
def use(statement: Use, session: Session) -> pa.Table:
    """Make a catalog or a schema the current one."""
    names, parts = session.names, statement.name
    if statement.kind != "SCHEMA" and len(parts) == 1 and find_catalog(parts[0]) is not None:
        names.catalog, names.schema = parts[0], None
        return results.NOTHING
    if statement.kind == "CATALOG":
        connected_catalog(parts[0])  # the error that names the connected ones
    catalog, schema = names.schema_of(parts)
    if schema.casefold() not in {one.casefold() for one in connected_catalog(catalog).list_schemas(catalog)}:
        raise CatalogNameNotFoundError(f"The catalog '{catalog}' has no schema '{schema}'.", name=schema)
    names.catalog, names.schema = catalog, schema
    return results.NOTHING


def show_catalogs(statement: ShowCatalogs, session: Session) -> pa.Table:
    """Return the connected catalogs."""
    return results.texts(catalog=_matching(connected_names(), statement.pattern))


def show_schemas(statement: ShowSchemas, session: Session) -> pa.Table:
    """Return the schemas of a catalog."""
    catalog = statement.namespace[0] if statement.namespace else session.names.catalog
    if catalog is None:
        session.names.schema_of(())  # raises the error that says what to do
        raise AssertionError
    found = connected_catalog(catalog).list_schemas(catalog)
    return results.texts(namespace=_matching(found, statement.pattern))


def show_tables(statement: ShowTables, session: Session) -> pa.Table:
    """Return the tables of a schema."""
    catalog, schema = session.names.schema_of(statement.namespace)
    names = [one.name for one in connected_catalog(catalog).list_tables(catalog, schema)]
    found = _matching(names, statement.pattern)
    lines = [{"namespace": schema, "tableName": name, "isTemporary": False} for name in found]
    return pa.Table.from_pylist(lines, results.TABLES)


def create_schema(statement: CreateSchema, session: Session) -> pa.Table:
    """Create a schema."""
    if statement.location is not None:
        raise InvalidOperationError("LOCATION is not supported for schemas: the catalog chooses where tables are.")
    catalog, schema = session.names.schema_of(statement.name.parts)
    try:
        connected_catalog(catalog).create_schema(catalog, schema)
    except CatalogNameExistsError:
        if not statement.if_not_exists:
            raise
    return results.NOTHING


def drop_schema(statement: DropSchema, session: Session) -> pa.Table:
    """Drop a schema without tables."""
    if statement.cascade:
        raise InvalidOperationError("CASCADE is not supported: drop the tables of the schema first.")
    catalog, schema = session.names.schema_of(statement.name.parts)
    try:
        connected_catalog(catalog).drop_schema(catalog, schema)
    except CatalogNameNotFoundError:
        if not statement.if_exists:
            raise
    return results.NOTHING


def _matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the names that match a pattern of SHOW: `*` is any text, `|` separates alternatives."""
    if pattern is None:
        return list(names)
    alternatives = [".*".join(re.escape(part) for part in one.strip().split("*")) for one in pattern.split("|")]
    matched = re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)
    return [name for name in names if matched.fullmatch(name)]


# ---------------------------------------------------------------------------------------------------------- tables
def show_columns(statement: ShowColumns, session: Session) -> pa.Table:
    """Return the names of the columns of a table."""
    reference: TableReference = statement.table
    if statement.namespace and isinstance(reference, TableName):
        reference = TableName((*statement.namespace, reference.parts[-1]))
    return results.texts(col_name=[field.name for field in session.open(reference).schema])


def show_partitions(statement: ShowPartitions, session: Session) -> pa.Table:
    """Return the values of the partition columns, one row for each partition, and only those of PARTITION (...).

    Raises InvalidOperationError for a table without partitions, and for a column that is no partition column.
    """
    table = session.open(statement.table)
    if not table.partition_columns:
        raise InvalidOperationError(
            f"SHOW PARTITIONS is not allowed: '{table.location}' is not partitioned.",
            error_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
        )
    found = table.inspect("partitions").to_arrow().select(["partition"]).flatten()
    found = found.rename_columns(table.partition_columns)
    for one in statement.partition:
        field = table.schema.find(column_path_text(one.column))
        if field is None or field.name not in table.partition_columns:
            raise InvalidOperationError(
                f"PARTITION names {column_path_text(one.column)}, which is not a partition column of "
                f"'{table.location}': these are {', '.join(table.partition_columns)}.",
                error_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            )
        if one.value is not None:
            column, [value] = found[field.name], constant(one.value.text, field)
            found = found.filter(pc.equal(column, value.cast(column.type)) if value.is_valid else pc.is_null(column))
    return found


def show_properties(statement: ShowProperties, session: Session) -> pa.Table:
    """Return the properties of a table, with protocol versions and table features, or one of them."""
    properties = declared_properties(session.open(statement.table).snapshot)
    return results.properties(properties, statement.key, _shown(statement.table))


def describe_table(statement: DescribeTable, session: Session) -> pa.Table:
    """Return the columns of a table with types and comments, then its partitioning, and what EXTENDED adds."""
    table = session.open(statement.table)
    if statement.column:
        return _described_column(table, statement)
    lines: list[Row] = [_line(field) for field in table.schema]
    if table.partition_columns:
        partitions = [field for field in table.schema if field.name in table.partition_columns]
        lines += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), *map(_line, partitions)]
    if statement.extended:
        lines += _details(table, statement.table)
    names = results.COLUMNS.names
    return pa.Table.from_pylist([dict(zip(names, line, strict=True)) for line in lines], results.COLUMNS)


def _line(field: StructField) -> Row:
    comment = field.metadata.get("comment")
    data_type = declared_type(field.type, declared_lengths(field))
    return field.name, data_type, None if comment is None else str(comment)


def _details(table: Table, reference: TableReference) -> Iterator[Row]:
    snapshot = table.snapshot
    name = reference.parts if isinstance(reference, TableName) else ("delta", reference.path)
    place = Place(
        name=name,
        location=table.location,
        properties=declared_properties(snapshot),
        is_managed=snapshot.configuration.is_catalog_managed,
    )
    return details(snapshot, place)


def _described_column(table: Table, statement: DescribeTable) -> pa.Table:
    field = table.schema.find(statement.column[0]) if len(statement.column) == 1 else None
    if field is None:
        raise InvalidOperationError(
            f"'{table.location}' has no column {column_path_text(statement.column)}.",
            error_class="DELTA_COLUMN_NOT_FOUND",
            sqlstate="42703",
        )
    _, data_type, comment = _line(field)
    return results.texts(
        info_name=["col_name", "data_type", "comment"], info_value=[field.name, data_type, comment or "NULL"]
    )


def show_create_table(statement: ShowCreateTable, session: Session) -> pa.Table:
    """Return a statement that creates the table without its rows."""
    snapshot = session.open(statement.table).snapshot
    return results.texts(createtab_stmt=[create_statement(snapshot, _shown(statement.table))])


def _shown(reference: TableReference) -> str:
    return column_path_text(reference.parts) if isinstance(reference, TableName) else f"delta.{quoted(reference.path)}"


HANDLERS: dict[type[CatalogStatement], Callable[[Any, Session], pa.Table]] = {
    CreateSchema: create_schema,
    DescribeTable: describe_table,
    DropSchema: drop_schema,
    ShowCatalogs: show_catalogs,
    ShowColumns: show_columns,
    ShowCreateTable: show_create_table,
    ShowPartitions: show_partitions,
    ShowProperties: show_properties,
    ShowSchemas: show_schemas,
    ShowTables: show_tables,
    Use: use,
}
