"""ALTER TABLE, SHOW and other commands on Delta tables of the session catalog, where Spark's own would be wrong.

Spark takes such a table for one whose definition is in its catalog. ALTER TABLE would change the catalog's copy alone,
or nothing at all. So the statement gets the path of the table in place of the name, and reaches the catalog of paths,
which changes the log. Commands that have no meaning for a Delta table are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import pyspark.sql.functions as sf

from pyspark_delta.errors import CatalogNameNotFoundError, InvalidOperationError
from pyspark_delta.interpreter import results
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.conf.after_commit import change_is_made
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.spark.frames.schemas import differences, to_spark
from pyspark_delta.spark.sql.classic.described import (
    describe_partition,
    show_create_table,
    show_properties,
    show_table_partition,
    with_details,
)
from pyspark_delta.spark.sql.classic.entries import entry_identifier, is_external_entry, write_entry
from pyspark_delta.spark.sql.classic.plans import Query, member, option
from pyspark_delta.spark.sql.classic.relations import CATALYST
from pyspark_delta.spark.sql.classic.sessions import session_catalog
from pyspark_delta.spark.sql.targets import SqlTable, is_in_session_catalog, session_entry
from pyspark_delta.spark.sql.transactions import (
    alteration_of,
    altering,
    check_none,
    is_open,
    remembering_failure,
    shown,
)
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import to_hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COPY_FAILED = "the copy of its definition in Spark's catalog could not be updated"
Run: TypeAlias = "Callable[[Query, Any, SqlTable], DataFrame | None]"


def alter(query: Query, node: Any, table: SqlTable) -> None:
    """Carry out an ALTER TABLE or COMMENT ON TABLE on the log of the table, then update the copy in the catalog.

    In a transaction, COMMIT does both. Raises as the methods of `DeltaTable.alter`, and Spark's own errors about the
    names of columns.
    """
    is_in_session = is_in_session_catalog(table.name)
    with altering(query.spark, table):
        frame_of_plan(query.spark, _by_path(query, node, table) if is_in_session else node)
    if is_in_session and not is_open(query.spark):
        with change_is_made(_COPY_FAILED):
            refresh_copy(query, table)


def describe(query: Query, node: Any, table: SqlTable) -> DataFrame:
    """Return the result of DESCRIBE TABLE, from the log: the catalog's copy has no partition columns."""
    partition = member(query.jvm, node, "partitionSpec")  # a statement of its own in newer releases of Spark
    if partition is not None and not partition.isEmpty():
        describe_partition(query, node, table)
    by_path = _by_path(query, node, table) if is_in_session_catalog(table.name) else node
    described = frame_of_plan(query.spark, by_path)
    return with_details(query.spark, described, table) if node.isExtended() else described


def describe_column(query: Query, node: Any, table: SqlTable) -> DataFrame:
    """Return the result of DESCRIBE TABLE for one column. Spark would look in its catalog for what a path resolves."""
    return frame_of_plan(query.spark, _by_path(query, node, table))


def show_columns(query: Query, node: Any, table: SqlTable) -> DataFrame:
    """Return the result of SHOW COLUMNS, from the log. Spark 3.5 has it only for its own tables."""
    return frame_of_arrow(query.spark, results.texts(col_name=shown(query.spark, table).schema.names))


def set_location(query: Query, node: Any, table: SqlTable) -> None:
    """Let the name stand for the table at another location.

    Raises TableNotFoundError if there is none, and InvalidOperationError if its columns or partitioning differ.
    """
    if node.partitionSpec().isDefined():
        _refuse("ALTER TABLE ... PARTITION ... SET LOCATION", "A partition has no location: leave PARTITION out.")
    there, here = Snapshot.load(normalize_location(str(node.location()))), table.snapshot()
    found = differences(expected=to_spark(here.schema), given=to_spark(there.schema))
    if tuple(there.metadata.partition_columns) != tuple(here.metadata.partition_columns):
        found.append(f"it is partitioned by {', '.join(there.metadata.partition_columns) or 'no column'}")
    if found:
        raise InvalidOperationError(
            f"The table at '{there.location}' is not like '{table.text}': {'; '.join(found)}. Nothing was changed. "
            "Create a table with another name for it: CREATE TABLE name USING delta LOCATION '...'.",
            error_class="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
        )
    frame_of_plan(query.spark, node)


def show_partitions(query: Query, node: Any, table: SqlTable) -> DataFrame:
    """Return the partitions: a column for each partition column, with its type, and only those of PARTITION (...).

    Raises InvalidOperationError for a table without partitions, and for a column that is no partition column.
    """
    snapshot = shown(query.spark, table)
    names = snapshot.metadata.partition_columns
    if not names:
        raise InvalidOperationError(
            f"'{table.text}' is not partitioned, so it has no partitions to show.",
            error_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
        )
    rows = read_snapshot(query.spark, snapshot).select(*map(quoted, names)).distinct()
    spec = option(node.pattern())
    for one in [] if spec is None else elements(spec.spec().toSeq()):
        name, value = str(one._1()), one._2()
        if name.casefold() not in {known.casefold() for known in names}:
            raise InvalidOperationError(
                f"PARTITION names '{name}', which is not a partition column of '{table.text}': these are "
                f"{', '.join(names)}.",
                error_class="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            )
        rows = rows.where(sf.col(quoted(name)).eqNullSafe(sf.lit(value)))
    return rows.orderBy(*map(quoted, names))


def analyze(query: Query, node: Any, table: SqlTable) -> None:
    """Compute the statistics of data files that lack them. Raises as `DeltaTable.computeStatistics`."""
    check_none(query.spark, "ANALYZE TABLE")
    if kind_of(node) == "AnalyzeTable":
        if not node.partitionSpec().isEmpty():
            _refuse("ANALYZE TABLE ... PARTITION", "Leave PARTITION out.")
        if not node.noScan():
            table.delta_table(query.spark).computeStatistics()
        return
    names = option(node.columnNames())
    columns = None if names is None else [quoted(name) for name in texts(names)]
    table.delta_table(query.spark).computeStatistics(columns=columns)


def add_check(query: Query, node: Any, table: SqlTable) -> None:
    """Add a CHECK constraint; one without a name gets Spark's. Raises as `DeltaTable.alter().addConstraint`."""
    check = node.checkConstraint()
    name = check.userProvidedName() or check.generateName(re.sub(r"\W+", "_", PurePosixPath(table.name[-1]).name))
    with remembering_failure(query.spark):
        alteration_of(query.spark, table.snapshot, table.name).add_constraint(str(name), str(check.condition()))


def drop_constraint(query: Query, node: Any, table: SqlTable) -> None:
    """Drop a constraint. Raises as `DeltaTable.alter().dropConstraint`."""
    with remembering_failure(query.spark):
        changes = alteration_of(query.spark, table.snapshot, table.name)
        changes.drop_constraint(str(node.name()), if_exists=bool(node.ifExists()))


def own_commit(statement: str) -> Run:
    """Return what raises InvalidOperationError for a statement about a table that an open transaction may change."""

    def run(query: Query, node: Any, table: SqlTable) -> None:
        check_none(query.spark, statement)

    return run


def keep_cached(query: Query, node: Any, table: SqlTable) -> None:
    """Do nothing: each query opens the table, and Spark has no entry for what a transaction has changed."""


def refused(statement: str, instead: str) -> Run:
    """Return what raises InvalidOperationError for a statement that Delta tables do not have."""

    def run(query: Query, node: Any, table: SqlTable) -> NoReturn:
        _refuse(statement, instead)

    return run


def _refuse(statement: str, instead: str) -> NoReturn:
    raise InvalidOperationError(
        f"{statement} is not supported for Delta tables. Nothing was changed. {instead}",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
        operation=statement,
    )


@contextmanager
def refreshing(query: Query, table: SqlTable) -> Iterator[None]:
    """Update the copy in the session catalog after a block that changes the definition of a table.

    If that fails, the statement is done: a warning says so. Queries update the copy too.
    """
    if not is_in_session_catalog(table.name):
        yield
        return
    before = latest_snapshot(table.location).metadata
    yield
    with change_is_made(_COPY_FAILED):
        if latest_snapshot(table.location).metadata != before:
            refresh_copy(query, table)


def refresh_copy(query: Query, table: SqlTable) -> None:
    """Update the copy of schema and properties that the session catalog has of a table."""
    update_entry(query.spark, table.snapshot(), table.name)


def update_entry(spark: SparkSession, snapshot: Snapshot, name: Sequence[str]) -> None:
    """Make the entry of a whole name in the session catalog that of a Delta table, as `write_entry`."""
    entry, catalog = session_entry(spark, name), session_catalog(spark)
    if entry is None:
        raise CatalogNameNotFoundError(f"Spark's catalog has no table {'.'.join(name)} any more.")
    identifier = entry_identifier(jvm_of(spark), name[1], name[2])
    write_entry(jvm_of(spark), catalog, identifier, snapshot, is_external=is_external_entry(entry))
    catalog.invalidateCachedTable(identifier)


def _by_path(query: Query, node: Any, table: SqlTable) -> Any:
    """Return a statement with the path of the table in place of its name."""
    jvm = query.jvm
    suggests = True if jvm.has_method(_TABLE, "suggestAlternative") else jvm.none  # Spark 3.5 has a hint in its place
    named = jvm.type(_TABLE)(jvm.seq(["delta", to_hadoop(table.location)]), "ALTER TABLE", suggests)
    return node.withNewChildren(jvm.seq([named, *elements(node.children())[1:]]))


_TABLE = f"{CATALYST}.analysis.UnresolvedTable"
_PARTITIONS = "The log has the partitions: INSERT adds them, and DELETE FROM ... WHERE removes them."
_KEYS = "Delta tables have NOT NULL and CHECK (condition)."

ALTERED = (
    "AddColumns",
    "AlterColumn",  # of Spark 3.5
    "AlterColumns",
    "AlterTableClusterBy",
    "CommentOnTable",
    "DropColumns",
    "RenameColumn",
    "ReplaceColumns",
    "SetTableProperties",
    "UnsetTableProperties",
)
"""Statements that change the definition of a table: in a transaction, those on any Delta table are ours."""

ON_SESSION_TABLES: dict[str, tuple[str, Run]] = {
    **dict.fromkeys(ALTERED, ("table", alter)),
    "DescribeColumn": ("relation", describe_column),
    "SetTableLocation": ("table", set_location),
}
"""Statements that are Spark's on paths and in connected catalogs: the field with the table, and what runs them."""

IN_TRANSACTIONS: dict[str, tuple[str, Run]] = {
    "DropTable": ("child", own_commit("DROP TABLE")),
    "RenameTable": ("child", own_commit("ALTER TABLE RENAME")),
    "RefreshTable": ("child", keep_cached),
}
"""Statements on any Delta table that are Spark's if no transaction is open."""

ON_ALL_TABLES: dict[str, tuple[str, Run]] = {
    "AddCheckConstraint": ("child", add_check),
    "AddConstraint": ("table", refused("ALTER TABLE ADD CONSTRAINT with a key", _KEYS)),
    "DropConstraint": ("table", drop_constraint),
    "DescribeRelation": ("relation", describe),
    "DescribeTablePartition": ("table", describe_partition),
    "ShowColumns": ("child", show_columns),
    "ShowCreateTable": ("child", show_create_table),
    "ShowTableProperties": ("table", show_properties),
    "ShowPartitions": ("table", show_partitions),
    "ShowTablePartition": ("table", show_table_partition),
    "AnalyzeTable": ("child", analyze),
    "AnalyzeColumn": ("child", analyze),
    "AddPartitions": ("table", refused("ALTER TABLE ADD PARTITION", _PARTITIONS)),
    "DropPartitions": ("table", refused("ALTER TABLE DROP PARTITION", _PARTITIONS)),
    "RenamePartitions": ("table", refused("ALTER TABLE PARTITION ... RENAME", _PARTITIONS)),
    "RecoverPartitions": ("child", refused("ALTER TABLE RECOVER PARTITIONS", _PARTITIONS)),
    "RepairTable": ("child", refused("MSCK REPAIR TABLE", f"{_PARTITIONS} FSCK REPAIR TABLE removes lost files.")),
    "TruncatePartition": ("table", refused("TRUNCATE TABLE ... PARTITION", "Use DELETE FROM ... WHERE.")),
    "LoadData": ("child", refused("LOAD DATA", "Use INSERT INTO ... SELECT * FROM parquet.`/path`.")),
    "SetTableSerDeProperties": ("child", refused("ALTER TABLE SET SERDE", "Delta tables are Parquet files.")),
}
"""Statements on any Delta table."""
