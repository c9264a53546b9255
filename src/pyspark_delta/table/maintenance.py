"""The methods of `Table` that look after its log: checkpoints, log compactions, cleanup, and the count of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.data.record_counts import count_rows
from pyspark_delta.errors import VersionNotFoundError
from pyspark_delta.features.support import check_known
from pyspark_delta.log.checkpoint_writer import TopLevelFormat
from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.log.compaction import write_compaction
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import require_catalog
from pyspark_delta.snapshot.cache import clear_cache


class MaintainedTable(ABC):
    """Work on the log of a table, at the version that the object shows. `progress` is as for `WritableTable`."""

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
