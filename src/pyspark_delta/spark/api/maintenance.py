"""The methods of `DeltaTable` that look after a table: delta-spark's names and result columns, and more arguments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.policy import MaintenancePolicy, MaintenanceReport, plan_maintenance
from pyspark_delta.maintenance.restore import RESULT, RestorePlan, plan_restore
from pyspark_delta.maintenance.rewriting.request import RewriteRequest
from pyspark_delta.maintenance.undo import version_before_last_change
from pyspark_delta.maintenance.vacuum import RunOptions, VacuumPlan, VacuumRequest, plan_vacuum
from pyspark_delta.spark.conf.arguments import check_text
from pyspark_delta.spark.conf.arrow import collect_arrow
from pyspark_delta.spark.conf.write_defaults import is_set, whole_number_setting
from pyspark_delta.storage.paths import join, to_hadoop
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.snapshot import Snapshot

_ONE_LONG = "bigint"


class MaintainedDeltaTable:
    """Restoring versions, and deleting files that no version needs: in this process, without a Spark job."""

    _spark: SparkSession
    _storage_options: Mapping[str, str]

    @abstractmethod
    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot: ...

    def restoreToVersion(self, version: int, *, ignoreMissingFiles: bool = False) -> DataFrame:
        """Commit an earlier version as the newest one; return one row with numbers and sizes of files.

        Rows, schema, partitioning, properties and clustering become those of the version. Table features, values of
        identity columns and row ids do not go back. With `ignoreMissingFiles`, or the session setting
        `spark.sql.files.ignoreMissingFiles`, files that were vacuumed are left out with their rows. Raises
        VersionNotFoundError, InvalidOperationError, AppendOnlyTableError, and CommitConflictError.
        """
        if isinstance(version, bool) or not isinstance(version, int):
            raise TypeError(f"version is a number of a version, found {type(version).__name__}.")
        return self._restore(self._open(version=version), None, ignoreMissingFiles)

    def restoreToTimestamp(self, timestamp: str, *, ignoreMissingFiles: bool = False) -> DataFrame:
        """Commit the version of a time as the newest one; see `restoreToVersion`.

        `timestamp` is text such as `2024-01-31` or `2024-01-31 12:00:00`, in the session's time zone. Raises
        TimestampOutOfRangeError too.
        """
        check_text("timestamp", timestamp)
        return self._restore(self._open(timestamp=timestamp), timestamp, ignoreMissingFiles)

    def undo(self) -> DataFrame:
        """Restore the version before the newest commit that changed rows, schema or properties.

        Undoing twice brings the change back. Raises and returns as `restoreToVersion`.
        """
        current = self._open()
        return self._restore(current.at_version(version_before_last_change(current)), None, False)

    def _restore(self, target: Snapshot, timestamp: str | None, ignore_missing: bool) -> DataFrame:
        spark = self._spark
        ignore_missing |= (spark.conf.get("spark.sql.files.ignoreMissingFiles", None) or "").lower() == "true"
        plan: RestorePlan = plan_restore(self._open(), target, ignore_missing_files=ignore_missing, timestamp=timestamp)
        plan.execute(
            user_metadata=spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None),
            engine_info=engine_info(f"PySpark/{spark.version}"),
        )
        row = [plan.metrics[name] for name in RESULT.values()]
        return spark.createDataFrame([row], ", ".join(f"{name} {_ONE_LONG}" for name in RESULT))

    def maintain(
        self, policy: MaintenancePolicy | None = None, *, budget: Budget = UNLIMITED, dryRun: bool = False
    ) -> DataFrame:
        """Do the maintenance that is worth it, in this process; return a row for each kind of maintenance.

        The columns are `name`, `due`, `why`, and `result`, which is empty for what was not done. With `dryRun`, do
        nothing. The arguments and errors are those of `Table.maintain`.
        """
        limits = RewriteRequest(budget=budget)
        info = engine_info(f"PySpark/{self._spark.version}")
        plan = plan_maintenance(self._open(), policy, limits, engine_info=info)
        report: MaintenanceReport = plan if dryRun else plan.execute()
        rows = [(task.name, task.due, task.why, task.result) for task in report.tasks]
        return self._spark.createDataFrame(rows, "name string, due boolean, why string, result string")

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        dryRun: bool = False,
        mode: Literal["auto", "full", "lite"] = "auto",
        inventory: DataFrame | None = None,
        keepVersions: Sequence[int] = (),
        protect: Sequence[str] = (),
    ) -> DataFrame:
        """Delete the files that no version within the retention needs; return the table's path in column `path`.

        With `dryRun`, delete nothing and return a row for each file that would go: `path`, `size` in bytes, and `kind`.
        The other arguments and errors are those of `Table.vacuum`; `retentionHours` counts, unlike in delta-spark
        since 4.0. A time shorter than the table's needs the session setting
        `spark.databricks.delta.retentionDurationCheck.enabled` at false. The settings `vacuum.logging.enabled` and
        `vacuum.parallelDelete.*` apply as in delta-spark, with other defaults: vacuums are logged on all stores, and
        files are deleted in parallel.
        """
        plan = self._vacuum_plan(retentionHours, mode, inventory, keepVersions, protect)
        location = plan.snapshot.location
        if dryRun:
            columns = (plan.files[name].to_pylist() for name in ("path", "size", "kind"))
            rows = [(to_hadoop(join(location, path)), size, kind) for path, size, kind in zip(*columns, strict=True)]
            return self._spark.createDataFrame(rows, "path string, size bigint, kind string")
        plan.execute()
        return self._spark.createDataFrame([(to_hadoop(location),)], "path string")

    def _vacuum_plan(
        self,
        hours: float | None,
        mode: Literal["auto", "full", "lite"],
        inventory: DataFrame | None,
        keep_versions: Sequence[int],
        protect: Sequence[str],
    ) -> VacuumPlan:
        listed = None
        if inventory is not None:
            listed = collect_arrow(inventory.selectExpr("path", "length", "isDir", "modificationTime"))
        request = VacuumRequest(
            retention_hours=hours,
            mode=mode,
            inventory=listed,
            keep_versions=keep_versions,
            protect=protect,
            protect_options=self._storage_options,
            enforce_retention_duration=is_set(self._spark, "retentionDurationCheck.enabled", default=True),
            run=_run_options(self._spark),
        )
        return plan_vacuum(self._open(), request, engine_info=engine_info(f"PySpark/{self._spark.version}"))


def _run_options(spark: SparkSession) -> RunOptions:
    """Return how the session's settings let a vacuum delete files. Raises InvalidOptionError."""
    at_once = whole_number_setting(spark, "vacuum.parallelDelete.parallelism")
    parallel = is_set(spark, "vacuum.parallelDelete.enabled", default=True)
    is_logged = is_set(spark, "vacuum.logging.enabled", default=True)
    return RunOptions(is_logged=is_logged, deletes_at_once=at_once if parallel else 1)
