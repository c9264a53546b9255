"""From what a user asks to read to a DataFrame: the snapshot is settled, and the fastest scan that works is chosen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.utils import is_remote

from pyspark_delta.actions.columns import BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION, DELETION_VECTOR, STATS
from pyspark_delta.catalog.connections import known_table
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.errors import DeltaWarning, SchemaMismatchError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.count import counting
from pyspark_delta.spark.options import ReadOptions
from pyspark_delta.spark.quoting import quoted
from pyspark_delta.spark.read_marks import mark_read
from pyspark_delta.spark.schemas import differences, to_spark
from pyspark_delta.spark.worker_python import prepare_workers
from pyspark_delta.storage.hadoop import hadoop_options
from pyspark_delta.storage.paths import split, to_hadoop

if TYPE_CHECKING:
    from pyspark_delta.spark.scan.frames import FileSource

_SCANNED = (
    "path",
    "partition_values",
    "size",
    STATS.name,
    DELETION_VECTOR.name,
    BASE_ROW_ID.name,
    DEFAULT_ROW_COMMIT_VERSION.name,
)


def read_options(spark: SparkSession, path: str | None, options: Mapping[str, str] | None = None) -> ReadOptions:
    """Parse read options as the session means them. Raises InvalidOptionError."""
    return ReadOptions.parse(path, options, time_zone=session_time_zone(spark))


def open_snapshot(options: ReadOptions, *, tail: TailFiles | None = None) -> Snapshot:
    """The snapshot that the options name; latest ones are kept by the process.

    `tail` is what a catalog has just said of the log. Raises what `Snapshot.load` raises.
    """
    if options.version is None and options.timestamp_ms is None:
        return latest_snapshot(options.location, options.storage_options, tail=tail)
    return Snapshot.load(
        options.location,
        version=options.version,
        timestamp_ms=options.timestamp_ms,
        storage_options=options.storage_options,
        tail=tail,
    )


def read_table(
    spark: SparkSession,
    options: ReadOptions,
    given_schema: SparkStruct | None = None,
    *,
    tail: TailFiles | None = None,
) -> DataFrame:
    """The rows that the options ask for, of one version for as long as the DataFrame lives.

    `tail` is what a catalog has just said of the log. Raises SchemaMismatchError when the user gave a schema that is
    not the table's, and what opening a table raises.
    """
    snapshot = open_snapshot(options, tail=tail)
    if options.changes is not None:
        from pyspark_delta.spark.change_feed import read_change_feed

        frame = read_change_feed(spark, snapshot, options.changes, columns=options.columns, where=options.where)
        if given_schema is not None:
            _check_schema(snapshot.location, frame.schema, given_schema)
        return frame
    if given_schema is not None:
        _check_schema(snapshot.location, to_spark(snapshot.schema), given_schema)
    frame = read_snapshot(spark, snapshot, where=options.where, row_tracking=options.row_tracking)
    if options.version is None and options.timestamp_ms is None:
        mark_read(frame, snapshot, options.where)
    if options.columns is not None:
        frame = frame.select(*(quoted(name) for name in options.columns))
    return frame if options.where is not None else counting(frame, snapshot)


def read_snapshot(
    spark: SparkSession, snapshot: Snapshot, *, where: str | None = None, row_tracking: bool = False
) -> DataFrame:
    """The rows of a snapshot for which the SQL condition `where` is true.

    With `row_tracking`, the columns `_row_id` and `_row_commit_version` follow those of the table; raises
    InvalidOperationError when the table has none.
    """
    if is_remote() or not _jvm_reads(spark, snapshot):
        return _read_without_catalyst(spark, snapshot, where, row_tracking)
    from pyspark_delta.spark.scan.catalyst import catalyst_frame, unavailable

    reason = unavailable(spark)
    if reason is not None:
        _warn_once(reason)
        return _read_without_catalyst(spark, snapshot, where, row_tracking)
    frame = catalyst_frame(spark, snapshot, row_tracking=row_tracking)
    return frame if where is None else frame.where(where)


def session_time_zone(spark: SparkSession) -> str:
    """The time zone in which the session reads timestamps without one."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


def _read_without_catalyst(spark: SparkSession, snapshot: Snapshot, where: str | None, row_tracking: bool) -> DataFrame:
    from pyspark_delta.spark.scan.frames import data_frame, file_source, frame_can_read

    files = snapshot.files(columns=("path",))
    if (is_remote() or _jvm_reads(spark, snapshot)) and frame_can_read(spark, file_source(snapshot), files):
        return data_frame(spark, snapshot, where=where, row_tracking=row_tracking)
    return _data_source(spark, snapshot, where, row_tracking)


def _data_source(spark: SparkSession, snapshot: Snapshot, where: str | None, row_tracking: bool) -> DataFrame:
    """The Arrow scan: workers read the files by themselves."""
    if known_table(snapshot.storage_options) is not None:
        return _read_by_tasks(spark, snapshot, where, row_tracking)
    options = {"versionAsOf": str(snapshot.version)}
    if where is not None:
        options["where"] = where
    if row_tracking:
        options["includeRowTracking"] = "true"
    return read_by_workers(spark, snapshot, options)


def _read_by_tasks(spark: SparkSession, snapshot: Snapshot, where: str | None, row_tracking: bool) -> DataFrame:
    """The Arrow scan of a table of a catalog: only this process can ask its catalog, so workers are told the files."""
    from pyspark_delta.spark.scan.file_tasks import task_frame
    from pyspark_delta.spark.scan.frames import file_source

    frame = task_frame(spark, file_source(snapshot), snapshot.files(_SCANNED), row_tracking=row_tracking)
    return frame if where is None else frame.where(where)


def read_by_workers(spark: SparkSession, snapshot: Snapshot, options: Mapping[str, str]) -> DataFrame:
    """What the read options ask of the table of a snapshot, through the Python Data Source.

    Spark does not tell a data source the time zone of the session, which partition values and conditions may be in.
    """
    from pyspark_delta.spark.session import plain_reader
    from pyspark_delta.spark.source import DeltapySource

    prepare_workers(spark)
    spark.dataSource.register(DeltapySource)
    given = {"timeZone": session_time_zone(spark), **snapshot.storage_options, **options}
    reader = plain_reader(spark).format(DeltapySource.name()).options(**given)
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
    """The rows of some data files (`actions.columns`) that are rows of the table; see `scan.frames.frame_of_files`."""
    from pyspark_delta.spark.scan.file_tasks import task_frame
    from pyspark_delta.spark.scan.frames import frame_of_files

    files = with_all_columns(files)
    if takes_file_index(spark, source):
        from pyspark_delta.spark.scan.catalyst import catalyst_frame_of_files

        return catalyst_frame_of_files(
            spark, source, files, row_tracking=row_tracking, file_number=file_number, row_index=row_index
        )
    read = frame_of_files if reads_natively(spark, source, files) else task_frame
    return read(spark, source, files, row_tracking=row_tracking, file_number=file_number, row_index=row_index)


def with_all_columns(files: pa.Table) -> pa.Table:
    """The files with every column that a scan may look at, null where it is not known."""
    for absent in (DELETION_VECTOR, BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION, STATS):
        if absent.name not in files.column_names:
            files = files.append_column(absent, pa.nulls(files.num_rows, absent.type))
    return files


def takes_file_index(spark: SparkSession, table: Snapshot | FileSource) -> bool:
    """Whether the Catalyst scan can read the files of a table: in this JVM, which has a file system for them."""
    if is_remote() or not _jvm_reads(spark, table):
        return False
    from pyspark_delta.spark.scan.catalyst import unavailable

    return unavailable(spark) is None


def reads_natively(spark: SparkSession, source: FileSource, files: pa.Table) -> bool:
    """Whether Spark itself can read the files, through its public API."""
    from pyspark_delta.spark.scan.frames import frame_can_read

    return (is_remote() or _jvm_reads(spark, source)) and frame_can_read(spark, source, files)


def _jvm_reads(spark: SparkSession, table: Snapshot | FileSource) -> bool:
    """True if Hadoop has a file system for the table, which the options are meant for, and Spark converts its types."""
    from pyspark_delta.spark.scan.columns import spark_converts

    if not spark_converts(table.configuration):
        return False
    scheme = split(table.location)[0]
    if scheme == "file":
        return True
    if hadoop_options(table.location, table.storage_options) is None:
        return False
    from pyspark_delta.spark.scan.catalyst import has_file_system

    return has_file_system(spark, to_hadoop(table.location).partition(":")[0])


def _check_schema(location: str, expected: SparkStruct, given: SparkStruct) -> None:
    found = differences(expected=expected, given=given)
    if found:
        raise SchemaMismatchError(
            f"The schema given with .schema(...) is not the schema of '{location}': {'; '.join(found)}. "
            "Leave out .schema(...); the table knows its schema.",
            error_class="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )


_warned: set[str] = set()


def _warn_once(reason: str) -> None:
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(
            f"This Spark does not take a file index from Python ({reason}); tables are read through its public "
            "DataFrame API, where files are skipped only by the option 'where'.",
            DeltaWarning,
            stacklevel=3,
        )
