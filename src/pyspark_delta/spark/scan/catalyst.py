"""The Catalyst scan of a snapshot as a DataFrame: relations over the file index, the deletion filter, the projection."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.scan.columns import ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX, TableColumns, project, quoted, table_columns
from pyspark_delta.spark.scan.deletion_filter import is_kept
from pyspark_delta.spark.scan.file_index import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETED_ROWS,
    DeltaFileIndex,
    Files,
)
from pyspark_delta.spark.scan.jvm import Jvm, jvm_of

# Rows must not depend on what the session happens to be set to, and a missing file is never silently skipped.
RELATION_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
}


def catalyst_frame(spark: SparkSession, snapshot: Snapshot, *, row_tracking: bool = False) -> DataFrame:
    """The rows of a snapshot; files are chosen each time a query over the frame is planned."""
    gateway = spark.sparkContext._gateway  # type: ignore[attr-defined]
    ensure_callback_server_started(gateway)
    jvm = jvm_of(spark)
    columns = table_columns(snapshot.configuration)
    parts = [
        _relation_frame(spark, jvm, snapshot, columns, files, row_tracking=row_tracking)
        for files in _file_sets(snapshot)
    ]
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])


def _file_sets(snapshot: Snapshot) -> tuple[Files, ...]:
    """One relation where no file has a deletion vector, or all have; otherwise one for each kind of file."""
    if not snapshot.configuration.supports("deletionVectors"):
        return (Files.ALL,)
    vectors = snapshot.files(columns=("deletion_vector",))["deletion_vector"]
    if vectors.null_count == len(vectors):
        return (Files.ALL,)
    return (Files.DELETED_FROM,) if vectors.null_count == 0 else (Files.INTACT, Files.DELETED_FROM)


def _relation_frame(
    spark: SparkSession, jvm: Jvm, snapshot: Snapshot, columns: TableColumns, files: Files, *, row_tracking: bool
) -> DataFrame:
    time_zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    index = DeltaFileIndex(jvm, snapshot, columns, files, row_tracking=row_tracking, time_zone=time_zone)
    session = spark._jsparkSession  # type: ignore[attr-defined]
    sources = jvm.root.org.apache.spark.sql.execution.datasources
    relation = sources.HadoopFsRelation(
        index,
        jvm.struct_type(index.schema),
        jvm.struct_type(columns.data_schema(row_index=bool(index.hidden), row_tracking=row_tracking)),
        jvm.none,
        sources.parquet.ParquetFileFormat(),
        jvm.map(_options(columns)),
        session,
    )
    frame = DataFrame(session.baseRelationToDataFrame(relation), spark)
    if files is Files.DELETED_FROM:
        frame = frame.filter(is_kept(jvm, DELETED_ROWS.name, ROW_INDEX.name))
    return project(frame, columns, _row_tracking(columns) if row_tracking else None)


def _options(columns: TableColumns) -> dict[str, str]:
    options = dict(RELATION_OPTIONS)
    if columns.mode == "id":
        options["spark.sql.parquet.fieldId.read.enabled"] = "true"
        options["spark.sql.parquet.fieldId.read.ignoreMissing"] = "true"
    return options


def _row_tracking(columns: TableColumns) -> dict[str, Column]:
    """Row id and row commit version: what the file stores of a row, else what its file implies (C327, C328)."""
    identity: Any = F.col(BASE_ROW_ID.name) + F.col(ROW_INDEX.name)
    version: Any = F.col(DEFAULT_ROW_COMMIT_VERSION.name)
    if columns.stored_row_id is not None:
        identity = F.coalesce(F.col(quoted(columns.stored_row_id)), identity)
    if columns.stored_row_commit_version is not None:
        version = F.coalesce(F.col(quoted(columns.stored_row_commit_version)), version)
    return {ROW_ID: identity, ROW_COMMIT_VERSION: version}
