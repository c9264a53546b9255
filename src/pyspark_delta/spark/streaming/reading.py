"""From the options of a stream to its DataFrame, by the fastest way that the Spark session has.

The native source is Spark's trait `Source` with Spark's own Parquet scan. The Python Data Source, in which workers read
the files, takes its place on Spark Connect, and where the JVM cannot read the files or the internals of Spark differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.utils import is_remote

from pyspark_delta.errors import DeltaWarning, InvalidOperationError, MissingDependencyError, SchemaMismatchError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.classes import has_data_sources, has_stream_sources
from pyspark_delta.spark.conf.data_sources import register_data_source
from pyspark_delta.spark.conf.sessions import DATA_SOURCE
from pyspark_delta.spark.conf.worker_python import prepare_workers
from pyspark_delta.spark.frames.catalyst.error_relay import pass_expected
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.read_options import packed_options
from pyspark_delta.spark.frames.reading import takes_file_index
from pyspark_delta.spark.frames.schemas import differences
from pyspark_delta.spark.frames.stream_options import StreamRead
from pyspark_delta.spark.hadoop.tasks import options_for_workers
from pyspark_delta.spark.streaming.relation import BatchFrames, leaf_frame, unavailable
from pyspark_delta.spark.streaming.source import DeltaSource, TableStream
from pyspark_delta.storage.paths import to_hadoop
from pyspark_delta.streaming.planner import StreamPlanner


def read_stream(
    spark: SparkSession,
    read: StreamRead,
    reopen: Callable[[], Snapshot],
    given: Mapping[str, str],
    schema: SparkStruct | None = None,
    name: str | None = None,
) -> DataFrame:
    """Return the rows of a table as a streaming DataFrame.

    `reopen` returns the newest snapshot of the table. `given` are the options as the user gave them. `name` is that of
    the source in the query. Raises SchemaMismatchError for a `schema` that is not the table's, and what opening a table
    raises.
    """
    snapshot = reopen()
    planner = StreamPlanner(snapshot, read.options)
    stream = TableStream.of(planner, snapshot.location, read.options, reopen)
    if schema is not None:
        _check_schema(stream, schema)
    if not takes_file_index(spark, snapshot):
        return stream_by_workers(spark, read, given, name)
    reason = unavailable(spark)
    if reason is not None:
        _warn(reason)
        return stream_by_workers(spark, read, given, name)
    jvm = jvm_of(spark)
    pass_expected(jvm.gateway)
    frames = BatchFrames(spark, planner.source, stream.metadata)
    return _where(leaf_frame(spark, DeltaSource(jvm, stream), frames, name), read)


def stream_by_workers(
    spark: SparkSession, read: StreamRead, given: Mapping[str, str], name: str | None = None
) -> DataFrame:
    """Return the stream through the Python Data Source. Arguments as in `read_stream`.

    Raises InvalidOperationError for a table in a catalog, which only this process can ask.
    """
    if read.catalog_table is not None:
        raise InvalidOperationError(
            f"The table at '{read.location}' is managed by a catalog, and the Spark session reads streams in Python "
            "workers, which cannot ask the catalog for its commits. Use a classic session, with "
            "pyspark_delta.enable(spark).",
            error_class="DELTA_STREAMING_READ_UNSUPPORTED",
            sqlstate="0A000",
        )
    if not has_data_sources() or not (is_remote() or has_stream_sources()):
        raise MissingDependencyError(
            f"Spark {pyspark.__version__} cannot read the files of '{read.location}' by itself: it has no file system "
            "for them, types of columns were widened, or variants are shredded. Nothing was started. Use "
            "pyspark_delta.Table.stream, or install PySpark 4.2 or newer, which can read streams in Python.",
            version=pyspark.__version__,
        )
    prepare_workers(spark)
    register_data_source(spark)
    of_storage = {key.lower() for key in read.storage_options}
    plain = {key: value for key, value in given.items() if key.lower() not in (*of_storage, "path")}
    storage_options = options_for_workers(spark, read.location, read.storage_options)
    options = {"timeZone": read.time_zone, **packed_options(storage_options), **plain}
    reader = _unwrapped_reader(spark).format(DATA_SOURCE).options(**options)
    reader = reader if name is None else reader.name(name)
    return cast(DataFrame, reader.load(to_hadoop(read.location)))


def _where(frame: DataFrame, read: StreamRead) -> DataFrame:
    """Return the rows that the option `where` selects: the planner only leaves out files."""
    return frame if read.options.where is None else frame.where(read.options.where)


def _check_schema(stream: TableStream, given: SparkStruct) -> None:
    found = differences(expected=stream.schema, given=given)
    if found:
        raise SchemaMismatchError(
            f"The schema given with .schema(...) is not the schema of '{stream.location}': {'; '.join(found)}. "
            "Leave out .schema(...); the table knows its schema.",
            error_class="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )


def _unwrapped_reader(spark: SparkSession) -> Any:
    """Return PySpark's own reader, even if the session is enabled."""
    if hasattr(spark, "_jsparkSession"):
        from pyspark.sql.streaming.readwriter import DataStreamReader

        return DataStreamReader(spark)
    from pyspark.sql.connect.streaming.readwriter import DataStreamReader as ConnectReader

    return ConnectReader(spark)  # type: ignore[arg-type]


def _warn(reason: str) -> None:
    """Warn that workers read the stream. Python shows a warning once for each line of code that causes it."""
    warnings.warn(
        f"This Spark cannot use a stream's source in Python ({reason}). Streams are read in Python workers, which is "
        "slower, and without metrics of the source.",
        DeltaWarning,
        stacklevel=4,
    )
