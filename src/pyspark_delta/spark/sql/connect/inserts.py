"""INSERT in all its forms on Spark Connect, with the writer of `insertInto`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyspark.sql.functions as sf
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.interpreter.qualifiers import qualifiers, requalify
from pyspark_delta.interpreter.values import rows_of_values
from pyspark_delta.parser.row_statements import InsertInto
from pyspark_delta.parser.values import Path, SqlText
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.strings import as_stored
from pyspark_delta.spark.engine.dml.stored_values import naming_values, stored
from pyspark_delta.spark.frames.positions import by_position
from pyspark_delta.spark.sql import transactions
from pyspark_delta.spark.sql.connect.names import Names
from pyspark_delta.spark.sql.connect.row_changes import RunQuery
from pyspark_delta.spark.sql.targets import SqlTable
from pyspark_delta.transaction.column_rules import check_partition_names
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.options import WriteOptions, parse_options

_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(names: Names, statement: InsertInto, table: SqlTable, run: RunQuery) -> None:
    """Carry out an INSERT.

    Raises SchemaMismatchError for columns and values that do not fit, and as `df.write`.
    """
    if statement.if_not_exists:
        raise InvalidOperationError(
            "INSERT OVERWRITE ... IF NOT EXISTS is not supported for Delta tables. Nothing was written. Leave it out.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sqlstate="0AKDC",
        )
    options = _options(names, statement, table)
    mode = "overwrite" if statement.replaces else "append"
    request = WriteRequest(table.location, mode, options, must_exist=True)
    with naming_values():
        transactions.write(names.spark, table, _new_rows(names, statement, table, run), request)


def _new_rows(names: Names, statement: InsertInto, table: SqlTable, run: RunQuery) -> DataFrame:
    """Return the new rows by the names of the table's columns, with values that can be written to them."""
    snapshot = transactions.snapshot_of(names.spark, table)
    check_partition_names(snapshot.configuration, (_column(one.column) for one in statement.partition))
    static = {_column(one.column): one.value.text for one in statement.partition if one.value is not None}
    if statement.by_name:
        frame = run(statement.query.text)
    else:
        frame = _by_position(names.spark, statement, snapshot, static, run)
    for name, value in static.items():
        frame = frame.withColumn(name, sf.expr(value))
    return stored(frame, snapshot.schema, evolves=statement.evolves)


def _by_position(
    spark: SparkSession, statement: InsertInto, snapshot: Snapshot, static: dict[str, str], run: RunQuery
) -> DataFrame:
    folded = {name.casefold() for name in static}
    listed = [name for name in snapshot.schema.names if name.casefold() not in folded]
    if statement.columns is not None:
        listed = [_column(path) for path in statement.columns]
    _check_distinct([*listed, *static])
    frame = run(_with_defaults(spark, statement.query, listed, snapshot))
    more = len(frame.columns) - len(listed)
    if more and not (statement.evolves and statement.columns is None and more > 0):
        raise SchemaMismatchError(
            f"The query has {len(frame.columns)} columns ({', '.join(frame.columns)}), and {len(listed)} are to be "
            f"inserted: {', '.join(listed)}. Nothing was written. Select as many, or list the columns.",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        )
    return by_position(frame, listed, snapshot.schema)


def _check_distinct(names: Sequence[str]) -> None:
    folded = [name.casefold() for name in names]
    twice = next((name for name in names if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise SchemaMismatchError(
            f"The column '{twice}' gets two values. Nothing was written. List each column once.",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        )


def _with_defaults(spark: SparkSession, query: SqlText, names: Sequence[str], snapshot: Snapshot) -> str:
    """Return the text of a query, in VALUES with the defaults of columns in the place of the word DEFAULT."""
    rows = rows_of_values(query)
    if rows is None or not any(value.upper() == "DEFAULT" for row in rows for value in row):
        return query.text
    defaults = {name.casefold(): text for name, text in row_rules(snapshot.configuration).defaults.items()}

    def filled(place: int, value: str) -> str:
        if value.upper() != "DEFAULT" or place >= len(names):
            return value
        return f"({as_stored(spark, defaults.get(names[place].casefold(), 'NULL'))})"

    texts = (", ".join(filled(place, value) for place, value in enumerate(row)) for row in rows)
    return f"VALUES {', '.join(f'({text})' for text in texts)}"


def _column(path: Path) -> str:
    if len(path) != 1:
        raise InvalidOperationError(
            f"{column_path_text(path)} is inside of a struct. Nothing was written. List columns of the table itself."
        )
    return path[0]


def _options(names: Names, statement: InsertInto, table: SqlTable) -> WriteOptions:
    options = replace(parse_options(table.storage_options), catalog_table=table.catalog_table)
    if statement.evolves:
        options = replace(options, merge_schema=True)
    if statement.replace_where is not None:
        where = requalify(statement.replace_where.text, qualifiers(statement.table, statement.alias))
        return replace(options, replace_where=where)
    if statement.replace_on is not None:
        return replace(options, replace_on=statement.replace_on.text, target_alias=statement.alias)
    if statement.replace_using:
        return replace(options, replace_using=tuple(column_path_text(path) for path in statement.replace_using))
    if not statement.overwrite:
        return options
    partition = statement.overwritten_partition
    if partition is not None:
        return replace(options, replace_where=partition, dynamic_partitions=False)
    dynamic = (names.spark.conf.get(_MODE, "static") or "").lower() == "dynamic"
    return replace(options, dynamic_partitions=dynamic)
