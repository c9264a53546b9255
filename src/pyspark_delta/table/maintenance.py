"""The methods of `Table` that look after it: its log, the count of rows, restoring versions, and vacuum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.data.record_counts import count_rows
from pyspark_delta.errors import InvalidOptionError, VersionNotFoundError
from pyspark_delta.features.support import check_known
from pyspark_delta.log.checkpoint_writer import TopLevelFormat
from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.log.compaction import write_compaction
from pyspark_delta.maintenance.restore import RestorePlan, plan_restore
from pyspark_delta.maintenance.undo import version_before_last_change
from pyspark_delta.maintenance.vacuum import VacuumPlan, VacuumRequest, VacuumResult, plan_vacuum
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.schema.timestamps import parse_timestamp, utc_datetime
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import require_catalog
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table.refreshing import show_change
from pyspark_delta.table.results import ChangeResult
from pyspark_delta.table.writing import Place, provenance

CommitInfo: TypeAlias = str | Mapping[str, Any] | None
Timestamp: TypeAlias = str | datetime | int | None


class RestoreOptions(TypedDict, total=False):
    """The options of `restore`."""

    ignore_missing_files: bool
    commit_info: CommitInfo


class VacuumOptions(TypedDict, total=False):
    """The options of `vacuum`."""

    mode: Literal["auto", "full", "lite"]
    inventory: Any
    keep_versions: Sequence[int]
    protect: Sequence[str]
    enforce_retention_duration: bool
    progress: ShowProgress


class MaintainedTable(ABC):
    """Maintenance of a table without Spark. `progress` is as for `WritableTable`.

    Work on the log is done at the version that the object shows; the other methods work on the latest version, and the
    object then shows the newest. With `plan=True`, a method returns what it would do, and changes nothing.
    """

    @abstractmethod
    def _place(self) -> Place: ...

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version from now on."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that this table reads."""

    def count(self, *, progress: ShowProgress = None) -> int:
        """Return the number of rows of this version, from statistics and deletion vectors, without reading data.

        Reads the Parquet footers only of files whose statistics lack the number of records. Raises CorruptLogError, and
        DataFileError for a file that must be opened and cannot be.
        """
        with operation(progress):
            return count_rows(self.snapshot)

    def checkpoint(self, top_level_format: TopLevelFormat | None = None, *, progress: ShowProgress = None) -> None:
        """Write a checkpoint of this version, so that later readers need not replay the commits before it.

        The table property `delta.checkpointPolicy` determines its kind. `top_level_format` is the format of the top
        level of a V2 checkpoint: JSON by default, and Parquet if it is large. Commits write checkpoints automatically,
        as often as `delta.checkpointInterval` requires. Raises InvalidOptionError for another format,
        UnsupportedFeatureError for a table with unknown features, ChecksumMismatchError if log and version checksum
        disagree, CorruptLogError, StorageError.
        """
        with operation(progress):
            self.snapshot.checkpoint(top_level_format)

    def compact_log(self, start: int, end: int) -> None:
        """Write a log compaction of the versions `start` to `end`, both included: readers read it in their place.

        Raises InvalidOptionError for a range of less than two versions, VersionNotFoundError for versions that are not
        in the log.
        """
        snapshot, location = self.snapshot, self.snapshot.location
        if end > snapshot.version:
            raise VersionNotFoundError(end, 0, snapshot.version, location)
        require_catalog(snapshot.configuration, location, snapshot.catalog_table)
        managed = managed_table(snapshot.catalog_table)
        if managed is not None:
            managed.publish(snapshot.store)
        write_compaction(snapshot.store, location, start, end)

    def clean_log(self, *, progress: ShowProgress = None) -> int:
        """Delete the files of the log that are older than `delta.logRetentionDuration` and that no newer version needs.

        Returns the number of deleted log files. On local storage, it also deletes temporary files of killed writers,
        including those beside data files, a week after their last write; they are not counted. Log files are deleted
        only up to a checkpoint that is old enough; without one, none is deleted. Automatic checkpoints of commits also
        clean up the log, unless `delta.enableExpiredLogCleanup` is false.

        Raises MaintenanceNotAllowedError for a managed table whose catalog does not allow it.
        """
        snapshot, location = self.snapshot, self.snapshot.location
        check_known(snapshot.configuration, location)
        managed = managed_table(snapshot.catalog_table)
        if managed is not None:
            managed.require(Maintenance.LOG_CLEANUP)
        with operation(progress):
            cleaned = clean_log(
                snapshot.store,
                location,
                snapshot.configuration,
                allowed_by_catalog=managed is not None,
                everywhere=True,
            )
        clear_cache(location)
        return cleaned.log_files + cleaned.sidecars

    @overload
    def restore(
        self,
        version: int | None = None,
        timestamp: Timestamp = None,
        *,
        plan: Literal[False] = False,
        **options: Unpack[RestoreOptions],
    ) -> ChangeResult: ...
    @overload
    def restore(
        self,
        version: int | None = None,
        timestamp: Timestamp = None,
        *,
        plan: Literal[True],
        **options: Unpack[RestoreOptions],
    ) -> RestorePlan: ...
    def restore(
        self,
        version: int | None = None,
        timestamp: Timestamp = None,
        *,
        ignore_missing_files: bool = False,
        commit_info: CommitInfo = None,
        plan: bool = False,
    ) -> ChangeResult | RestorePlan:
        """Commit an earlier version as the newest one; `timestamp` as in `Table.open`.

        Rows, schema, partitioning, properties and clustering become those of the version. Table features, values of
        identity columns, row ids and application transactions do not go back. With `ignore_missing_files`, files that
        were vacuumed are left out with their rows; otherwise they are an error. Raises VersionNotFoundError,
        TimestampOutOfRangeError, InvalidOperationError, AppendOnlyTableError, and CommitConflictError.
        """
        if (version is None) == (timestamp is None):
            raise InvalidOptionError("Give either a version or a timestamp to restore.")
        place = self._place()
        current, target = place.latest(), _open(place, version, timestamp)
        shown = None if timestamp is None else _shown(timestamp)
        made = plan_restore(current, target, ignore_missing_files=ignore_missing_files, timestamp=shown)
        return made if plan else self._restore(made, commit_info)

    @overload
    def undo(self, *, commit_info: CommitInfo = None, plan: Literal[False] = False) -> ChangeResult: ...
    @overload
    def undo(self, *, commit_info: CommitInfo = None, plan: Literal[True]) -> RestorePlan: ...
    def undo(self, *, commit_info: CommitInfo = None, plan: bool = False) -> ChangeResult | RestorePlan:
        """Restore the version before the newest commit that changed rows, schema or properties.

        Undoing twice brings the change back. Raises InvalidOperationError if that commit created the table, and as
        `restore`.
        """
        current = self._place().latest()
        made = plan_restore(current, current.at_version(version_before_last_change(current)))
        return made if plan else self._restore(made, commit_info)

    def _restore(self, plan: RestorePlan, commit_info: CommitInfo) -> ChangeResult:
        version = plan.execute(user_metadata=provenance(None, commit_info)["user_metadata"])
        show_change(self.refresh)
        return ChangeResult(version, plan.metrics)

    @overload
    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        plan: Literal[False] = False,
        **options: Unpack[VacuumOptions],
    ) -> VacuumResult: ...
    @overload
    def vacuum(
        self, retention_hours: float | None = None, *, plan: Literal[True], **options: Unpack[VacuumOptions]
    ) -> VacuumPlan: ...
    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        mode: Literal["auto", "full", "lite"] = "auto",
        inventory: Any = None,
        keep_versions: Sequence[int] = (),
        protect: Sequence[str] = (),
        enforce_retention_duration: bool = True,
        plan: bool = False,
        progress: ShowProgress = None,
    ) -> VacuumResult | VacuumPlan:
        """Delete the files that no version within the retention needs, and files that failed writers left.

        Files stay as long as the table property delta.deletedFileRetentionDuration says, one week by default, or for
        `retention_hours`. A shorter time than the property needs `enforce_retention_duration=False`; use it only if no
        other process reads or writes the table. `mode` is `full` (list all files), `lite` (only files that the log
        removed since the last vacuum), or `auto`, which chooses. `inventory` is an Arrow source with the columns path,
        length, isDir and modificationTime, in place of a listing. Files of `keep_versions`, and those that the tables
        at the locations `protect` use, such as shallow clones, stay.

        Raises InvalidOptionError, InvalidOperationError, MaintenanceNotAllowedError for a table whose catalog does not
        allow it, and StorageError if some files cannot be deleted, after the others.
        """
        place = self._place()
        request = VacuumRequest(
            retention_hours=retention_hours,
            mode=mode,
            inventory=inventory,
            keep_versions=keep_versions,
            protect=protect,
            protect_options=place.storage_options,
            enforce_retention_duration=enforce_retention_duration,
        )
        with operation(progress):
            made = plan_vacuum(place.latest(), request)
            if plan:
                return made
            result = made.execute()
        show_change(self.refresh)
        return result


def _open(place: Place, version: int | None, timestamp: Timestamp) -> Snapshot:
    return Snapshot.load(
        place.location,
        version=version,
        timestamp_ms=None if timestamp is None else parse_timestamp(timestamp),
        storage_options=place.storage_options,
        catalog_table=place.catalog_table,
    )


def _shown(timestamp: str | datetime | int) -> str:
    return timestamp if isinstance(timestamp, str) else str(utc_datetime(parse_timestamp(timestamp)))
