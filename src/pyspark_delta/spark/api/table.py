"""`DeltaTable`: a table in a Spark session, with the names that delta-spark uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Literal, TypeAlias, overload

from pyspark.sql import Column, DataFrame, SparkSession

from pyspark_delta.changes.versions import ChangeRequest
from pyspark_delta.ddl.change import TableChange, commit_change
from pyspark_delta.ddl.create import CreateMode
from pyspark_delta.ddl.protocol import add_feature, upgrade_protocol
from pyspark_delta.display import html_facts
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, PathAccessError, TableNotFoundError
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.alter import DeltaTableAlter, alteration
from pyspark_delta.spark.api.builder import DeltaTableBuilder, IdentityGenerator
from pyspark_delta.spark.api.checking import CheckedDeltaTable
from pyspark_delta.spark.api.copying import CopyingDeltaTable
from pyspark_delta.spark.api.describe import detail_frame, history_frame
from pyspark_delta.spark.api.features import DeltaTableOfFeatures
from pyspark_delta.spark.api.inspecting import InspectedDeltaTable
from pyspark_delta.spark.api.maintenance import MaintainedDeltaTable
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.api.optimize_builder import RearrangedDeltaTable
from pyspark_delta.spark.api.transaction import DeltaTransaction, begin_transaction
from pyspark_delta.spark.conf.arguments import check_protocol_version, check_text, check_values
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.write_defaults import top_level_format
from pyspark_delta.spark.engine.dml.engines import delete_statement, update_statement
from pyspark_delta.spark.engine.dml.execution import plan_statement, run_statement
from pyspark_delta.spark.engine.dml.merge import merge_statement
from pyspark_delta.spark.frames.change_feed import read_change_feed
from pyspark_delta.spark.frames.count import counting
from pyspark_delta.spark.frames.read_marks import mark_read
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.spark.frames.tables import open_snapshot, read_options
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import exists, identify, is_in_catalog, path_of_identifier
from pyspark_delta.statements.contract import Statement
from pyspark_delta.statements.plan import ChangePlan
from pyspark_delta.table import Table
from pyspark_delta.transaction.commit_info import engine_info

_Condition: TypeAlias = Column | str
_Values: TypeAlias = Mapping[str, Column | str]

__all__ = ["DeltaMergeBuilder", "DeltaTable", "DeltaTableAlter", "DeltaTableBuilder", "IdentityGenerator"]


class DeltaTable(
    MaintainedDeltaTable,
    RearrangedDeltaTable,
    CopyingDeltaTable,
    CheckedDeltaTable,
    InspectedDeltaTable,
    DeltaTableOfFeatures,
):
    """A Delta table at a path or in a catalog. Each method opens the latest version when it is called.

    >>> table = DeltaTable.forPath(spark, "/data/flights")     # doctest: +SKIP
    >>> table.toDF(version=3).where("month = 1").count()       # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        storage_options: Mapping[str, str],
        catalog_table: CatalogTable | None = None,
        alias: str | None = None,
        name: str | None = None,
    ) -> None:
        self._spark = spark
        self._location = location
        self._storage_options = dict(storage_options)
        self._catalog_table = catalog_table
        self._alias = alias
        self._name = name

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None) -> DeltaTable:
        """Return the table at a path; `hadoopConf` are settings of its file system, with keys `fs.*` and `dfs.*`.

        Raises TableNotFoundError if there is no table, and InvalidOptionError for other keys.
        """
        check_text("path", path)
        if not isinstance(hadoopConf, Mapping | None):
            raise TypeError(f"hadoopConf is a dict such as {{'fs.s3a.endpoint': '...'}}, found {hadoopConf!r}.")
        given = dict(hadoopConf or {})
        for key in given:
            if not key.startswith(("fs.", "dfs.")):
                raise InvalidOptionError(f"hadoopConf takes keys that begin with fs. or dfs., found '{key}'.")
        options = read_options(sparkSession, on_default_system(sparkSession, path), given)
        if (options.version, options.timestamp_ms) != (None, None):
            raise InvalidOptionError(
                f"'{path}' names a version of a table, but a DeltaTable has all versions. "
                "Use DeltaTable.forPath(...).toDF(version=...)."
            )
        open_snapshot(options)
        return cls(sparkSession, options.location, options.storage_options)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return the table of a path identifier (``delta.`/path` ``) or of a catalog name (`main.sales.orders`).

        The catalog must be connected. Raises TableNotFoundError, CatalogNameNotFoundError and CatalogError, and
        InvalidOperationError for any other name.
        """
        found = identify(sparkSession, check_text("tableOrViewName", tableOrViewName))
        if found is None:
            raise InvalidOperationError(
                f"'{tableOrViewName}' is neither a path identifier such as delta.`/path/to/table` nor a name in a "
                "catalog that this process is connected to. Use DeltaTable.forPath(spark, path), or connect with "
                "pyspark_delta.connect_catalog(url) and give all three parts of the name.",
                error_class="DELTA_MISSING_DELTA_TABLE",
            )
        if found.name is not None:
            options, catalog_table = found.storage_options, found.catalog_table
            return cls(sparkSession, found.path, options, catalog_table, name=found.whole_name)
        table = cls.forPath(sparkSession, found.path)
        table._name = found.whole_name
        return table

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Return True if there is a Delta table at a path or under an identifier.

        A table that can be read only through its catalog counts too. Raises UnsupportedTableError for a table that this
        client cannot read for another reason, CorruptLogError and CatalogError.
        """
        if is_in_catalog(sparkSession, check_text("identifier", identifier)):
            return exists(sparkSession, identifier)
        options = read_options(
            sparkSession, on_default_system(sparkSession, path_of_identifier(identifier) or identifier)
        )
        try:
            open_snapshot(options)
        except TableNotFoundError:
            return False
        except PathAccessError:
            return True
        return True

    # ------------------------------------------------------------------------------------------------ creation
    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder; `execute` creates the table, and raises TableAlreadyExistsError if it exists."""
        return cls._builder(sparkSession, CreateMode.CREATE)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder; `execute` creates the table if it does not exist, and otherwise changes nothing."""
        return cls._builder(sparkSession, CreateMode.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder; `execute` replaces an existing table and removes its rows.

        It raises TableNotFoundError if the table does not exist.
        """
        return cls._builder(sparkSession, CreateMode.REPLACE)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder; `execute` creates the table, or replaces it and removes its rows if it exists."""
        return cls._builder(sparkSession, CreateMode.CREATE_OR_REPLACE)

    @classmethod
    def _builder(cls, spark: SparkSession | None, mode: CreateMode) -> DeltaTableBuilder[DeltaTable]:
        session = spark or SparkSession.getActiveSession()
        if session is None:
            raise InvalidOperationError("There is no active Spark session; give one, as in DeltaTable.create(spark).")
        return DeltaTableBuilder(
            session,
            mode,
            lambda found: cls(session, found.path, found.storage_options, found.catalog_table, name=found.whole_name),
        )

    # -------------------------------------------------------------------------------------------------- reading
    def toDF(
        self,
        version: int | None = None,
        timestamp: str | datetime | int | None = None,
        *,
        where: str | None = None,
        row_tracking: bool = False,
    ) -> DataFrame:
        """Return the rows of the latest version, or of the version that `version` or `timestamp` names.

        The DataFrame stays at that version. `timestamp` is text in the session's time zone, a datetime, or milliseconds
        since the epoch. `where` is a condition in SQL. On Spark Connect, files are skipped by `where` only; a classic
        session skips files by every condition of a query. `row_tracking` adds `_row_id` and `_row_commit_version`.
        Raises VersionNotFoundError, TimestampOutOfRangeError, and InvalidOptionError if both are given.
        """
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Give either a version or a timestamp to travel to, not both.")
        snapshot = self._open(version, timestamp)
        frame = read_snapshot(self._spark, snapshot, where=where, row_tracking=row_tracking)
        if version is None and timestamp is None:
            mark_read(frame, snapshot, where)
        if self._alias is not None:
            frame = frame.alias(self._alias)
        return frame if where is not None else counting(frame, snapshot)

    def changes(
        self,
        starting_version: int | None = None,
        starting_timestamp: str | datetime | int | None = None,
        ending_version: int | None = None,
        ending_timestamp: str | datetime | int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """Return the change data feed: the rows that changed from one version to another, both included.

        A read with the option `readChangeFeed` returns the same. The columns and errors are those of `Table.changes`. A
        start is required. Timestamps are written as in `toDF`. `where` is any condition in Spark SQL.
        """
        zone = session_time_zone(self._spark)
        start, end = (
            None if timestamp is None else parse_timestamp(timestamp, time_zone=zone)
            for timestamp in (starting_timestamp, ending_timestamp)
        )
        request = ChangeRequest(starting_version, start, ending_version, end)
        return read_change_feed(self._spark, self._open(), request, columns=columns, where=where)

    def count(self) -> int:
        """Return the number of rows of the latest version.

        The log has the number; if it is missing for a file, a Spark job counts the rows.
        """
        snapshot = self._open()
        known = snapshot.record_count.total
        return read_snapshot(self._spark, snapshot).count() if known is None else known

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table with an alias, for conditions and for expressions on the DataFrame of `toDF`."""
        check_text("aliasName", aliasName)
        place = (self._location, self._storage_options, self._catalog_table)
        return DeltaTable(self._spark, *place, aliasName, self._name)

    def detail(self) -> DataFrame:
        """Return one row about the table, as DESCRIBE DETAIL shows it; sizes are bytes."""
        return detail_frame(self._spark, self._open(), self._name)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits, newest first, as DESCRIBE HISTORY shows them; at most `limit`."""
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise InvalidOptionError(f"The limit of a history is a number of commits, found {limit!r}.")
        return history_frame(self._spark, Table(self._open()).history(limit))

    # ------------------------------------------------------------------------------------------------- changing
    @overload
    def delete(self, condition: Column | str | None = None, *, plan: Literal[False] = False) -> DataFrame: ...
    @overload
    def delete(self, condition: Column | str | None = None, *, plan: Literal[True]) -> ChangePlan[DataFrame]: ...
    def delete(self, condition: Column | str | None = None, *, plan: bool = False) -> DataFrame | ChangePlan[DataFrame]:
        """Delete the rows for which a condition is true, or all rows; return one row with `num_affected_rows`.

        The count is -1 if the log has no number of rows for a removed file. With `plan`, return a plan and delete
        nothing. Raises AppendOnlyTableError, InvalidPredicateError for a condition that is not deterministic, Spark's
        own errors about the condition, and CommitConflictError if concurrent commits conflict too often.
        """
        return self._run(delete_statement(self._spark, condition, self._alias), plan)

    @overload
    def update(
        self,
        condition: _Condition | _Values | None = None,
        set: _Values | None = None,
        *,
        plan: Literal[False] = False,
    ) -> DataFrame: ...
    @overload
    def update(
        self, condition: _Condition | _Values | None = None, set: _Values | None = None, *, plan: Literal[True]
    ) -> ChangePlan[DataFrame]: ...
    def update(
        self,
        condition: _Condition | _Values | None = None,
        set: _Values | None = None,  # noqa: A002 - delta-spark's name
        *,
        plan: bool = False,
    ) -> DataFrame | ChangePlan[DataFrame]:
        """Update the rows for which a condition is true, or all rows.

        Return one row with `num_affected_rows`. `set` maps columns, also parts of structs (`a.b`), to expressions over
        the row before the update. `plan` and the errors are those of `delete`; also raises ConstraintViolationError,
        SchemaMismatchError and InvalidOperationError for new values.
        """
        if isinstance(condition, Mapping):
            condition, set = None, condition  # noqa: A001
        return self._run(update_statement(self._spark, check_values("set", set), condition, self._alias), plan)

    def merge(self, source: DataFrame, condition: Column | str) -> DeltaMergeBuilder:
        """Return a builder that merges the rows of `source` into the table; the condition says which rows match.

        Name the sides with `alias`, as in `table.alias("t").merge(rows.alias("s"), "t.id = s.id")`. Add clauses to the
        builder and call `execute`. Raises TypeError, and ValueError if the condition is None.
        """
        return DeltaMergeBuilder(
            merge_statement(self._spark, source, condition, self._alias), self._execute, self._plan
        )

    def _run(self, statement: Statement, plan: bool) -> DataFrame | ChangePlan[DataFrame]:
        return self._plan(statement) if plan else self._execute(statement)

    def _execute(self, statement: Statement) -> DataFrame:
        return run_statement(self._spark, self._open, statement)

    def _plan(self, statement: Statement) -> ChangePlan[DataFrame]:
        return plan_statement(self._spark, self._open, statement)

    def alter(self) -> DeltaTableAlter:
        """Return an object whose methods change columns, constraints, properties and clustering."""
        return DeltaTableAlter(self, alteration(self._spark, self._open))

    def transaction(self) -> AbstractContextManager[DeltaTransaction]:
        """Return a context manager that commits changes of definition and rows as one version when its block ends.

        Raises UnsupportedFeatureError for a table that cannot be written to, and CommitConflictError at the end.
        """
        return begin_transaction(self._spark, self._open(), self._alias)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol versions of the table. This cannot be undone.

        The table keeps supporting the features that its versions imply. Nothing changes if the table already has these
        versions or higher ones.
        """
        check_protocol_version("readerVersion", readerVersion)
        check_protocol_version("writerVersion", writerVersion)
        self._upgrade(lambda configuration: upgrade_protocol(configuration, readerVersion, writerVersion))

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature, and those that it requires, to the protocol. Raises InvalidOperationError if it is unknown."""
        check_text("featureName", featureName)
        self._upgrade(lambda configuration: add_feature(configuration, featureName))

    def _upgrade(self, make: Callable[[TableConfiguration], TableChange | None]) -> None:
        snapshot = self._open()
        check_writable(snapshot.configuration, snapshot.location)
        change = make(snapshot.configuration)
        if change is not None:
            commit_change(change, snapshot, engine_info=engine_info(f"PySpark/{self._spark.version}"))

    # ------------------------------------------------------------------------------------------------- the log
    def checkpoint(self) -> None:
        """Write a checkpoint of the latest version. Commits also write checkpoints at intervals.

        The session setting `spark.databricks.delta.checkpointV2.topLevelFileFormat` (`json` or `parquet`) is the format
        of the top level of a V2 checkpoint. Raises as `Table.checkpoint`.
        """
        Table(self._open()).checkpoint(top_level_format(self._spark))

    def compactLog(self, start: int, end: int) -> None:
        """Write a log compaction of the versions `start` to `end`, both included. Readers use it in place of commits.

        Raises InvalidOptionError for a range of fewer than two versions, and VersionNotFoundError.
        """
        Table(self._open()).compact_log(start, end)

    def cleanLog(self) -> int:
        """Delete the log files that are older than `delta.logRetentionDuration` and that no newer version needs.

        Return the number of deleted files. It is 0 if no checkpoint is old enough to replace them. Raises
        MaintenanceNotAllowedError if the catalog of the table does not allow it.
        """
        return Table(self._open()).clean_log()

    def __repr__(self) -> str:
        return f"DeltaTable({self._location!r})"

    def _repr_html_(self) -> str:
        detail = Table(self._open()).detail()
        names = ("location", "numFiles", "sizeInBytes", "partitionColumns", "clusteringColumns", "lastModified")
        return html_facts("DeltaTable", {name: detail[name] for name in names})

    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot:
        time_zone = session_time_zone(self._spark)
        return Snapshot.load(
            self._location,
            version=version,
            timestamp_ms=None if timestamp is None else parse_timestamp(timestamp, time_zone=time_zone),
            storage_options=self._storage_options,
            catalog_table=self._catalog_table,
        )
