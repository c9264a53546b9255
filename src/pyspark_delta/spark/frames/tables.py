"""From read options to a DataFrame: opens the snapshot, and reads its rows or its change feed."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.change_feed import read_change_feed
from pyspark_delta.spark.frames.count import counting
from pyspark_delta.spark.frames.read_marks import mark_read
from pyspark_delta.spark.frames.read_options import ReadOptions
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.spark.frames.schemas import differences, to_spark


def read_options(spark: SparkSession, path: str | None, options: Mapping[str, str] | None = None) -> ReadOptions:
    """Parse read options with the session's defaults. Raises InvalidOptionError."""
    return ReadOptions.parse(path, options, time_zone=session_time_zone(spark))


def open_snapshot(options: ReadOptions, *, tail: TailFiles | None = None) -> Snapshot:
    """Return the snapshot that the options name; the process caches the latest ones.

    `tail` is the log tail that a catalog has just returned. Raises as `Snapshot.load`.
    """
    if options.version is None and options.timestamp_ms is None:
        return latest_snapshot(
            options.location, options.storage_options, catalog_table=options.catalog_table, tail=tail
        )
    return Snapshot.load(
        options.location,
        version=options.version,
        timestamp_ms=options.timestamp_ms,
        storage_options=options.storage_options,
        catalog_table=options.catalog_table,
        tail=tail,
    )


def read_table(
    spark: SparkSession,
    options: ReadOptions,
    given_schema: SparkStruct | None = None,
    *,
    tail: TailFiles | None = None,
) -> DataFrame:
    """Return the rows that the options select; the DataFrame stays at one version.

    `tail` is the log tail that a catalog has just returned. Raises SchemaMismatchError if the user gave a schema that
    is not the table's, and as `open_snapshot`.
    """
    snapshot = open_snapshot(options, tail=tail)
    if options.changes is not None:
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


def _check_schema(location: str, expected: SparkStruct, given: SparkStruct) -> None:
    found = differences(expected=expected, given=given)
    if found:
        raise SchemaMismatchError(
            f"The schema given with .schema(...) is not the schema of '{location}': {'; '.join(found)}. "
            "Leave out .schema(...); the table knows its schema.",
            error_class="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )
