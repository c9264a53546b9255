"""DESCRIBE EXTENDED, SHOW TBLPROPERTIES, SHOW CREATE TABLE and SHOW TABLE EXTENDED of Delta tables, from the log.

Spark would show the copy in its catalog, or what its analyzer gets. Both lack NOT NULL, defaults, generated columns,
clustering and the protocol, and the copy lacks partition columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from pyspark_delta.ddl.create_statement import create_statement
from pyspark_delta.errors import DeltaError, InvalidOperationError
from pyspark_delta.inspection.described import DETAILS, Place, Row, declared_properties, details
from pyspark_delta.interpreter import results
from pyspark_delta.logs import logger
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import arrow_schema, frame_of_arrow
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.sql.classic.entries import SESSION_CATALOG, is_external_entry, uri_text
from pyspark_delta.spark.sql.classic.plans import Query, member, option
from pyspark_delta.spark.sql.classic.relations import Description, catalog_table, table_identifier
from pyspark_delta.spark.sql.targets import (
    SqlTable,
    find_table,
    is_delta_name,
    is_path_name,
    is_temporary_view,
    session_entry,
)
from pyspark_delta.spark.sql.transactions import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import Row as SparkRow

_log = logger(__name__)
_CREATED_BY_UNKNOWN = "Created By: Spark \n"  # a connected catalog does not know the version


def with_details(spark: SparkSession, columns: DataFrame, table: SqlTable) -> DataFrame:
    """Return the result of DESCRIBE EXTENDED. `columns` are the rows before the details, and others after them."""
    rows: list[Row] = [(row[0], row[1], row[2]) for row in columns.collect()]
    before = rows[: rows.index(DETAILS) - 1] if DETAILS in rows else rows
    snapshot = shown(spark, table)
    found = [*before, *details(snapshot, _place(spark, table, snapshot))]
    arrays = [pa.array(column, pa.string()) for column in zip(*found, strict=True)]
    return frame_of_arrow(spark, pa.Table.from_arrays(arrays, schema=results.COLUMNS))


def show_properties(query: Query, node: Any, table: SqlTable) -> DataFrame:
    """Return the result of SHOW TBLPROPERTIES."""
    declared = _shown_properties(query.spark, shown(query.spark, table))
    found = results.properties(declared, option(node.propertyKey()), table.text)
    return frame_of_arrow(query.spark, found)


def show_create_table(query: Query, node: Any, table: SqlTable) -> DataFrame:
    """Return the result of SHOW CREATE TABLE. Raises InvalidOperationError for AS SERDE."""
    if node.asSerde():
        raise InvalidOperationError(
            f"'{table.text}' is a Delta table, so no statement of Hive creates it. Leave AS SERDE out.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )
    spark, entry, location = query.spark, session_entry(query.spark, table.name), None
    if entry is not None and is_external_entry(entry):
        location = uri_text(query.jvm, entry.location())
    name = f"delta.{quoted(table.name[-1])}" if is_path_name(table.name) else table.text
    statement = create_statement(shown(spark, table), name, location)
    return frame_of_arrow(spark, results.texts(createtab_stmt=[statement]))


def show_tables_extended(query: Query, node: Any) -> DataFrame:
    """Return the result of SHOW TABLE EXTENDED: Spark's, in which `information` of a Delta table is from the log."""
    _check_no_partition(query, node)
    listed = frame_of_plan(query.spark, node)
    plan: Any = listed._jdf.queryExecution().analyzed()
    is_in_session = kind_of(plan) == "ShowTablesCommand"
    catalog = SESSION_CATALOG if is_in_session else str(plan.namespace().catalog().name())
    rows = [_with_information(query.spark, catalog, row) for row in listed.collect()]
    schema = arrow_schema(listed.schema)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return frame_of_arrow(query.spark, pa.Table.from_arrays(arrays, schema=schema), listed.schema)


def show_table_partition(query: Query, node: Any, table: SqlTable) -> NoReturn:
    """Raise InvalidOperationError, as `describe_partition`."""
    _refuse_partition("SHOW TABLE EXTENDED", table)


def describe_partition(query: Query, node: Any, table: SqlTable) -> NoReturn:
    """Raise InvalidOperationError: a partition of a Delta table is nothing but a value of columns."""
    _refuse_partition("DESCRIBE TABLE", table)


def _refuse_partition(statement: str, table: SqlTable) -> NoReturn:
    raise InvalidOperationError(
        f"{statement} ... PARTITION has nothing to show: '{table.text}' is a Delta table, whose partitions have no "
        f"location or properties of their own. Use SHOW PARTITIONS, or {statement} without PARTITION.",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
        operation=f"{statement} ... PARTITION",
    )


def _check_no_partition(query: Query, node: Any) -> None:
    """Raise as `show_table_partition` on Spark 3.5, where the pattern is the name of the table with the partition."""
    spec, namespace = member(query.jvm, node, "partitionSpec"), node.namespace()
    if spec is None or not spec.isDefined() or kind_of(namespace) != "UnresolvedNamespace":
        return
    parts = (*texts(namespace.multipartIdentifier()), str(node.pattern()))
    if not is_temporary_view(query.spark, parts) and is_delta_name(query.spark, parts):
        table = find_table(query.spark, parts)
        assert table is not None
        show_table_partition(query, node, table)


def _with_information(spark: SparkSession, catalog: str, row: SparkRow) -> Sequence[Any]:
    """Return a row of SHOW TABLE EXTENDED: (schema, name, is temporary, information)."""
    schema, name, is_temporary, _ = row
    try:
        table = None if is_temporary else find_table(spark, (catalog, schema, name))
        return row if table is None else (schema, name, is_temporary, _information(spark, table))
    except DeltaError as error:
        _log.warning("SHOW TABLE EXTENDED shows what the catalog knows about %s.%s.%s: %s", catalog, *row[:2], error)
        return row  # a table that cannot be opened hides no others


def _information(spark: SparkSession, table: SqlTable) -> str:
    """Return what is known about a table as Spark writes it: one line for each fact, then the columns."""
    jvm, snapshot, entry = jvm_of(spark), shown(spark, table), session_entry(spark, table.name)
    place = _place(spark, table, snapshot)
    described = replace(Description.of(snapshot, table.name), properties=place.properties)
    identifier = table_identifier(jvm, *table.name)
    made = catalog_table(jvm, described, identifier, is_external=not place.is_managed, before=entry)
    found = str(made.simpleString()).replace(_CREATED_BY_UNKNOWN, "")
    return f"{found}\n"


def _place(spark: SparkSession, table: SqlTable, snapshot: Snapshot) -> Place:
    declared, entry = _shown_properties(spark, snapshot), session_entry(spark, table.name)
    if entry is None:
        return Place(
            name=(SESSION_CATALOG, *table.name) if is_path_name(table.name) else table.name,
            location=snapshot.location,
            properties=declared,
            is_managed=snapshot.configuration.is_catalog_managed,
        )
    is_external = is_external_entry(entry)
    return Place(
        name=table.name,
        location=uri_text(jvm_of(spark), entry.location()),
        properties=declared,
        owner=str(entry.owner()),
        is_managed=not is_external,
        is_managed_location=not is_external,
    )


def _shown_properties(spark: SparkSession, snapshot: Snapshot) -> dict[str, str]:
    """Return properties without the values that the session hides (`spark.sql.redaction.options.regex`)."""
    java: Any = spark
    declared = jvm_of(spark).map(declared_properties(snapshot))
    found = elements(java._jsparkSession.sessionState().conf().redactOptions(declared).toSeq())
    return dict(sorted((str(pair._1()), str(pair._2())) for pair in found))
