"""The methods of `DeltaTable` that copy and convert: delta-spark's names and result columns, and more arguments."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.properties import property_text
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.clone import ClonePlan, CloneTarget, plan_clone
from pyspark_delta.maintenance.clone.plan import METRICS
from pyspark_delta.maintenance.convert import ConvertRequest, plan_convert
from pyspark_delta.maintenance.manifest import plan_manifest
from pyspark_delta.maintenance.statistics import StatisticsPlan, plan_statistics
from pyspark_delta.schema.column_definitions import parse_columns
from pyspark_delta.spark.conf.arguments import check_text
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import Identified, identify_or_create
from pyspark_delta.storage import normalize_location, own_options
from pyspark_delta.storage.paths import is_absolute
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.schema.types import StructType
    from pyspark_delta.snapshot import Snapshot

_PARQUET = re.compile(r"\s*parquet\s*\.\s*`((?:[^`]|``)+)`\s*", re.IGNORECASE)
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_ONE_LONG = "bigint"


class CopyingDeltaTable:
    """Clones, conversion of Parquet directories, manifests and statistics: in this process, without a Spark job."""

    _spark: SparkSession
    _storage_options: Mapping[str, str]

    @classmethod
    @abstractmethod
    def forPath(cls, sparkSession: SparkSession, path: str) -> Any:
        """Return the table at a path."""

    @abstractmethod
    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot: ...

    # ------------------------------------------------------------------------------------------------------ clones
    @overload
    def clone(
        self,
        target: str,
        isShallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, object] | None = None,
        *,
        mergeFiles: bool = False,
        plan: Literal[False] = False,
    ) -> DataFrame: ...
    @overload
    def clone(
        self,
        target: str,
        isShallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, object] | None = None,
        *,
        mergeFiles: bool = False,
        plan: Literal[True],
    ) -> ClonePlan: ...
    def clone(
        self,
        target: str,
        isShallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, object] | None = None,
        *,
        mergeFiles: bool = False,
        plan: bool = False,
    ) -> DataFrame | ClonePlan:
        """Create a table with the rows of the latest version; return one row with numbers and sizes of files.

        `target` is an absolute path, a path identifier, or a name in a connected catalog or in Spark's. A shallow clone
        names the data files of this table, a deep clone (`isShallow=False`) copies them, and combines small ones with
        `mergeFiles`. The other arguments and errors are those of `Table.clone`. With `plan`, return a plan and
        change nothing.
        """
        return self._clone(self._open(), target, isShallow, replace, properties, mergeFiles, plan)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, object] | None = None,
        *,
        mergeFiles: bool = False,
    ) -> DataFrame:
        """Create a table with the rows of a version; see `clone`. Raises VersionNotFoundError too."""
        if isinstance(version, bool) or not isinstance(version, int):
            raise TypeError(f"version is a number of a version, found {type(version).__name__}.")
        return self._clone(self._open(version=version), target, isShallow, replace, properties, mergeFiles, False)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, object] | None = None,
        *,
        mergeFiles: bool = False,
    ) -> DataFrame:
        """Create a table with the rows of a time, such as `2024-01-31 12:00:00` in the session's zone; see `clone`.

        Raises TimestampOutOfRangeError too.
        """
        check_text("timestamp", timestamp)
        return self._clone(self._open(timestamp=timestamp), target, isShallow, replace, properties, mergeFiles, False)

    @overload
    def _clone(
        self,
        source: Snapshot,
        target: str,
        shallow: bool,
        replace: bool,
        properties: Mapping[str, object] | None,
        merge: bool,
        plan: Literal[False],
    ) -> DataFrame: ...
    @overload
    def _clone(
        self,
        source: Snapshot,
        target: str,
        shallow: bool,
        replace: bool,
        properties: Mapping[str, object] | None,
        merge: bool,
        plan: bool,
    ) -> DataFrame | ClonePlan: ...
    def _clone(
        self,
        source: Snapshot,
        target: str,
        shallow: bool,
        replace: bool,
        properties: Mapping[str, object] | None,
        merge: bool,
        plan: bool,
    ) -> DataFrame | ClonePlan:
        texts = {name: property_text(name, value) for name, value in (properties or {}).items()}
        named = identify_or_create(self._spark, check_text("target", target))
        made = plan_clone(
            source, self._target(target, named), shallow=shallow, replace=replace, merge_files=merge, properties=texts
        )
        if plan:
            return made
        result = made.execute(user_metadata=self._spark.conf.get(_USER_METADATA, None), engine_info=self._engine())
        if named is not None and named.register is not None:
            named.register(result.location, False)
        row = list(result.as_row().values())
        return self._spark.createDataFrame([row], ", ".join(f"{name} {_ONE_LONG}" for name in METRICS))

    def _target(self, target: str, found: Identified | None) -> CloneTarget:
        if found is not None and found.name is not None:
            return CloneTarget.open(found.path, found.storage_options, found.catalog_table)
        path = target if found is None else found.path
        if not is_absolute(path):
            raise InvalidOperationError(
                f"The target of a clone is an absolute path or a name in a connected catalog, found '{target}'.",
                error_class="DELTA_INVALID_CLONE_PATH",
                path=target,
            )
        return CloneTarget.open(
            normalize_location(on_default_system(self._spark, path)), own_options(self._storage_options)
        )

    # -------------------------------------------------------------------------------------------------- conversion
    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | SparkStruct | None = None,
        *,
        collectStatistics: bool = True,
        skipUnreadable: bool = False,
        whereDeltaLies: str | None = None,
    ) -> Self:
        """Make a directory of Parquet files a Delta table, and return it. The files stay as they are.

        `identifier` is ``parquet.`/path` ``. `partitionSchema` declares the partition columns in the order of the
        directories, as in `day date, country string`; by default they and their types come from the names of the
        directories. Zone-less timestamps there are in the session's time zone. `whereDeltaLies` is the path of the
        table if the log must not be written to the directory. Raises as `Table.convert`.
        """
        where = None if whereDeltaLies is None else check_text("whereDeltaLies", whereDeltaLies)
        request = ConvertRequest(
            location=normalize_location(_parquet_path(check_text("identifier", identifier))),
            where_delta_lies=None if where is None else normalize_location(where),
            partition_schema=_schema(partitionSchema),
            statistics=collectStatistics,
            skip_unreadable=skipUnreadable,
            time_zone=session_time_zone(sparkSession),
        )
        plan_convert(request).execute(
            user_metadata=sparkSession.conf.get(_USER_METADATA, None),
            engine_info=engine_info(f"PySpark/{sparkSession.version}"),
        )
        converted: Self = cls.forPath(sparkSession, request.table_location)
        return converted

    # ------------------------------------------------------------------------------------ for engines without Delta
    def generate(self, mode: str) -> None:
        """Write symlink manifests of the latest version; `mode` is `symlink_format_manifest`.

        Raises as `Table.generate`.
        """
        plan_manifest(self._open(), check_text("mode", mode)).execute()

    @overload
    def computeStatistics(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        onlyMissing: bool = True,
        budget: Budget = UNLIMITED,
        plan: Literal[False] = False,
    ) -> int: ...
    @overload
    def computeStatistics(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        onlyMissing: bool = True,
        budget: Budget = UNLIMITED,
        plan: Literal[True],
    ) -> StatisticsPlan: ...
    def computeStatistics(
        self,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        onlyMissing: bool = True,
        budget: Budget = UNLIMITED,
        plan: bool = False,
    ) -> int | StatisticsPlan:
        """Compute statistics of data files that lack them; return the number of these files.

        The arguments and errors are those of `Table.compute_statistics`. With `plan`, return a plan and change nothing.
        """
        made = plan_statistics(self._open(), where=where, columns=columns, only_missing=onlyMissing, budget=budget)
        if plan:
            return made
        metadata = self._spark.conf.get(_USER_METADATA, None)
        return made.execute(user_metadata=metadata, engine_info=self._engine()).num_files

    def _engine(self) -> str:
        return engine_info(f"PySpark/{self._spark.version}")


def _parquet_path(identifier: str) -> str:
    match = _PARQUET.fullmatch(identifier)
    if match is None:
        raise InvalidOperationError(
            f"convertToDelta takes an identifier such as parquet.`/path/to/directory`, found '{identifier}'.",
            error_class="DELTA_MISSING_PROVIDER_FOR_CONVERT",
            identifier=identifier,
        )
    return match[1].replace("``", "`")


def _schema(declared: str | SparkStruct | None) -> StructType | None:
    if declared is None:
        return None
    if isinstance(declared, SparkStruct):
        return from_spark(lambda: declared)
    return parse_columns(check_text("partitionSchema", declared))
