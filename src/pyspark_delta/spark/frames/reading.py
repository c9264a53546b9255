"""From a snapshot or chosen files to a DataFrame, by the fastest scan that can read them.

The Catalyst scan is Spark's own Parquet scan over a file index in Python; the public scan uses `spark.read.parquet`. If
Spark cannot read the files, the Arrow scan reads them in Python workers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from pyspark_delta.actions.columns import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETION_VECTOR,
    MODIFICATION_TIME,
    STATS,
)
from pyspark_delta.errors import DeltaWarning
from pyspark_delta.scan.file_source import FileSource, file_source
from pyspark_delta.scan.planner import require_row_tracking
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.classes import has_data_sources
from pyspark_delta.spark.conf.data_sources import register_data_source
from pyspark_delta.spark.conf.sessions import DATA_SOURCE, session_time_zone, unwrapped_reader
from pyspark_delta.spark.conf.worker_python import prepare_workers
from pyspark_delta.spark.frames.catalyst.scan import (
    catalyst_frame,
    catalyst_frame_of_files,
    has_file_system,
    unavailable,
)
from pyspark_delta.spark.frames.public_scan import data_frame, frame_can_read, frame_of_files
from pyspark_delta.spark.frames.read_options import packed_options
from pyspark_delta.spark.frames.relation_columns import with_shown_ids
from pyspark_delta.spark.frames.tasks import task_frame
from pyspark_delta.spark.hadoop.tasks import options_for_workers
from pyspark_delta.storage.hadoop import hadoop_options
from pyspark_delta.storage.paths import split, to_hadoop

_SCANNED = (
    "path",
    "partition_values",
    "size",
    STATS.name,
    DELETION_VECTOR.name,
    BASE_ROW_ID.name,
    DEFAULT_ROW_COMMIT_VERSION.name,
)


def read_snapshot(
    spark: SparkSession, snapshot: Snapshot, *, where: str | None = None, row_tracking: bool = False
) -> DataFrame:
    """Return the rows of a snapshot for which the SQL condition `where` is true.

    With `row_tracking`, the columns `_row_id` and `_row_commit_version` follow those of the table. Raises
    InvalidOperationError if the table has none.
    """
    if is_remote() or not _jvm_reads(spark, snapshot):
        return _read_without_catalyst(spark, snapshot, where, row_tracking)

    reason = unavailable(spark)
    if reason is not None:
        _warn(reason)
        return _read_without_catalyst(spark, snapshot, where, row_tracking)
    frame = catalyst_frame(spark, snapshot, row_tracking=row_tracking)
    return frame if where is None else frame.where(where)


def _read_without_catalyst(spark: SparkSession, snapshot: Snapshot, where: str | None, row_tracking: bool) -> DataFrame:
    files = snapshot.files(columns=("path",))
    if (is_remote() or _jvm_reads(spark, snapshot)) and frame_can_read(spark, file_source(snapshot), files):
        return data_frame(spark, snapshot, where=where, row_tracking=row_tracking)
    return _data_source(spark, snapshot, where, row_tracking)


def _data_source(spark: SparkSession, snapshot: Snapshot, where: str | None, row_tracking: bool) -> DataFrame:
    """Return the Arrow scan, in which workers read the files."""
    is_committed = snapshot.as_committed is snapshot
    if snapshot.catalog_table is not None or not is_committed or not has_data_sources():
        return _read_by_tasks(spark, snapshot, where, row_tracking)
    options = {"versionAsOf": str(snapshot.version)}
    if where is not None:
        options["where"] = where
    if row_tracking:
        options["includeRowTracking"] = "true"
    return read_by_workers(spark, snapshot, options)


def _read_by_tasks(spark: SparkSession, snapshot: Snapshot, where: str | None, row_tracking: bool) -> DataFrame:
    """Return the Arrow scan of the files that this process lists and sends to the workers.

    Only this process can ask a catalog, and knows a schema that is in no commit. PySpark 3.5 has no Python Data Source.
    """
    if row_tracking:
        require_row_tracking(snapshot.configuration)
    frame = task_frame(spark, file_source(snapshot), snapshot.files(_SCANNED), row_tracking=row_tracking)
    frame = with_shown_ids(frame) if row_tracking else frame
    return frame if where is None else frame.where(where)


def read_by_workers(spark: SparkSession, snapshot: Snapshot, options: Mapping[str, str]) -> DataFrame:
    """Return the rows of a snapshot's table that the read options select, through the Python Data Source.

    Partition values and conditions may depend on the session time zone. Spark does not pass it to a data source, so an
    option does. Raises MissingDependencyError.
    """
    prepare_workers(spark)
    register_data_source(spark)
    storage_options = options_for_workers(spark, snapshot.location, snapshot.storage_options)
    given = {"timeZone": session_time_zone(spark), **packed_options(storage_options), **options}
    reader = unwrapped_reader(spark).format(DATA_SOURCE).options(**given)
    return cast(DataFrame, reader.load(to_hadoop(snapshot.location)))


def read_files(
    spark: SparkSession,
    source: FileSource,
    files: pa.Table,
    *,
    row_tracking: bool = False,
    file_number: str | None = None,
    row_index: str | None = None,
) -> DataFrame:
    """Return the rows of some data files (`actions.columns`), without deleted rows.

    Arguments as in `public_scan.frame_of_files`.
    """
    files = with_all_columns(files)
    if takes_file_index(spark, source):
        return catalyst_frame_of_files(
            spark, source, files, row_tracking=row_tracking, file_number=file_number, row_index=row_index
        )
    read = frame_of_files if reads_natively(spark, source, files) else task_frame
    return read(spark, source, files, row_tracking=row_tracking, file_number=file_number, row_index=row_index)


def with_all_columns(files: pa.Table) -> pa.Table:
    """Return the files with every column that a scan may read; unknown values are null."""
    for absent in (MODIFICATION_TIME, DELETION_VECTOR, BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION, STATS):
        if absent.name not in files.column_names:
            files = files.append_column(absent, pa.nulls(files.num_rows, absent.type))
    return files


def takes_file_index(spark: SparkSession, table: Snapshot | FileSource) -> bool:
    """Return True if the Catalyst scan can read the files of a table, in a classic session with access to them."""
    if is_remote() or not _jvm_reads(spark, table):
        return False

    return unavailable(spark) is None


def reads_natively(spark: SparkSession, source: FileSource, files: pa.Table) -> bool:
    """Return True if the public scan can read the files."""

    return (is_remote() or _jvm_reads(spark, source)) and frame_can_read(spark, source, files)


def _jvm_reads(spark: SparkSession, table: Snapshot | FileSource) -> bool:
    """Return True if Hadoop can access the table with the storage options, and Spark converts its changed types."""
    from pyspark_delta.spark.frames.relation_columns import spark_converts

    if not spark_converts(table.configuration):
        return False
    scheme = split(table.location)[0]
    if scheme == "file":
        return True
    if hadoop_options(table.location, table.storage_options) is None:
        return False

    return has_file_system(spark, to_hadoop(table.location).partition(":")[0])


def _warn(reason: str) -> None:
    """Warn that fewer files are skipped. Python shows a warning once for each line of code that causes it."""
    warnings.warn(
        f"This Spark cannot use a file index in Python ({reason}). Tables are read through its public DataFrame API, "
        "which skips files only by the option 'where'.",
        DeltaWarning,
        stacklevel=3,
    )
