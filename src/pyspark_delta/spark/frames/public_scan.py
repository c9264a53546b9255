"""The public scan: reads a snapshot through Spark's public API alone, for Spark Connect.

Files are selected once, when the DataFrame is made, by an explicit condition. Constants of a file, such as its
partition values, are literals if few are distinct; otherwise a broadcast join on the path of the file adds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types
from pyspark.sql.utils import is_remote

from pyspark_delta.deletion_vectors.bitmap import to_words
from pyspark_delta.scan.file_source import FileSource, file_source
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import frame_of_arrow, spark_schema
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.temporary import temporary_conf, users_conf
from pyspark_delta.spark.frames.catalyst.deletion_filter import is_kept_by_words
from pyspark_delta.spark.frames.catalyst.directories import group_files, hadoop_paths, uri_texts
from pyspark_delta.spark.frames.catalyst.vectors import read_vectors
from pyspark_delta.spark.frames.relation_columns import (
    FIELD_ID_SETTINGS,
    PLAIN_LOCAL_FILES,
    TableColumns,
    project,
    relation_options,
    row_tracking_columns,
    spark_converts,
    table_columns,
    with_shown_ids,
)
from pyspark_delta.spark.frames.schemas import empty_frame
from pyspark_delta.spark.frames.user_defined_types import with_loadable_types

_PATH = "_pyspark_delta_file"
_WORDS = "_pyspark_delta_deleted_words"
_SELECTS = "_pyspark_delta_selects_rows"
_BASE_ROW_ID = "_pyspark_delta_base_row_id"
_DEFAULT_VERSION = "_pyspark_delta_default_row_commit_version"
_ROW_INDEX = "_pyspark_delta_row_index"
_KNOWN = "_pyspark_delta_known"
_NUMBER = "_pyspark_delta_file_number"
_MOST_LITERAL_GROUPS = 16
_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_DEFAULT_THRESHOLD, _ANY_NUMBER = 32, 2**31 - 1  # files
_COLON_IN_NAME = re.compile(r"^file:.*/[^/]*:[^/]*$")
_HIDDEN_NAME = r"/[._][^/]*$|\._COPYING_$"


def frame_can_read(spark: SparkSession, source: FileSource, files: pa.Table) -> bool:
    """Return True if Spark's public API reads every row of the files with the session's settings.

    Spark converts only the type changes that the protocol lists, and ignores files whose names begin with '_' or '.'.
    It matches columns by field id only if session settings say so. It reads these settings when a query runs, so they
    cannot be changed for one read.
    """
    if not spark_converts(source.configuration):
        return False
    if mapping_mode(source.configuration) == "id" and not all(_is_on(spark, name) for name in FIELD_ID_SETTINGS):
        return False
    paths = hadoop_paths(source.location, files["path"])
    return not pc.any(pc.match_substring_regex(paths, _HIDDEN_NAME)).as_py()


def data_frame(
    spark: SparkSession, snapshot: Snapshot, *, where: str | None = None, row_tracking: bool = False
) -> DataFrame:
    """Return the rows of a snapshot for which `where` is true. `frame_can_read` must be true for its files.

    Raises InvalidPredicateError for a condition that `plan_scan` does not support.
    """
    time_zone = session_time_zone(spark)
    files = plan_scan(snapshot, where=where, row_ids=row_tracking, time_zone=time_zone).files
    frame = frame_of_files(spark, file_source(snapshot), files, where=where, row_tracking=row_tracking)
    return with_shown_ids(frame) if row_tracking else frame


def frame_of_files(
    spark: SparkSession,
    source: FileSource,
    files: pa.Table,
    *,
    where: str | None = None,
    row_tracking: bool = False,
    file_number: str | None = None,
    row_index: str | None = None,
) -> DataFrame:
    """Return the rows of some data files (`actions.columns`, with "deletion_vector"), without deleted rows.

    A file may be listed more than once, with other constants or another vector. If "selects_rows" is true for a file,
    only the rows in its vector are returned.

    `file_number` names a column for the position of a row's file in `files`. `row_index` names a column for the
    position of the row in that file, counting deleted rows (C271). `row_tracking` adds
    `planner.KEPT_ROW_TRACKING_FIELDS`.
    """
    time_zone = session_time_zone(spark)
    columns = table_columns(source.configuration, source.in_files_too, source.constants)
    scan = _Scan(spark, source, columns, row_tracking, time_zone, file_number, row_index)
    files = files.append_column(_NUMBER, pa.array(range(files.num_rows), pa.int64())).combine_chunks()
    with _listing_on_driver(spark, files.num_rows) as listing:
        frame = scan.frame(files)
        frame = frame if where is None else frame.where(where)
        if listing and is_remote():
            # Makes the server list the files; it keeps the plan for later queries too.
            _ = frame.schema
    return frame


@contextmanager
def _listing_on_driver(spark: SparkSession, files: int) -> Iterator[bool]:
    """Make Spark list files on the driver, without a job, while the block runs; yield True if a setting was changed.

    Spark looks up each file again. If there are more files than its threshold, it starts a task for each; the driver
    takes a tenth of the time.
    """
    if files <= int(users_conf(spark, _LISTING_THRESHOLD) or _DEFAULT_THRESHOLD):
        yield False
        return
    with temporary_conf(spark, _LISTING_THRESHOLD, str(_ANY_NUMBER)):
        yield True


def _is_on(spark: SparkSession, setting: str) -> bool:
    return str(spark.conf.get(setting)).lower() == "true"


class _Scan:
    """Makes frames over data files of one table."""

    def __init__(
        self,
        spark: SparkSession,
        source: FileSource,
        columns: TableColumns,
        row_tracking: bool,
        time_zone: str,
        file_number: str | None,
        row_index: str | None,
    ) -> None:
        self._spark = spark
        self._source = source
        self._columns = columns
        self._row_tracking = row_tracking
        self._time_zone = time_zone
        self._file_number = file_number
        self._row_index = row_index

    def frame(self, files: pa.Table) -> DataFrame:
        """Return the rows of the files."""
        with_vector = files["deletion_vector"].is_valid()
        parts = [
            *self.parts(files.filter(pc.invert(with_vector)).combine_chunks(), with_vectors=False),
            *self.parts(files.filter(with_vector).combine_chunks(), with_vectors=True),
        ]
        frame = parts[0] if parts else self.empty()
        for part in parts[1:]:
            frame = frame.unionAll(part)
        return frame

    def empty(self) -> DataFrame:
        """Return a frame without rows, of the same schema."""
        columns = self._columns
        physical = StructType(columns.data_schema().fields + columns.partition_schema().fields)
        frame = empty_frame(self._spark, _spark_type(physical))
        nothing = F.lit(None).cast("bigint")
        extra: dict[str, Column] = {}
        if self._row_tracking:
            extra = dict.fromkeys(row_tracking_columns(columns, nothing, nothing, nothing), nothing)
        for name in (self._file_number, self._row_index):
            if name is not None:
                extra[name] = nothing
        return project(frame, columns, extra)

    def parts(self, files: pa.Table, *, with_vectors: bool) -> list[DataFrame]:
        """Return frames that together have the rows of the files."""
        if not files.num_rows:
            return []
        paths = hadoop_paths(self._source.location, files["path"])
        values = self._partition_values(files)
        if with_vectors or self._row_tracking or self._file_number is not None or self._row_index is not None:
            return [self._joined(files, paths, values, with_vectors)]
        groups = group_files(values, files.num_rows)
        # `constants` may differ in every file. Literals would take a scan for each group, a join takes one.
        most = 1 if self._source.constants else _MOST_LITERAL_GROUPS
        if len(groups) > most or not _has_python_values(values):
            return [self._joined(files, paths, values, with_vectors)]
        return [
            self._literal(
                paths.filter(pa.array(groups.of_file == group)), [v[int(groups.first_file[group])] for v in values]
            )
            for group in range(len(groups))
        ]

    def _partition_values(self, files: pa.Table) -> list[pa.Array]:
        texts = files["partition_values"].combine_chunks()
        return [
            parse_partition_column(
                pc.map_lookup(texts, pa.scalar(column.physical.name), "last"),
                column.logical.type,
                self._time_zone,
                column=column.logical.name,
                table=self._source.location,
            )
            for column in self._columns.partition
        ]

    def _parquet(self, paths: Sequence[str]) -> DataFrame:
        schema = self._columns.data_schema(row_tracking=self._row_tracking)
        options = relation_options(self._source.location, self._source.storage_options, self._columns)
        if any(_COLON_IN_NAME.search(path) for path in paths):
            options.update(PLAIN_LOCAL_FILES)
        reader = self._spark.read.schema(_spark_type(schema)).options(**options).option("__globPaths__", "false")
        return reader.parquet(*paths)

    def _literal(self, paths: pa.Array, values: Sequence[pa.Scalar]) -> DataFrame:
        """Return the rows of files with equal partition values, which become literals."""
        frame = self._parquet(paths.to_pylist())
        for column, value in zip(self._columns.partition, values, strict=True):
            frame = frame.withColumn(column.physical.name, _literal(self._spark, column.physical, value))
        return project(frame, self._columns)

    def _joined(self, files: pa.Table, paths: pa.Array, values: Sequence[pa.Array], with_vectors: bool) -> DataFrame:
        constants = self._constants(files, paths, values, with_vectors)
        metadata = F.col("_metadata")
        frame = self._parquet(paths.unique().to_pylist()).withColumns(
            {_PATH: metadata.getField("file_path"), _ROW_INDEX: metadata.getField("row_index")}
        )
        frame = frame.join(F.broadcast(constants), _PATH, "left")
        # A file missing in the join would lack its partition values: raise an error, never return a wrong row.
        unknown = F.raise_error(F.concat(F.lit("pyspark-delta does not know the file "), F.col(_PATH)))
        frame = frame.where(F.when(F.col(_KNOWN).isNotNull(), True).otherwise(unknown.cast("boolean")))
        if with_vectors:
            frame = frame.where(is_kept_by_words(_WORDS, _ROW_INDEX, _SELECTS))
        extra: dict[str, Column] = {}
        if self._row_tracking:
            extra = row_tracking_columns(self._columns, F.col(_BASE_ROW_ID), F.col(_DEFAULT_VERSION), F.col(_ROW_INDEX))
        if self._file_number is not None:
            extra[self._file_number] = F.col(_NUMBER)
        if self._row_index is not None:
            extra[self._row_index] = F.col(_ROW_INDEX)
        return project(frame, self._columns, extra)

    def _constants(self, files: pa.Table, paths: pa.Array, values: Sequence[pa.Array], with_vectors: bool) -> DataFrame:
        """Return one row per file: its path as Spark shows it, its constants, and its deletion vector."""
        table = {_PATH: uri_texts(paths), _KNOWN: pa.repeat(True, files.num_rows)}
        physical = StructType(tuple(column.physical for column in self._columns.partition))
        types = {field.name: field.dataType for field in _spark_type(physical)}
        table |= dict(zip(types, values, strict=True))
        if with_vectors:
            table[_WORDS] = self._words(files)
            known = "selects_rows" in files.column_names
            selects = files["selects_rows"].combine_chunks() if known else pa.nulls(files.num_rows, pa.bool_())
            table[_SELECTS] = pc.fill_null(selects, False)
        if self._row_tracking:
            table[_BASE_ROW_ID] = files["base_row_id"].combine_chunks()
            table[_DEFAULT_VERSION] = files["default_row_commit_version"].combine_chunks()
        if self._file_number is not None:
            table[_NUMBER] = files[_NUMBER].combine_chunks()
        # Without a schema, Spark would infer TIMESTAMP for a partition column of type TIMESTAMP_NTZ.
        guessed = spark_schema(pa.schema([(name, a.type) for name, a in table.items()]))
        fields = [spark_types.StructField(f.name, types.get(f.name, f.dataType)) for f in guessed]
        return frame_of_arrow(self._spark, pa.table(table), spark_types.StructType(fields))

    def _words(self, files: pa.Table) -> pa.Array:
        bitmaps = read_vectors(files, self._source.location, self._source.storage_options)
        return pa.array([to_words(bitmap) for bitmap in bitmaps], pa.list_(pa.int64()))


def _has_python_values(columns: Sequence[pa.Array]) -> bool:
    """Return True if all dates and times are in the years 1 to 9999, the range of Python."""
    try:
        _ = [column.unique().to_pylist() for column in columns]
    except (OverflowError, ValueError):
        return False
    return True


def _literal(spark: SparkSession, field: StructField, value: pa.Scalar) -> Column:
    spark_type = _spark_type(StructType((field,))).fields[0].dataType
    plain = value.as_py()
    if plain is None:
        return F.lit(None).cast(spark_type)
    if isinstance(spark_type, spark_types.TimestampNTZType):
        plain = plain.isoformat(sep=" ")  # Spark would convert a datetime from the session time zone
    # To Spark, a literal is not nullable; columns of the table are. A `when` without `otherwise` is nullable, and the
    # optimizer removes it later because its condition is always true.
    return F.when(F.lit(1) == F.lit(1), F.lit(plain).cast(spark_type))


def _spark_type(schema: StructType) -> spark_types.StructType:
    return spark_types.StructType.fromJson(type_to_json(with_loadable_types(schema)))
