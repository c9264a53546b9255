"""Carries out the statements of Delta's own grammar with the methods of `DeltaTable`, one function for each kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import pyspark.sql.functions as sf

from pyspark_delta.ddl.alter import Alteration
from pyspark_delta.ddl.identity import counts_up, identity_field, sync_identity
from pyspark_delta.errors import InvalidOperationError, TableNotFoundError
from pyspark_delta.maintenance.checking.table_repairs import remove_missing
from pyspark_delta.maintenance.missing_files import lost_files
from pyspark_delta.parser import statements as st
from pyspark_delta.parser.values import SqlText, TableName, TablePath, TableReference, TimestampAsOf, VersionAsOf
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.api.describe import detail_frame
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.sql.destinations import destination_of
from pyspark_delta.spark.sql.targets import SqlTable, find_table, is_delta_name, table_exists
from pyspark_delta.spark.sql.transactions import (
    alteration_of,
    begin,
    check_none,
    commit,
    remembering_failure,
    rollback,
    staged,
)
from pyspark_delta.storage import normalize_location
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Run: TypeAlias = "Callable[[SparkSession, Any], DataFrame | None]"

_TIMESTAMP_FORMAT = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
# Statements that make no commit of their own, or whose change can be part of the transaction's.
_IN_TRANSACTIONS = (
    *(st.DescribeDetail, st.DescribeHistory),
    *(st.BeginTransaction, st.CommitTransaction, st.RollbackTransaction),
    *(st.AddConstraint, st.DropConstraint, st.ClusterBy),
)
# Statements that Spark's grammar has too, for other tables.
_OF_SPARK_TOO = (st.AddConstraint, st.DropConstraint, st.ClusterBy)


def execute(spark: SparkSession, statement: st.DeltaStatement) -> DataFrame | None:
    """Carry out a statement; return its rows, None if it has none.

    Raises TableNotFoundError, InvalidOperationError for the name of a table that is no Delta table, and as the method
    of `DeltaTable` that does the work.
    """
    kind = type(statement)
    if kind not in _IN_TRANSACTIONS:
        check_none(spark, _CAPITAL.sub(" ", kind.__name__).upper())
    return _RUN[kind](spark, statement)


def is_of_spark_too(statement: st.DeltaStatement) -> TypeGuard[st.AddConstraint | st.DropConstraint | st.ClusterBy]:
    """Return True if Spark's grammar has a statement as well, for tables that are no Delta tables."""
    return isinstance(statement, _OF_SPARK_TOO)


def is_of_spark(spark: SparkSession, statement: st.DeltaStatement) -> bool:
    """Return True if a statement is one of Spark's: its grammar has it, and the table is no Delta table."""
    if not is_of_spark_too(statement):
        return False
    return isinstance(statement.table, TableName) and not is_delta_name(spark, statement.table.parts)


# ------------------------------------------------------------------------------------------------------------ tables
def _sql_table(spark: SparkSession, reference: TableReference) -> SqlTable:
    if isinstance(reference, TablePath):
        return SqlTable(("delta", reference.path), normalize_location(on_default_system(spark, reference.path)))
    found = find_table(spark, reference.parts)
    if found is None:
        name = ".".join(map(quoted, reference.parts))
        raise InvalidOperationError(
            f"{name} is not a Delta table. Nothing was changed. Give the path of a table, as in delta.`/path/to/table`,"
            " or the name of one in a connected catalog or in the session's.",
            error_class="DELTA_MISSING_DELTA_TABLE",
            sqlstate="42P01",
            table=name,
        )
    return found


def _table(spark: SparkSession, reference: TableReference) -> DeltaTable:
    return _sql_table(spark, reference).delta_table(spark)


def _timestamp(spark: SparkSession, time: TimestampAsOf) -> str:
    """Return a time as text in the session's time zone. Spark computes expressions."""
    given = time.timestamp
    if isinstance(given, str):
        return given
    value = sf.expr(given.text) if isinstance(given, SqlText) else sf.lit(given)
    row = spark.range(1).select(sf.date_format(value.cast("timestamp"), _TIMESTAMP_FORMAT)).head()
    text = None if row is None else row[0]
    if text is None:
        raise InvalidOperationError(
            "The time of TIMESTAMP AS OF is null. Give a timestamp, such as '2024-01-31 12:00:00'.",
            error_class="DELTA_TIMESTAMP_INVALID",
        )
    return str(text)


def _text(text: SqlText | None) -> str | None:
    return None if text is None else text.text


def _columns(paths: tuple[tuple[str, ...], ...]) -> list[str]:
    return [".".join(map(quoted, path)) for path in paths]


# -------------------------------------------------------------------------------------------------------- statements
def _vacuum(spark: SparkSession, statement: st.Vacuum) -> DataFrame:
    inventory: DataFrame | None = None
    if isinstance(statement.inventory, SqlText):
        inventory = spark.sql(statement.inventory.text)
    elif statement.inventory is not None:
        inventory = spark.table(".".join(map(quoted, statement.inventory.parts)))
    hours = statement.retain_hours
    frame = _table(spark, statement.table).vacuum(
        None if hours is None else float(hours),
        dryRun=statement.dry_run,
        mode="auto" if statement.mode is None else "full" if statement.mode == "FULL" else "lite",
        inventory=inventory,
    )
    return frame.select("path")  # as in delta-spark


def _detail(spark: SparkSession, statement: st.DescribeDetail) -> DataFrame:
    table = _sql_table(spark, statement.table)
    own = staged(spark, table.location)
    return table.delta_table(spark).detail() if own is None else detail_frame(spark, own, table.catalog_name)


def _history(spark: SparkSession, statement: st.DescribeHistory) -> DataFrame:
    return _table(spark, statement.table).history(statement.limit)


def _optimize(spark: SparkSession, statement: st.Optimize) -> DataFrame:
    builder = _table(spark, statement.table).optimize()
    if statement.where is not None:
        builder = builder.where(statement.where.text)
    if statement.zorder_by:
        return builder.executeZOrderBy(*_columns(statement.zorder_by))
    return builder.executeClustering(full=True) if statement.full else builder.executeCompaction()


def _purge(spark: SparkSession, statement: st.ReorgPurge) -> DataFrame:
    builder = _table(spark, statement.table).reorg()
    if statement.where is not None:
        builder = builder.where(statement.where.text)
    return builder.purge()


def _uniform(spark: SparkSession, statement: st.ReorgUpgradeUniform) -> None:
    raise InvalidOperationError(
        "REORG TABLE ... APPLY (UPGRADE UNIFORM ...) is not supported: pyspark-delta writes no Iceberg metadata. "
        "Nothing was changed. To rewrite files with deleted rows, use REORG TABLE ... APPLY (PURGE).",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
    )


def _restore(spark: SparkSession, statement: st.Restore) -> DataFrame:
    table = _table(spark, statement.table)
    if isinstance(statement.time, VersionAsOf):
        return table.restoreToVersion(statement.time.version)
    return table.restoreToTimestamp(_timestamp(spark, statement.time))


def _undo(spark: SparkSession, statement: st.Undo) -> DataFrame:
    return _table(spark, statement.table).undo()


def _convert(spark: SparkSession, statement: st.ConvertToDelta) -> None:
    name = statement.source.parts
    identifier = f"{name[0]}.{quoted(name[1])}" if len(name) == 2 else ".".join(map(quoted, name))
    DeltaTable.convertToDelta(
        spark, identifier, _text(statement.partition_schema), collectStatistics=statement.statistics
    )


def _generate(spark: SparkSession, statement: st.Generate) -> None:
    _table(spark, statement.table).generate(statement.mode)


def _clone(spark: SparkSession, statement: st.Clone) -> DataFrame | None:
    named = statement.target
    parts = named.parts if isinstance(named, TableName) else ("delta", named.path)
    if statement.if_not_exists or not statement.creates:
        exists = table_exists(spark, parts)
        if exists and statement.if_not_exists:
            return None
        if not exists and not statement.creates:
            name = ".".join(map(quoted, parts))
            raise TableNotFoundError(
                f"REPLACE TABLE found no table {name}. Nothing was changed. Use CREATE OR REPLACE TABLE."
            )
    source, properties = _table(spark, statement.source), dict(statement.properties)
    place = destination_of(spark, parts, statement.location)
    target = f"delta.{quoted(place.path)}" if place.name is None else ".".join(map(quoted, parts))
    arguments = (target, statement.shallow, statement.replaces, properties)
    if statement.time is None:
        done = source.clone(*arguments)
    elif isinstance(statement.time, VersionAsOf):
        done = source.cloneAtVersion(statement.time.version, *arguments)
    else:
        done = source.cloneAtTimestamp(_timestamp(spark, statement.time), *arguments)
    if place.register is not None:
        place.register(place.path, statement.location is not None)
    return done


@contextmanager
def _altering(spark: SparkSession, reference: TableReference) -> Iterator[Alteration]:
    """Yield what changes the definition of a table, in the open transaction if there is one."""
    with remembering_failure(spark):
        table = _sql_table(spark, reference)
        yield alteration_of(spark, table.snapshot, table.name)


def _add_constraint(spark: SparkSession, statement: st.AddConstraint) -> None:
    with _altering(spark, statement.table) as changes:
        changes.add_constraint(statement.name, statement.condition.text)


def _drop_constraint(spark: SparkSession, statement: st.DropConstraint) -> None:
    with _altering(spark, statement.table) as changes:
        changes.drop_constraint(statement.name, if_exists=statement.if_exists)


def _drop_feature(spark: SparkSession, statement: st.DropFeature) -> None:
    _table(spark, statement.table).dropFeatureSupport(statement.feature, statement.truncate_history or None)


def _cluster_by(spark: SparkSession, statement: st.ClusterBy) -> None:
    with _altering(spark, statement.table) as changes:
        changes.cluster_by(_columns(statement.columns))


def _sync_identity(spark: SparkSession, statement: st.SyncIdentity) -> None:
    snapshot = _sql_table(spark, statement.table).snapshot()
    field = identity_field(snapshot, statement.column)
    last = sf.max if counts_up(field) else sf.min
    row = read_snapshot(spark, snapshot).select(last(quoted(field.name))).head()
    if row is not None and row[0] is not None:
        sync_identity(snapshot, field, int(row[0]), engine_info(f"PySpark/{spark.version}"))


def _fsck(spark: SparkSession, statement: st.FsckRepair) -> DataFrame:
    snapshot = _sql_table(spark, statement.table).snapshot()
    found = lost_files(snapshot)
    if found.num_rows and not statement.dry_run:
        remove_missing(snapshot, engine_info(f"PySpark/{spark.version}"))
    return frame_of_arrow(spark, found)


def _begin(spark: SparkSession, _: st.BeginTransaction) -> None:
    begin(spark)


def _commit(spark: SparkSession, _: st.CommitTransaction) -> DataFrame:
    return commit(spark)


def _rollback(spark: SparkSession, _: st.RollbackTransaction) -> None:
    rollback(spark)


_RUN: dict[type, _Run] = {
    st.Vacuum: _vacuum,
    st.DescribeDetail: _detail,
    st.DescribeHistory: _history,
    st.Optimize: _optimize,
    st.ReorgPurge: _purge,
    st.ReorgUpgradeUniform: _uniform,
    st.Restore: _restore,
    st.Undo: _undo,
    st.ConvertToDelta: _convert,
    st.Generate: _generate,
    st.Clone: _clone,
    st.AddConstraint: _add_constraint,
    st.DropConstraint: _drop_constraint,
    st.DropFeature: _drop_feature,
    st.ClusterBy: _cluster_by,
    st.SyncIdentity: _sync_identity,
    st.FsckRepair: _fsck,
    st.BeginTransaction: _begin,
    st.CommitTransaction: _commit,
    st.RollbackTransaction: _rollback,
}
