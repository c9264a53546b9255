"""DESCRIBE EXTENDED, SHOW TBLPROPERTIES and SHOW CREATE TABLE of Delta tables, from the log.

Spark would show the copy in its catalog, or what its analyzer gets. Both lack NOT NULL, defaults, generated columns,
clustering and the protocol, and the copy lacks partition columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_delta.ddl.create_statement import create_statement
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.inspection.described import DETAILS, Place, Row, declared_properties, details
from pyspark_delta.interpreter import results
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.sql.classic.entries import SESSION_CATALOG, is_external_entry, uri_text
from pyspark_delta.spark.sql.classic.plans import Query, option
from pyspark_delta.spark.sql.targets import SqlTable, is_path_name, session_entry
from pyspark_delta.spark.sql.transactions import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
