"""The change data feed as a DataFrame: for each partitioning of the table, Spark reads the files in at most four scans.

The number of versions does not matter. One scan is over change data files, two over files that were added or removed
whole, with and without deletion vectors, and one over files in which commits deleted or restored rows. The kind of
change, the version and its time are constants of a file, as partition values are. They come from a file index if the
session can use one, otherwise from a join on the paths of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from pyspark_delta.changes.existing import with_statuses
from pyspark_delta.changes.files import change_sources
from pyspark_delta.changes.plan import FeedPlan, plan_changes
from pyspark_delta.changes.reader import missing_file, naming_versions
from pyspark_delta.changes.versions import ChangeRequest, VersionRange, resolve_range
from pyspark_delta.data.reader import read_tasks
from pyspark_delta.engines.tasks import FileGroup, single_files
from pyspark_delta.scan.file_source import FileSource, is_staged
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.classes import has_data_sources
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.catalyst.directories import hadoop_paths
from pyspark_delta.spark.frames.catalyst.scan import catalyst_frame_of_changes, catalyst_frame_of_files
from pyspark_delta.spark.frames.public_scan import frame_of_files
from pyspark_delta.spark.frames.read_options import OUT_OF_RANGE
from pyspark_delta.spark.frames.reading import read_by_workers, reads_natively, takes_file_index, with_all_columns
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.spark.frames.tasks import frame_of_tasks

_OUT_OF_RANGE_SETTING = f"spark.databricks.delta.{OUT_OF_RANGE}"
_PATH_NOT_FOUND = "PATH_NOT_FOUND"
_PATH_IN_MESSAGE = re.compile(r"Path does not exist: (\S+?)\.?(?:\s|$)")


def read_change_feed(
    spark: SparkSession,
    latest: Snapshot,
    request: ChangeRequest,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> DataFrame:
    """Return the changed rows in a range of versions for which `where` is true, with `columns` (all by default).

    The DataFrame stays at the versions that exist now. The session setting
    `spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled` applies too. Raises as `resolve_range` and
    `plan_changes`, and DataFileError with the version for a missing data file.
    """
    if str(spark.conf.get(_OUT_OF_RANGE_SETTING, "false")).lower() == "true":
        request = replace(request, allow_out_of_range=True)
    versions = resolve_range(latest, request)
    plan = plan_changes(latest, versions, time_zone=session_time_zone(spark))
    frame = _frame(spark, latest, plan)
    frame = frame if where is None else frame.where(where)
    return frame if columns is None else frame.select(*(quoted(name) for name in columns))


def read_last_changes(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Return the changed rows of the last version of a snapshot, which may be staged. Raises as `plan_changes`."""
    last = VersionRange(snapshot.version, snapshot.version)
    return _frame(spark, snapshot, plan_changes(snapshot, last, time_zone=session_time_zone(spark)))


def _frame(spark: SparkSession, latest: Snapshot, plan: FeedPlan) -> DataFrame:
    parts = list(_parts(latest, plan))
    if not parts:
        return empty_frame(spark, to_spark(plan.schema))
    if takes_file_index(spark, latest):
        return _read_by_catalyst(spark, latest, parts)
    if not all(reads_natively(spark, source, files) for source, files in parts):
        if latest.catalog_table is not None or is_staged(latest) or not has_data_sources():
            return _read_by_tasks(spark, plan)
        return read_by_workers(spark, latest, _options(plan.versions))
    try:
        frames = [frame_of_files(spark, source, files) for source, files in parts]
        frame = reduce(DataFrame.unionAll, frames)
        if is_remote():
            with probing():
                _ = frame.schema  # makes the server list the files
    except AnalysisException as error:
        raise _missing(error, latest, parts) or error from None
    return frame


def _read_by_catalyst(spark: SparkSession, latest: Snapshot, parts: Iterable[tuple[FileSource, pa.Table]]) -> DataFrame:
    frames: list[DataFrame] = []
    for source, files in parts:
        known = with_statuses(with_all_columns(files), latest.location, latest.storage_options)
        frames += _frames_by_catalyst(spark, source, known)
    return reduce(DataFrame.unionAll, frames)


def _frames_by_catalyst(spark: SparkSession, source: FileSource, files: pa.Table) -> Iterator[DataFrame]:
    """Yield a frame over files that are read whole, and one over files in which commits deleted or restored rows."""
    selecting = pc.fill_null(files["selects_rows"], False)
    whole = files.filter(pc.invert(selecting))
    if whole.num_rows:
        yield catalyst_frame_of_files(spark, source, whole)
    if whole.num_rows < files.num_rows:
        yield catalyst_frame_of_changes(spark, source, files.filter(selecting))


def _parts(latest: Snapshot, plan: FeedPlan) -> Iterator[tuple[FileSource, pa.Table]]:
    for scan in plan.scans:
        source = FileSource(latest.location, scan.configuration, latest.storage_options)
        yield from change_sources(source, scan.plan.files)


def _read_by_tasks(spark: SparkSession, plan: FeedPlan) -> DataFrame:
    """Read the feed of files that this process lists, where workers cannot: only it can ask a catalog."""
    tasks = (task for scan in plan.scans for task in single_files(scan.plan.context, scan.plan.files))
    return frame_of_tasks(spark, tasks, _read_files, plan.schema)


def _read_files(_: int, files: FileGroup) -> Iterator[pa.RecordBatch]:
    with naming_versions(files.context.table_location, files.tasks):
        yield from read_tasks(files.context, files.tasks())


def _options(versions: VersionRange) -> dict[str, str]:
    """Return the read options for the feed of these versions."""
    return {"readChangeFeed": "true", "startingVersion": str(versions.first), "endingVersion": str(versions.last)}


def _missing(
    error: AnalysisException, latest: Snapshot, parts: Iterable[tuple[FileSource, pa.Table]]
) -> Exception | None:
    """Return the error for a data file of the feed that Spark did not find; None for any other error."""
    if condition_of(error) != _PATH_NOT_FOUND:
        return None
    found = _PATH_IN_MESSAGE.search(str(error))
    path = (error.getMessageParameters() or {}).get("path") or (found[1] if found else "")
    versions: list[int] = []
    for _, files in parts:
        of_file = pc.equal(hadoop_paths(latest.location, files["path"]), path)
        versions += files["version"].filter(of_file).to_pylist()
    return missing_file(path, versions) if versions else None
