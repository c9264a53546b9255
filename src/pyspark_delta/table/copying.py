"""The methods of `Table` that copy and convert: clones, Parquet directories, symlink manifests, statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack, overload

from pyspark_delta.catalog.names import catalog_name, resolve_or_create
from pyspark_delta.ddl.properties import property_text
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.clone import ClonePlan, CloneResult, CloneTarget, plan_clone
from pyspark_delta.maintenance.convert import ConvertPlan, ConvertRequest, plan_convert
from pyspark_delta.maintenance.manifest import MODE, ManifestPlan, ManifestResult, plan_manifest
from pyspark_delta.maintenance.statistics import StatisticsPlan, StatisticsResult, plan_statistics
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import normalize_location, own_options
from pyspark_delta.table.creation import schema_of
from pyspark_delta.table.refreshing import show_change
from pyspark_delta.table.writing import Place, provenance

CommitInfo: TypeAlias = str | Mapping[str, Any] | None
Timestamp: TypeAlias = str | datetime | int | None
Location: TypeAlias = str | PathLike[str]
Properties: TypeAlias = Mapping[str, object] | None


class CloneOptions(TypedDict, total=False):
    """The options of `clone`."""

    version: int | None
    timestamp: Timestamp
    replace: bool
    merge_files: bool
    properties: Properties
    storage_options: Mapping[str, str] | None
    commit_info: CommitInfo
    progress: ShowProgress


class ConvertOptions(TypedDict, total=False):
    """The options of `convert`."""

    where_delta_lies: Location | None
    partition_schema: Any
    statistics: bool
    skip_unreadable: bool
    properties: Properties
    storage_options: Mapping[str, str] | None
    commit_info: CommitInfo
    progress: ShowProgress


class StatisticsOptions(TypedDict, total=False):
    """The options of `compute_statistics`."""

    columns: Sequence[str] | None
    only_missing: bool
    budget: Budget
    commit_info: CommitInfo
    progress: ShowProgress


class CopyingTable(ABC):
    """Clones of a table, conversion of Parquet files to a table, and what engines need to read it without its log.

    With `plan=True`, a method returns what it would do, and changes nothing. `progress` is as for `WritableTable`.
    """

    @abstractmethod
    def _place(self) -> Place: ...

    @classmethod
    @abstractmethod
    def _at(cls, snapshot: Snapshot) -> Self:
        """Return the table at its latest version."""

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version from now on."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that this table reads."""

    # ------------------------------------------------------------------------------------------------------ clones
    @overload
    def clone(
        self, target: Location, *, shallow: bool = True, plan: Literal[False] = False, **options: Unpack[CloneOptions]
    ) -> CloneResult: ...
    @overload
    def clone(
        self, target: Location, *, shallow: bool = True, plan: Literal[True], **options: Unpack[CloneOptions]
    ) -> ClonePlan: ...
    def clone(
        self,
        target: Location,
        *,
        shallow: bool = True,
        version: int | None = None,
        timestamp: Timestamp = None,
        replace: bool = False,
        merge_files: bool = False,
        properties: Properties = None,
        storage_options: Mapping[str, str] | None = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> CloneResult | ClonePlan:
        """Create a table with the rows, schema, partitioning, properties and clustering of this version, or of another.

        A shallow clone names the data files of this table; keep them with `vacuum(protect=[clone])`. A deep clone
        copies them: an interrupted one is continued by the same call. `target` is a location, or a name in a connected
        catalog. With `replace`, an earlier clone of this table is brought up to date, of a deep clone only the
        difference is copied. `properties` are set in addition. `storage_options` are those of the target; by default
        those of this table. With `merge_files`, a new deep clone combines small files as `optimize` does.

        Row ids of a shallow clone are new. The history, application transactions and the change data feed begin with
        the clone. Raises VersionNotFoundError, TimestampOutOfRangeError, TableAlreadyExistsError,
        InvalidOperationError for a target that has other rows or files, InvalidOptionError, StorageError, and
        CommitConflictError.
        """
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Give either a version or a timestamp to clone, not both.")
        with operation(progress):
            made = plan_clone(
                self._source(version, timestamp),
                _target(target, self.snapshot, storage_options),
                shallow=shallow,
                replace=replace,
                merge_files=merge_files,
                properties=_texts(properties),
            )
            return made if plan else made.execute(user_metadata=provenance(None, commit_info)["user_metadata"])

    def _source(self, version: int | None, timestamp: Timestamp) -> Snapshot:
        snapshot = self.snapshot
        if version is None and timestamp is None:
            return snapshot
        return Snapshot.load(
            snapshot.location,
            version=version,
            timestamp_ms=None if timestamp is None else parse_timestamp(timestamp),
            storage_options=snapshot.storage_options,
            catalog_table=snapshot.catalog_table,
        )

    # -------------------------------------------------------------------------------------------------- conversion
    @overload
    @classmethod
    def convert(
        cls, location: Location, *, plan: Literal[False] = False, **options: Unpack[ConvertOptions]
    ) -> Self: ...
    @overload
    @classmethod
    def convert(cls, location: Location, *, plan: Literal[True], **options: Unpack[ConvertOptions]) -> ConvertPlan: ...
    @classmethod
    def convert(
        cls,
        location: Location,
        *,
        where_delta_lies: Location | None = None,
        partition_schema: Any = None,
        statistics: bool = True,
        skip_unreadable: bool = False,
        properties: Properties = None,
        storage_options: Mapping[str, str] | None = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> Self | ConvertPlan:
        """Make a directory of Parquet files a Delta table, and open it. The files stay as they are.

        Partition columns are those of directories such as `day=2024-01-31`: integers, dates and timestamps (UTC) if all
        values are, otherwise strings. `partition_schema`, in the forms of `create`, declares them instead, in the order
        of the directories. Statistics come from the footers. With `skip_unreadable`, files that are not Parquet are
        left out of the table. A directory that is a Delta table already is opened.

        With `where_delta_lies`, the table is at that new location, and its log names the files by absolute paths.
        Nothing is written to the directory, then or later, and a vacuum deletes nothing there.

        Raises InvalidOperationError for an empty directory, for files or directories that do not fit, and for a
        location of the log that holds the directory, lies in it or has files; SchemaMismatchError for columns that do
        not fit together or that Delta tables cannot have; and TableAlreadyExistsError.
        """
        request = ConvertRequest(
            location=normalize_location(location),
            where_delta_lies=None if where_delta_lies is None else normalize_location(where_delta_lies),
            partition_schema=None if partition_schema is None else schema_of(partition_schema),
            statistics=statistics,
            skip_unreadable=skip_unreadable,
            properties=_texts(properties),
            storage_options=dict(storage_options or {}),
        )
        with operation(progress):
            made = plan_convert(request)
            if plan:
                return made
            made.execute(user_metadata=provenance(None, commit_info)["user_metadata"])
        return cls._at(Place(request.table_location, request.storage_options).latest())

    # ------------------------------------------------------------------------------------- for engines without Delta
    @overload
    def generate(self, mode: str = MODE, *, plan: Literal[False] = False) -> ManifestResult: ...
    @overload
    def generate(self, mode: str = MODE, *, plan: Literal[True]) -> ManifestPlan: ...
    def generate(self, mode: str = MODE, *, plan: bool = False) -> ManifestResult | ManifestPlan:
        """Write symlink manifests of the latest version: text files that list the data files of each partition.

        They are in `_symlink_format_manifest`, for engines such as Presto and Athena. The table property
        `delta.compatibility.symlinkFormatManifest.enabled` keeps them up to date. Raises InvalidOptionError for another
        mode than `symlink_format_manifest`, and InvalidOperationError for a table with column mapping or with deletion
        vectors.
        """
        made = plan_manifest(self._place().latest(), mode)
        return made if plan else made.execute()

    @overload
    def compute_statistics(
        self, where: str | None = None, *, plan: Literal[False] = False, **options: Unpack[StatisticsOptions]
    ) -> StatisticsResult: ...
    @overload
    def compute_statistics(
        self, where: str | None = None, *, plan: Literal[True], **options: Unpack[StatisticsOptions]
    ) -> StatisticsPlan: ...
    def compute_statistics(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        only_missing: bool = True,
        budget: Budget = UNLIMITED,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> StatisticsResult | StatisticsPlan:
        """Compute statistics of data files that lack them: number of records, nulls, minimum and maximum.

        `where` limits this to files that may have rows for which the predicate is true, and `columns` to some columns;
        by default these are all that have statistics by the properties of the table. Without `only_missing`, all files
        are measured again. Footers are used where they suffice, otherwise the rows are read. `budget` limits the bytes
        of the files, the seconds, and the commits; another call does what is left. Raises
        InvalidPredicateError, InvalidOptionError, DataFileError, MaintenanceNotAllowedError for a table whose catalog
        does not allow it, and CommitConflictError.
        """
        with operation(progress):
            made = plan_statistics(
                self._place().latest(), where=where, columns=columns, only_missing=only_missing, budget=budget
            )
            if plan:
                return made
            result = made.execute(user_metadata=provenance(None, commit_info)["user_metadata"])
        show_change(self.refresh)
        return result


def _target(target: Location, source: Snapshot, storage_options: Mapping[str, str] | None) -> CloneTarget:
    name = catalog_name(target) if isinstance(target, str) else None
    if name is not None:
        found = resolve_or_create(name)
        return CloneTarget.open(found.location, found.storage_options, found.catalog_table)
    options = own_options(source.storage_options) if storage_options is None else dict(storage_options)
    return CloneTarget.open(normalize_location(target), options)


def _texts(properties: Properties) -> dict[str, str]:
    return {name: property_text(name, value) for name, value in (properties or {}).items()}
