"""`DeltaTable.optimize()` and `reorg()`: delta-spark's builders, settings and result columns, and more arguments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.layout.cubes import CubeSizes
from pyspark_delta.maintenance.layout.plan import without_clustering_columns
from pyspark_delta.maintenance.optimize import MAX_DELETED_SHARE, OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.reorganize import PurgeRequest, plan_purge
from pyspark_delta.maintenance.rewriting.plan import RewritePlan
from pyspark_delta.spark.conf.arguments import check_text
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.write_defaults import file_options
from pyspark_delta.spark.engine.write.rewriting import placed
from pyspark_delta.storage.paths import to_hadoop
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.write.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.snapshot import Snapshot

_CUBE_SIZES = ("threshold", "targetCubeSize")
_OPTIMIZE = "spark.databricks.delta.optimize."
_SIZES = "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
_CUBES = "struct<num:bigint,size:bigint>"
_ZCUBES = "struct<numFiles:bigint,size:bigint>"
_ZORDER = (
    f"struct<strategyName:string,inputCubeFiles:{_CUBES},inputOtherFiles:{_CUBES},inputNumCubes:bigint,"
    f"mergedFiles:{_CUBES},numOutputCubes:bigint,mergedNumCubes:bigint>"
)
_CLUSTERING = (
    f"struct<inputZCubeFiles:{_ZCUBES},inputOtherFiles:{_ZCUBES},inputNumZCubes:bigint,mergedFiles:{_ZCUBES},"
    "numOutputZCubes:bigint>"
)
_AUTO_COMPACT = (
    "struct<maxClusterActiveParallelism:bigint,minClusterActiveParallelism:bigint,maxSessionActiveParallelism:bigint,"
    "minSessionActiveParallelism:bigint>"
)
METRICS = (
    f"numFilesAdded:bigint,numFilesRemoved:bigint,filesAdded:{_SIZES},filesRemoved:{_SIZES},partitionsOptimized:bigint,"
    f"zOrderStats:{_ZORDER},clusteringStats:{_CLUSTERING},numBins:bigint,numBatches:bigint,"
    "totalConsideredFiles:bigint,totalFilesSkipped:bigint,preserveInsertionOrder:boolean,"
    "numFilesSkippedToReduceWriteAmplification:bigint,numBytesSkippedToReduceWriteAmplification:bigint,"
    "startTimeMs:bigint,endTimeMs:bigint,totalClusterParallelism:bigint,totalScheduledTasks:bigint,"
    f"autoCompactParallelismStats:{_AUTO_COMPACT},"
    "deletionVectorStats:struct<numDeletionVectorsRemoved:bigint,numDeletionVectorRowsRemoved:bigint>,"
    "numTableColumns:bigint,numTableColumnsWithStats:bigint"
)
_RESULT = f"path string, metrics struct<{METRICS}>"


class RearrangedDeltaTable:
    """The builders of commands that rewrite files without changing rows."""

    _spark: SparkSession

    @abstractmethod
    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot: ...

    def optimize(self) -> DeltaOptimizeBuilder:
        """Return a builder of OPTIMIZE, which combines small files; nothing happens until one of its `execute` methods.

        The settings `spark.databricks.delta.optimize.*` apply: minFileSize, maxFileSize, maxThreads, batchSize and
        maxDeletedRowsRatio.
        """
        return DeltaOptimizeBuilder(self)

    def reorg(self) -> DeltaReorgBuilder:
        """Return a builder of REORG, which rewrites files that hold deleted rows or dropped columns."""
        return DeltaReorgBuilder(self)


class _RearrangementBuilder:
    """The options that OPTIMIZE and REORG share. Each method returns the builder."""

    def __init__(self, table: RearrangedDeltaTable) -> None:
        self._table = table
        self._where: list[str] = []
        self._target_size: int | str | None = None
        self._budget = UNLIMITED

    def where(self, partitionFilter: str) -> Self:
        """Take only the partitions for which a condition on partition columns is true; may be repeated."""
        self._where.append(check_text("partitionFilter", partitionFilter))
        return self

    def withTargetSize(self, targetSize: int | str) -> Self:
        """Set the size of new files, in bytes or as text such as `256MB`."""
        self._target_size = targetSize
        return self

    def withBudget(self, budget: Budget) -> Self:
        """Limit what the run does."""
        self._budget = budget
        return self

    def _settings(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the options of a request. Raises InvalidOptionError for an illegal setting of the session."""
        spark = self._table._spark
        target = self._target_size or _number(spark, "maxFileSize")
        return {
            "where": " AND ".join(f"({text})" for text in self._where) if len(self._where) > 1 else _only(self._where),
            "target_size": target,
            "budget": self._budget,
            "threads": _number(spark, "maxThreads"),
            "batch_size": _number(spark, "batchSize"),
            "time_zone": session_time_zone(spark),
            "files": file_options(spark, snapshot.configuration, WriteOptions()),
        }

    def _executed(self, plan: RewritePlan) -> DataFrame:
        spark = self._table._spark
        result = plan.execute(
            user_metadata=spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None),
            engine_info=engine_info(f"PySpark/{spark.version}"),
        )
        return spark.createDataFrame([(to_hadoop(plan.snapshot.location), result.as_row())], _RESULT)


class DeltaOptimizeBuilder(_RearrangementBuilder):
    """OPTIMIZE of a table, made by `DeltaTable.optimize`."""

    def executeCompaction(self) -> DataFrame:
        """Combine small files, in the partitions of `where`; return one row: the path, and delta-spark's metrics.

        Rows, their order, their ids and the change data feed stay as they are. Raises as `Table.optimize`.
        """
        return self._executed(self.plan())

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Cluster the rows of all files in the partitions of `where` by some columns; return a row as above.

        Nothing remembers the columns: the next run takes all files again. For tables that are queried by the same
        columns, clustering columns are better. Raises as `Table.optimize` with `zorder_by`.
        """
        return self._executed(self.plan(zOrderBy=_names(cols)))

    def executeClustering(self, *, full: bool = False) -> DataFrame:
        """Cluster new files of a clustered table; return a row as above.

        With `full`, also files that were clustered by other columns. Raises InvalidOperationError for a table without
        clustering columns.
        """
        snapshot = self._table._open()
        if not snapshot.clustering_columns():
            raise without_clustering_columns()
        return self._executed(self.plan(full=full))

    def plan(self, *, zOrderBy: Sequence[str] = (), full: bool = False) -> RewritePlan:
        """Return what `executeCompaction` would do, or the other methods with these arguments, and change nothing."""
        spark, snapshot = self._table._spark, self._table._open()
        share = spark.conf.get(f"{_OPTIMIZE}maxDeletedRowsRatio", None)
        request = OptimizeRequest(
            zorder_by=zOrderBy,
            full=full,
            cubes=_cube_sizes(spark),
            min_size=_number(spark, "minFileSize"),
            max_deleted_share=MAX_DELETED_SHARE if share is None else _share(share),
            **self._settings(snapshot),
        )
        return placed(spark, plan_optimize(snapshot, request))


class DeltaReorgBuilder(_RearrangementBuilder):
    """REORG of a table, made by `DeltaTable.reorg`."""

    def purge(self) -> DataFrame:
        """Rewrite files that hold deleted rows or dropped columns; return a row like `executeCompaction`.

        A vacuum then deletes the old files. Raises as `Table.purge`.
        """
        return self._executed(self.plan())

    def plan(self) -> RewritePlan:
        """Return what `purge` would do, and change nothing."""
        snapshot = self._table._open()
        return placed(self._table._spark, plan_purge(snapshot, PurgeRequest(**self._settings(snapshot))))


def _names(columns: Sequence[str | Sequence[str]]) -> tuple[str, ...]:
    """Return names that are given one by one, or as one list."""
    given = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    if not given or not all(isinstance(name, str) for name in given):
        raise TypeError(f"executeZOrderBy takes names of columns, found {list(given)!r}.")
    return tuple(str(name) for name in given)


def _cube_sizes(spark: SparkSession) -> CubeSizes | None:
    """Return how large cubes become by the settings of the session; None if these leave it to the size of the table."""
    stable, target = (_number(spark, f"clustering.mergeStrategy.minCubeSize.{name}") for name in _CUBE_SIZES)
    if stable is None and target is None:
        return None
    if target is None:
        return CubeSizes.of_stable(stable or 1)
    return CubeSizes.of_target(target) if stable is None else CubeSizes(target, stable)


def _only(conditions: list[str]) -> str | None:
    return conditions[0] if conditions else None


def _number(spark: SparkSession, name: str) -> int | None:
    """Return a setting that is a number above 0; None if the session does not set it. Raises InvalidOptionError."""
    value = spark.conf.get(_OPTIMIZE + name, None)
    if value is None:
        return None
    if not value.strip().isdigit() or int(value) < 1:
        raise InvalidOptionError(f"The session setting {_OPTIMIZE}{name} is a number above 0, found '{value}'.")
    return int(value)


def _share(value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidOptionError(
            f"The session setting {_OPTIMIZE}maxDeletedRowsRatio is a number from 0 to 1, found '{value}'."
        )
    return share
