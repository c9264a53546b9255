"""The Spark-free entry point: open a version of a table, look at it, and scan it into Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Any

import pyarrow as pa

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.catalog.names import required_name, resolve
from pyspark_delta.changes.plan import ChangePlan, plan_changes
from pyspark_delta.changes.reader import changes_schema, read_changes
from pyspark_delta.changes.versions import ChangeRequest, VersionRange, resolve_range
from pyspark_delta.data.reader import read_plan
from pyspark_delta.data.row_count import count_rows
from pyspark_delta.errors import InvalidOptionError, VersionNotFoundError
from pyspark_delta.features.support import check_known
from pyspark_delta.log.checkpoint_writer import TopLevelFormat
from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.log.compaction import write_compaction
from pyspark_delta.log.history import commit_history, last_modified
from pyspark_delta.scan.explain import count_stages, explain_plan
from pyspark_delta.scan.plan import PruningStage, ScanPlan
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.scan.statistics import statistics_table
from pyspark_delta.schema.timestamps import parse_timestamp, utc_datetime
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import PUBLISHED_ONLY, require_catalog
from pyspark_delta.snapshot.cache import clear_cache, latest_snapshot
from pyspark_delta.storage import normalize_location


class Table:
    """One version of a Delta table, read without Spark.

    >>> table = Table.open("/data/flights")            # doctest: +SKIP
    >>> table.scan(columns=["origin"], where="month = 1").to_arrow()   # doctest: +SKIP
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @classmethod
    def open(
        cls,
        location: str | PathLike[str],
        *,
        version: int | None = None,
        timestamp: str | datetime | int | None = None,
        storage_options: Mapping[str, str] | None = None,
        published_only: bool = False,
    ) -> Table:
        """Open the latest version, or the one that `version` or `timestamp` names.

        `timestamp` is a text such as `2024-01-31` or `2024-01-31 12:00:00` (UTC unless it has a zone), a datetime
        (naive means UTC), or milliseconds since the epoch; the newest version not after it is opened. A table that a
        catalog manages is opened by its name, with `for_name`; `published_only` opens it by its path nevertheless, for
        reading, as far as its commits are published.

        Raises TableNotFoundError, VersionNotFoundError, TimestampOutOfRangeError, UnsupportedFeatureError, and
        CorruptLogError when the log cannot be read.
        """
        if published_only:
            storage_options = {**(storage_options or {}), PUBLISHED_ONLY: "true"}
        return cls._open(normalize_location(location), version, timestamp, storage_options)

    @classmethod
    def _open(
        cls,
        location: str,
        version: int | None,
        timestamp: str | datetime | int | None,
        storage_options: Mapping[str, str] | None,
        tail: TailFiles | None = None,
    ) -> Table:
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Give either a version or a timestamp to travel to, not both.")
        if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 0):
            raise InvalidOptionError(f"A table version is a whole number from 0 on, found {version!r}.")
        timestamp_ms = None if timestamp is None else parse_timestamp(timestamp)
        if version is None and timestamp_ms is None:
            return cls(latest_snapshot(location, storage_options, tail=tail))
        snapshot = Snapshot.load(
            location, version=version, timestamp_ms=timestamp_ms, storage_options=storage_options, tail=tail
        )
        return cls(snapshot)

    @classmethod
    def for_name(cls, name: str, *, version: int | None = None, timestamp: str | datetime | int | None = None) -> Table:
        """Open a table of a connected catalog, such as `main.sales.orders`; otherwise as `open`.

        Raises CatalogNameNotFoundError, CatalogError, and as `open`.
        """
        resolved = resolve(required_name(name))
        return cls._open(resolved.location, version, timestamp, resolved.storage_options, resolved.tail)

    def __repr__(self) -> str:
        return f"Table({self.location!r}, version={self.version})"

    @property
    def location(self) -> str:
        """Where the table is: a path, or `scheme://authority/key`."""
        return self._snapshot.location

    @property
    def version(self) -> int:
        """The version that was opened."""
        return self._snapshot.version

    @property
    def protocol(self) -> Protocol:
        """The protocol versions and table features of this version."""
        return self._snapshot.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        """The table's id, name, properties and schema text."""
        return self._snapshot.configuration.metadata

    @property
    def schema(self) -> StructType:
        """The logical schema."""
        return self._snapshot.configuration.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names of the partition columns."""
        return self._snapshot.configuration.partition_columns

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot under this table."""
        return self._snapshot

    def detail(self) -> dict[str, Any]:
        """What `DESCRIBE DETAIL` shows, by the same names: format, id, location, numFiles, sizeInBytes, ...

        Times are datetimes in UTC, sizes are bytes.
        """
        snapshot, metadata, protocol = self._snapshot, self.metadata, self.protocol
        features = protocol.listed_features
        return {
            "format": "delta",
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "location": self.location,
            "createdAt": utc_datetime(metadata.created_time),
            "lastModified": utc_datetime(last_modified(snapshot)),
            "partitionColumns": list(self.partition_columns),
            "clusteringColumns": snapshot.clustering_columns(),
            "numFiles": snapshot.num_files(),
            "sizeInBytes": snapshot.size_in_bytes(),
            "properties": dict(metadata.configuration),
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "tableFeatures": sorted(features),
        }

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits from this version back, newest first, by the names of `DESCRIBE HISTORY`.

        `limit` commits at most; only so many are read. Fields that a commit does not give are None.
        """
        if limit is not None and limit < 0:
            raise InvalidOptionError(f"The limit of a history is a number of commits from 0 on, found {limit}.")
        return commit_history(self._snapshot, limit)

    def files(self) -> pa.Table:
        """The live data files, one row each: path and partition values as in the log, size in bytes, times in ms."""
        return self._snapshot.files(
            ("path", "partition_values", "size", "modification_time", "stats", "deletion_vector")
        )

    def stats(self) -> pa.Table:
        """The statistics of the live data files, typed, one row each, in no order.

        Columns: `path` as in the log; `numRecords`, rows without regard to a deletion vector; `tightBounds` (false:
        the bounds may be wider than the values, C410); and the structs `minValues`, `maxValues` and `nullCount` with
        the columns of the table that can have them, by logical name and of the type in the schema. Bounds of strings
        are cut after 32 characters or so, those of timestamps to milliseconds (C412). Null is what a writer did not
        give. Partition columns have no statistics: see `files`.

        Read from `stats_parsed` of a checkpoint that has it, and from JSON otherwise. Raises CorruptLogError.
        """
        return statistics_table(self._snapshot)

    def count(self) -> int:
        """How many rows this version has, without reading data: from statistics and deletion vectors.

        Only for files without the number of records in their statistics the Parquet footers are read. Raises
        CorruptLogError, and DataFileError for a file that must be opened and cannot be.
        """
        return count_rows(self._snapshot)

    def checkpoint(self, top_level_format: TopLevelFormat | None = None) -> None:
        """Write a checkpoint of this version, so that later readers need not replay the commits before it.

        Its kind is that of the table property `delta.checkpointPolicy`; `top_level_format` is how the top level of a
        V2 checkpoint is written, by default as JSON, and as Parquet where it is large. Commits make checkpoints by
        themselves, as often as `delta.checkpointInterval` says. Raises InvalidOptionError for another format,
        UnsupportedFeatureError for a table with unknown features, ChecksumMismatchError where log and version checksum
        disagree, CorruptLogError, StorageError.
        """
        self._snapshot.checkpoint(top_level_format)

    def compact_log(self, start: int, end: int) -> None:
        """Write a log compaction of the versions `start` to `end`, both included: readers read it in their place.

        Raises InvalidOptionError for a range of less than two versions, VersionNotFoundError for versions that are not
        in the log.
        """
        if end > self.version:
            raise VersionNotFoundError(end, 0, self.version, self.location)
        snapshot = self._snapshot
        require_catalog(snapshot.configuration, self.location, snapshot.storage_options)
        managed = managed_table(snapshot.storage_options)
        if managed is not None:
            managed.publish(snapshot.store)
        write_compaction(self._snapshot.store, self.location, start, end)

    def clean_log(self) -> int:
        """Delete the files of the log that are older than `delta.logRetentionDuration` and that no newer version needs.

        Returns how many went. On local storage, temporary files of writers that were killed go too, also those beside
        data files, a week after their last write; they are not counted. For log files a checkpoint that is old enough
        must stand; without one, none goes. Checkpoints that commits make do this by themselves, unless
        `delta.enableExpiredLogCleanup` is false.

        Raises MaintenanceNotAllowedError for a managed table whose catalog does not allow it.
        """
        check_known(self._snapshot.configuration, self.location)
        managed = managed_table(self._snapshot.storage_options)
        if managed is not None:
            managed.require(Maintenance.LOG_CLEANUP)
        cleaned = clean_log(
            self._snapshot.store,
            self.location,
            self._snapshot.configuration,
            allowed_by_catalog=managed is not None,
            everywhere=True,
        )
        clear_cache(self.location)
        return cleaned.log_files + cleaned.sidecars

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> Scan:
        """Plan a read of some columns (all by default) of the rows that the SQL predicate `where` is true for.

        Raises InvalidPredicateError for a predicate that cannot be parsed, names an unknown column, or uses a function
        that is only available in Spark.
        """
        return Scan(plan_scan(self._snapshot, columns, where), self._snapshot)

    def changes(
        self,
        starting_version: int | None = None,
        starting_timestamp: str | datetime | int | None = None,
        ending_version: int | None = None,
        ending_timestamp: str | datetime | int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        allow_out_of_range: bool = False,
    ) -> Changes:
        """Plan a read of the change data feed: the rows that changed from one version to another, both included.

        A start is needed, by version or by time: the first version not before `starting_timestamp` (written as in
        `open`). Without an end, changes up to this version are read. The rows have the columns that the table has at
        the end, and `_change_type` (insert, update_preimage, update_postimage, delete), `_commit_version` and
        `_commit_timestamp`; `columns` and `where` may name these too.

        With `allow_out_of_range`, there are no changes after this version; without, a start or a time after it is an
        error. Raises VersionNotFoundError, TimestampOutOfRangeError, InvalidOptionError; InvalidOperationError where
        the feed was not enabled or the range is reversed; UnsupportedTableError where the columns changed in a way
        that no one schema can show.
        """
        request = ChangeRequest(
            starting_version,
            None if starting_timestamp is None else parse_timestamp(starting_timestamp),
            ending_version,
            None if ending_timestamp is None else parse_timestamp(ending_timestamp),
            allow_out_of_range,
        )
        versions = resolve_range(self._snapshot, request)
        return Changes(plan_changes(self._snapshot, versions, columns, where))


@dataclass(frozen=True)
class Scan:
    """A planned read: which files, which columns. Nothing is read from data files before it is asked for."""

    plan: ScanPlan
    snapshot: Snapshot

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self.plan.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow record batches, read as they are consumed: memory does not grow with the table."""
        reader = read_plan(self.plan)
        yield from reader

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table."""
        return read_plan(self.plan).read_all()

    def files(self) -> pa.Table:
        """The files that skipping kept, columns as in `Table.files`."""
        return self.plan.files

    def stages(self) -> tuple[PruningStage, ...]:
        """The stages of skipping, with how many files each of them kept."""
        return count_stages(self.plan, self.snapshot)

    def explain(self) -> str:
        """How many files each stage of skipping kept, and why, as text."""
        return explain_plan(self.plan, self.snapshot)


@dataclass(frozen=True)
class Changes:
    """A planned read of the change data feed. Nothing is read from data files before it is asked for."""

    plan: ChangePlan

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self.plan.schema

    @property
    def versions(self) -> VersionRange:
        """The versions whose changes are read; none where `last` is less than `first`."""
        return self.plan.versions

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changed rows as Arrow record batches, read as they are consumed."""
        yield from read_changes(self.plan)

    def to_arrow(self) -> pa.Table:
        """The changed rows as one Arrow table."""
        return pa.Table.from_batches(read_changes(self.plan), changes_schema(self.plan))
