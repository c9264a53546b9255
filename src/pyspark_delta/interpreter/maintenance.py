"""Delta's own statements, on `Table`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.ddl.identity import counts_up, identity_field, sync_identity
from pyspark_delta.errors import InvalidOperationError, TableNotFoundError
from pyspark_delta.interpreter import results
from pyspark_delta.interpreter.names import Target, travel
from pyspark_delta.interpreter.qualifiers import qualifiers, requalify
from pyspark_delta.interpreter.session import Session
from pyspark_delta.maintenance.checking.table_repairs import remove_missing
from pyspark_delta.maintenance.missing_files import lost_files
from pyspark_delta.maintenance.restore import RESULT
from pyspark_delta.parser.statements import (
    AddConstraint,
    Clone,
    ClusterBy,
    ConvertToDelta,
    DeltaStatement,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    FsckRepair,
    Generate,
    Optimize,
    ReorgPurge,
    ReorgUpgradeUniform,
    Restore,
    SyncIdentity,
    Undo,
    Vacuum,
)
from pyspark_delta.parser.values import SqlText, TableReference
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.storage.paths import join, to_hadoop
from pyspark_delta.table import Table
from pyspark_delta.table.descriptions import DETAIL, HISTORY, rows
from pyspark_delta.transaction.commit_info import engine_info


def describe_detail(statement: DescribeDetail, session: Session) -> pa.Table:
    """Return the one row of `Table.detail`, with the name of a table of a catalog."""
    detail, name = session.open(statement.table).detail(), session.names.resolve(statement.table).name
    if name is not None:
        detail["name"] = name.unquoted
    return rows(DETAIL, [detail])


def describe_history(statement: DescribeHistory, session: Session) -> pa.Table:
    """Return the commits, newest first."""
    return rows(HISTORY, session.open(statement.table).history(statement.limit))


def vacuum(statement: Vacuum, session: Session) -> pa.Table:
    """Delete files; return the path of the table, or for DRY RUN the files that would be deleted."""
    table = session.open(statement.table)
    options: dict[str, Any] = {
        "retention_hours": None if statement.retain_hours is None else float(statement.retain_hours),
        "mode": (statement.mode or "auto").lower(),
        "inventory": _inventory(statement, session),
        "progress": session.progress,
    }
    if statement.dry_run:
        files = table.vacuum(plan=True, **options).files
        return results.texts(path=[to_hadoop(join(table.location, path)) for path in files["path"].to_pylist()])
    table.vacuum(**options)
    return results.texts(path=[to_hadoop(table.location)])


def _inventory(statement: Vacuum, session: Session) -> Any:
    match statement.inventory:
        case None:
            return None
        case SqlText() as query:
            return session.query(query.text).read_all()
        case name:
            return session.open(name).scan()


def optimize(statement: Optimize, session: Session) -> pa.Table:
    """Rewrite files; return the path of the table and metrics."""
    table = session.open(statement.table)
    done = table.optimize(
        where=_where(statement.where, statement.table),
        zorder_by=tuple(column_path_text(path) for path in statement.zorder_by),
        full=statement.full,
        progress=session.progress,
    )
    return _rewritten(table, done)


def reorg_purge(statement: ReorgPurge, session: Session) -> pa.Table:
    """Rewrite files with deleted rows and dropped columns; return the path of the table and metrics."""
    table = session.open(statement.table)
    return _rewritten(table, table.purge(_where(statement.where, statement.table), progress=session.progress))


def _where(where: SqlText | None, table: TableReference) -> str | None:
    return None if where is None else requalify(where.text, qualifiers(table, None))


def _rewritten(table: Table, done: Any) -> pa.Table:
    return pa.Table.from_pylist([{"path": to_hadoop(table.location), "metrics": done.as_row()}])


def reorg_upgrade(statement: ReorgUpgradeUniform, session: Session) -> pa.Table:
    """Refuse: Iceberg metadata is written by Spark with Delta's JAR only."""
    raise InvalidOperationError(
        "REORG TABLE ... APPLY (UPGRADE UNIFORM ...) is not supported: pyspark-delta writes no Iceberg metadata.",
        error_class="DELTA_UNSUPPORTED_STATEMENT",
    )


def restore(statement: Restore, session: Session) -> pa.Table:
    """Commit an earlier version as the newest; return numbers and sizes of files."""
    version, timestamp = travel(statement.time)
    return _restored(session.open(statement.table).restore(version, timestamp))


def undo(statement: Undo, session: Session) -> pa.Table:
    """Take the last change back; return what RESTORE returns."""
    return _restored(session.open(statement.table).undo())


def _restored(done: Any) -> pa.Table:
    return results.counts(**{column: done.metrics[name] for column, name in RESULT.items()})


def convert(statement: ConvertToDelta, session: Session) -> pa.Table:
    """Make a directory of Parquet files a table."""
    source = statement.source
    if source.file_format != "parquet":
        raise InvalidOperationError(
            f"CONVERT TO DELTA takes a directory of Parquet files, as in parquet.`/path`, found "
            f"{column_path_text(source.parts)}.",
            error_class="DELTA_CONVERT_NON_PARQUET_TABLE",
        )
    columns = statement.partition_schema
    Table.convert(
        source.parts[1],
        partition_schema=None if columns is None else columns.text,
        statistics=statement.statistics,
        storage_options=session.storage_options,
        progress=session.progress,
    )
    return results.NOTHING


def generate(statement: Generate, session: Session) -> pa.Table:
    """Write manifests."""
    session.open(statement.table).generate(statement.mode)
    return results.NOTHING


def clone(statement: Clone, session: Session) -> pa.Table:
    """Clone a table; return numbers and sizes of files."""
    source = session.open(statement.source)
    target = _clone_target(statement, session)
    if statement.if_not_exists and target.exists():
        return results.NOTHING
    if not statement.creates and not target.exists():
        raise TableNotFoundError(target.shown, "REPLACE TABLE replaces a table that exists")
    version, timestamp = travel(statement.time)
    done = source.clone(
        str(target.name) if target.name is not None else str(target.location),
        shallow=statement.shallow,
        version=version,
        timestamp=timestamp,
        replace=statement.replaces,
        properties=dict(statement.properties),
        progress=session.progress,
    )
    return results.counts(**done.as_row())


def _clone_target(statement: Clone, session: Session) -> Target:
    if statement.location is not None:
        raise InvalidOperationError(
            "LOCATION is not supported for clones without Spark. Name the target by its path, as in "
            f"CREATE TABLE delta.`{statement.location}` SHALLOW CLONE ..."
        )
    return session.names.resolve(statement.target)


# ------------------------------------------------------------------------------------------------------ ALTER TABLE
def add_constraint(statement: AddConstraint, session: Session) -> pa.Table:
    """Add a CHECK constraint."""
    table = session.open(statement.table)
    table.alter(progress=session.progress).add_constraint(statement.name, statement.condition.text)
    return results.NOTHING


def drop_constraint(statement: DropConstraint, session: Session) -> pa.Table:
    """Drop a CHECK constraint."""
    session.open(statement.table).alter().drop_constraint(statement.name, if_exists=statement.if_exists)
    return results.NOTHING


def drop_feature(statement: DropFeature, session: Session) -> pa.Table:
    """Drop a table feature."""
    session.open(statement.table).drop_feature(statement.feature, truncate_history=statement.truncate_history)
    return results.NOTHING


def cluster_by(statement: ClusterBy, session: Session) -> pa.Table:
    """Set the clustering columns."""
    session.open(statement.table).alter().cluster_by(*(column_path_text(path) for path in statement.columns))
    return results.NOTHING


def sync(statement: SyncIdentity, session: Session) -> pa.Table:
    """Move the high-water mark of an identity column to the values of the rows."""
    table = session.open(statement.table)
    field = identity_field(table.snapshot, statement.column)
    last, marks = (max if counts_up(field) else min), list[int]()
    with session.operation():
        for batch in table.scan(columns=[column_path_text((field.name,))]).to_reader():
            ends = pc.min_max(batch.column(0)).as_py()
            marks += [value for value in ends.values() if value is not None]
    if marks:
        sync_identity(table.snapshot, field, last(marks), engine_info())
    return results.NOTHING


def repair(statement: FsckRepair, session: Session) -> pa.Table:
    """Remove files that are not in storage from the table, or whose deletion vectors are not; return their paths."""
    snapshot = session.open(statement.table).snapshot
    found = lost_files(snapshot)
    if found.num_rows and not statement.dry_run:
        remove_missing(snapshot, engine_info())
    return found


HANDLERS: dict[type[DeltaStatement], Callable[[Any, Session], pa.Table]] = {
    AddConstraint: add_constraint,
    Clone: clone,
    ClusterBy: cluster_by,
    ConvertToDelta: convert,
    DescribeDetail: describe_detail,
    DescribeHistory: describe_history,
    DropConstraint: drop_constraint,
    DropFeature: drop_feature,
    FsckRepair: repair,
    Generate: generate,
    Optimize: optimize,
    ReorgPurge: reorg_purge,
    ReorgUpgradeUniform: reorg_upgrade,
    Restore: restore,
    SyncIdentity: sync,
    Undo: undo,
    Vacuum: vacuum,
}
