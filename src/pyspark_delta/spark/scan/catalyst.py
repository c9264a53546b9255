"""The Catalyst scan of a snapshot as a DataFrame: relations over file indexes, the deletion filter, the projection."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.scan.planner import require_row_tracking
from pyspark_delta.schema.types import LONG
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.scan.columns import (
    LOCAL_FILE_SYSTEM,
    PLAIN_LOCAL_FILES,
    ROW_INDEX,
    TableColumns,
    project,
    relation_options,
    row_tracking_columns,
    table_columns,
)
from pyspark_delta.spark.scan.deletion_filter import is_kept
from pyspark_delta.spark.scan.directories import directories_json, each_file
from pyspark_delta.spark.scan.file_index import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETED_ROWS,
    DeltaFileIndex,
    Files,
)
from pyspark_delta.spark.scan.jvm import Jvm, jvm_of
from pyspark_delta.spark.scan.unsafe_rows import encode_rows
from pyspark_delta.storage.paths import to_hadoop


def catalyst_frame(spark: SparkSession, snapshot: Snapshot, *, row_tracking: bool = False) -> DataFrame:
    """The rows of a snapshot; files are chosen each time a query over the frame is planned.

    Raises InvalidOperationError for `row_tracking` on a table that has no row ids.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    jvm = jvm_of(spark)
    columns = table_columns(snapshot.configuration)
    if row_tracking:
        require_row_tracking(snapshot.configuration)
    parts = [
        _relation_frame(spark, jvm, snapshot, columns, files, row_tracking=row_tracking)
        for files in _file_sets(snapshot)
    ]
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])


def unavailable(spark: SparkSession) -> str | None:
    """Why this Spark cannot take a file index from Python; None when it can. Tried once for each JVM."""
    return _try_internals(spark.sparkContext._gateway)


def has_file_system(spark: SparkSession, scheme: str) -> bool:
    """Whether Hadoop, as the session configures it, has a file system for a scheme."""
    jvm = jvm_of(spark)
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        jvm.root.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except Exception:  # what py4j and PySpark make of UnsupportedFileSystemException differs
        return False
    return True


@lru_cache(maxsize=2)
def _try_internals(gateway: Any) -> str | None:
    try:
        jvm = Jvm(gateway)
        rows = encode_rows([(pa.array([42]), LONG)], 1)
        files = pa.table({"size": [1], "modification_time": [2]})
        text = next(directories_json(files, pa.array(["file:/a b"]), each_file(1), rows, jvm.byte_array_offset))
        directory = jvm.directories(text).head()
        found = (directory.values().getLong(0), directory.files().head().getPath().toString())
        if found != (42, "file:/a b"):
            return f"it reads {found} from a directory of one file"
        jvm.module("org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
        jvm.load_class("org.apache.parquet.bytes.BytesUtils")
        is_kept(jvm, "a", "b")
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}" if str(error).strip() else repr(error)
    return None


def _file_sets(snapshot: Snapshot) -> tuple[Files, ...]:
    """One relation where no file has a deletion vector, or all have; otherwise one for each kind of file."""
    if not snapshot.configuration.supports("deletionVectors"):
        return (Files.ALL,)
    vectors = snapshot.files(columns=("deletion_vector",))["deletion_vector"]
    if vectors.null_count == len(vectors):
        return (Files.ALL,)
    return (Files.DELETED_FROM,) if vectors.null_count == 0 else (Files.INTACT, Files.DELETED_FROM)


def _local_options(spark: SparkSession, snapshot: Snapshot) -> dict[str, str]:
    """For tables on local disk, unless the user has chosen how to read local files."""
    if not to_hadoop(snapshot.location).startswith("file:"):
        return {}
    chosen = spark._jsparkSession.sessionState().newHadoopConf().get(LOCAL_FILE_SYSTEM)
    return {} if chosen is not None else PLAIN_LOCAL_FILES


def _relation_frame(
    spark: SparkSession, jvm: Jvm, snapshot: Snapshot, columns: TableColumns, files: Files, *, row_tracking: bool
) -> DataFrame:
    time_zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    index = DeltaFileIndex(jvm, snapshot, columns, files, row_tracking=row_tracking, time_zone=time_zone)
    session = spark._jsparkSession
    sources = jvm.root.org.apache.spark.sql.execution.datasources
    relation = sources.HadoopFsRelation(
        index,
        jvm.struct_type(index.schema),
        jvm.struct_type(columns.data_schema(row_index=bool(index.hidden), row_tracking=row_tracking)),
        jvm.none,
        sources.parquet.ParquetFileFormat(),
        jvm.map({**relation_options(snapshot.storage_options, columns), **_local_options(spark, snapshot)}),
        session,
    )
    frame = DataFrame(session.baseRelationToDataFrame(relation), spark)
    if files is Files.DELETED_FROM:
        frame = frame.filter(is_kept(jvm, DELETED_ROWS.name, ROW_INDEX.name))
    return project(
        frame,
        columns,
        row_tracking_columns(
            columns, F.col(BASE_ROW_ID.name), F.col(DEFAULT_ROW_COMMIT_VERSION.name), F.col(ROW_INDEX.name)
        )
        if row_tracking
        else None,
    )
