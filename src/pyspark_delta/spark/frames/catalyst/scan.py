"""The Catalyst scan as a DataFrame: relations over file indexes, the filter of deleted rows, and the projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.scan.planner import KEPT_ROW_TRACKING_FIELDS, ROW_TRACKING_FIELDS, require_row_tracking
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.catalyst.deleted_rows import change_columns, gather, is_changed
from pyspark_delta.spark.frames.catalyst.deletion_filter import is_kept
from pyspark_delta.spark.frames.catalyst.directories import directories_json, each_file
from pyspark_delta.spark.frames.catalyst.file_index import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETED_ROWS,
    FILE_NUMBER,
    DeltaFileIndex,
    Files,
)
from pyspark_delta.spark.frames.catalyst.file_metadata import (
    METADATA,
    can_expose,
    hide_last_column,
    metadata_column,
    with_file_metadata,
)
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.listings import ChosenListing, Listing, SnapshotListing
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.frames.catalyst.unsafe_rows import encode_rows
from pyspark_delta.spark.frames.char_columns import pads_texts
from pyspark_delta.spark.frames.relation_columns import (
    LOCAL_FILE_SYSTEM,
    PLAIN_LOCAL_FILES,
    ROW_INDEX,
    TableColumns,
    names_without_projection,
    output_columns,
    relation_options,
    row_tracking_columns,
    table_columns,
)
from pyspark_delta.storage.paths import to_hadoop

_SOURCES = "org.apache.spark.sql.execution.datasources"
_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_REQUIRED = 4  # parameters of Spark's `CatalogTable` without a default


def catalyst_frame(spark: SparkSession, snapshot: Snapshot, *, row_tracking: bool = False) -> DataFrame:
    """Return the rows of a snapshot. Files are selected each time Spark plans a query over the frame.

    The hidden column `_metadata` has Spark's fields and, if rows have ids, the fields of row tracking under the names
    that delta-spark gives them. Raises InvalidOperationError for `row_tracking` on a table that has no row ids.
    """
    columns = table_columns(snapshot.configuration)
    if row_tracking:
        require_row_tracking(snapshot.configuration)
    kinds, row_ids = _file_sets(snapshot), is_active(snapshot.configuration, Feature.ROW_TRACKING)
    own_metadata = (row_ids or kinds != (Files.ALL,)) and can_expose(columns.names)
    relations = _Relations(
        spark,
        jvm_of(spark),
        SnapshotListing(snapshot),
        columns,
        row_ids and (row_tracking or own_metadata),
        shown_ids=ROW_TRACKING_FIELDS if row_tracking else (),
        own_metadata=own_metadata,
    )
    return relations.frame(kinds)


def catalyst_frame_of_files(
    spark: SparkSession,
    source: FileSource,
    files: pa.Table,
    *,
    row_tracking: bool = False,
    file_number: str | None = None,
    row_index: str | None = None,
) -> DataFrame:
    """Return the rows of some files as `public_scan.frame_of_files` does, but without a join on their paths.

    The column "size" must have the exact size of each file in bytes, because Spark reads no more.
    """
    listing = ChosenListing(source.location, files.combine_chunks(), source.version, source.storage_options)
    columns = table_columns(source.configuration, source.in_files_too, source.constants)
    relations = _Relations(
        spark,
        jvm_of(spark),
        listing,
        columns,
        row_tracking,
        shown_ids=KEPT_ROW_TRACKING_FIELDS if row_tracking else (),
        file_number=file_number,
        row_index=row_index,
    )
    return relations.frame(_kinds(files["deletion_vector"]))


def catalyst_frame_of_changes(spark: SparkSession, source: FileSource, files: pa.Table) -> DataFrame:
    """Return the changed rows of a change feed's files, which their vectors select, with the columns of the feed.

    The column "size" must have the exact size of each file in bytes. Raises DeletionVectorError.
    """
    changed = gather(files.combine_chunks(), source.location, source.storage_options)
    listing = ChosenListing(source.location, changed.files, source.version, source.storage_options)
    columns = table_columns(source.configuration)
    relations = _Relations(
        spark, jvm_of(spark), listing, columns, False, number_width=changed.width, change_kind=changed.kind
    )
    return relations.frame((Files.MARKED,))


def catalyst_frame_of_stream(
    spark: SparkSession,
    listing: Listing,
    columns: TableColumns,
    kinds: tuple[Files, ...],
    index: type[DeltaFileIndex],
    *,
    row_tracking: bool = False,
    metadata: bool = False,
    number_width: int = 0,
    change_kind: str | None = None,
) -> DataFrame:
    """Return the rows of the files of a batch of a stream, as a streaming frame; its files are found by `index`.

    With `metadata`, `_metadata` is the last column, which is visible. It has the fields of row tracking if
    `row_tracking`. `number_width` and `change_kind` are the `width` and `kind` of `FilesOfChanges`.
    """
    relations = _Relations(
        spark,
        jvm_of(spark),
        listing,
        columns,
        row_tracking,
        own_metadata=metadata,
        number_width=number_width,
        change_kind=change_kind,
        streaming_index=index,
    )
    return relations.visible_frame(kinds)


def unavailable(spark: SparkSession) -> str | None:
    """Return why this Spark cannot use a file index in Python; None if it can. It is tried once for each JVM."""
    return _try_internals(spark.sparkContext._gateway)


def has_file_system(spark: SparkSession, scheme: str) -> bool:
    """Return True if Hadoop, as the session configures it, has a file system for a scheme."""
    jvm = jvm_of(spark)
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        jvm.root.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except Exception:  # py4j and PySpark raise UnsupportedFileSystemException as different classes
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
            return f"a directory with one file was converted to {found}"
        jvm.module("org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
        jvm.load_class("org.apache.parquet.bytes.BytesUtils")
        is_kept(jvm, "a", "b")
        jvm.module(f"{_SOURCES}.LogicalRelation")
        _named_table(jvm, "t")
        jvm.type("org.apache.spark.sql.catalyst.plans.logical.Project").hiddenOutputTag()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}" if str(error).strip() else repr(error)
    return None


def _file_sets(snapshot: Snapshot) -> tuple[Files, ...]:
    """Return the kinds of files that need a relation each: two if only some of the files have deletion vectors."""
    if not is_supported(snapshot.configuration, Feature.DELETION_VECTORS):
        return (Files.ALL,)
    return _kinds(snapshot.files(columns=("deletion_vector",))["deletion_vector"])


def _kinds(vectors: pa.ChunkedArray) -> tuple[Files, ...]:
    if vectors.null_count == len(vectors):
        return (Files.ALL,)
    return (Files.DELETED_FROM,) if vectors.null_count == 0 else (Files.INTACT, Files.DELETED_FROM)


def _named_table(jvm: Jvm, name: str) -> Any:
    """Return an entry of a catalog that has only a name, as Spark's plans show it: `delta.<name>`.

    Spark looks at nothing else in the entry of a relation that it did not resolve itself.
    """
    kind = f"{_CATALOG}.CatalogTable"

    def defaults() -> list[Any]:
        made, [constructor] = jvm.module(kind), jvm.load_class(kind).getConstructors()
        count = constructor.getParameterCount()
        return [getattr(made, f"apply$default${place}")() for place in range(_REQUIRED + 1, count + 1)]

    def table() -> Any:
        database = jvm.once("database of tables", lambda: jvm.root.scala.Option.apply("delta"))
        identifier = jvm.type("org.apache.spark.sql.catalyst.TableIdentifier")(name, database)
        table_type = jvm.once("EXTERNAL", lambda: jvm.module(f"{_CATALOG}.CatalogTableType").EXTERNAL())
        storage = jvm.once("no storage", lambda: jvm.module(f"{_CATALOG}.CatalogStorageFormat").empty())
        schema = jvm.struct_type(StructType(()))
        return jvm.type(kind)(identifier, table_type, storage, schema, *jvm.once("defaults of tables", defaults))

    return jvm.once(("named table", name), table)


def _local_options(spark: SparkSession, location: str) -> dict[str, str]:
    """Return options of a relation over local files; none if the user has chosen a file system for them."""
    if not to_hadoop(location).startswith("file:"):
        return {}
    chosen = spark.conf.get(LOCAL_FILE_SYSTEM, None) or spark._jsc.hadoopConfiguration().get(LOCAL_FILE_SYSTEM)
    return {} if chosen is not None else PLAIN_LOCAL_FILES


@dataclass(frozen=True)
class _Relations:
    """Makes the frames over the files of a listing.

    With `row_tracking`, rows have ids: as the columns `shown_ids`, and in the hidden column `_metadata` if
    `own_metadata`. If not `own_metadata`, that column is Spark's. `file_number` and `row_index` name columns, as in
    `public_scan.frame_of_files`. `number_width` and `change_kind` are the `width` and `kind` of `FilesOfChanges`.
    With `streaming_index`, the relations are streaming ones, over file indexes of that class.
    """

    spark: SparkSession
    jvm: Jvm
    listing: Listing
    columns: TableColumns
    row_tracking: bool
    shown_ids: tuple[StructField, ...] = ()
    own_metadata: bool = False
    file_number: str | None = None
    row_index: str | None = None
    number_width: int = 0
    change_kind: str | None = None
    streaming_index: type[DeltaFileIndex] | None = None

    def frame(self, kinds: tuple[Files, ...]) -> DataFrame:
        """Return the rows of the files of these kinds."""
        frame = self.visible_frame(kinds)
        return hide_last_column(self.jvm, frame) if self.own_metadata else frame

    def visible_frame(self, kinds: tuple[Files, ...]) -> DataFrame:
        """Return the rows of the files of these kinds. If `own_metadata`, `_metadata` is their last column."""
        ensure_callback_server_started(self.spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        parts = [self._relation(kind) for kind in kinds]
        return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])

    def _relation(self, kind: Files) -> DataFrame:
        spark, jvm, columns = self.spark, self.jvm, self.columns
        index = (self.streaming_index or DeltaFileIndex)(
            jvm,
            self.listing,
            columns,
            kind,
            row_tracking=self.row_tracking,
            numbered=self.file_number is not None,
            time_zone=session_time_zone(spark),
        )
        needs_row_index = self.row_index is not None or self.row_tracking or kind in (Files.DELETED_FROM, Files.MARKED)
        has_row_index = needs_row_index or self.own_metadata
        relation = self._file_relation(index, has_row_index=has_row_index)
        names = None if index.hidden or has_row_index else names_without_projection(columns)
        if names is not None:
            return self._named(relation, names)
        frame = frame_of_plan(self.spark, relation)
        file_fields: Sequence[str] = ()
        if self.own_metadata:
            frame, file_fields = with_file_metadata(jvm, frame)
        if kind is Files.DELETED_FROM:
            frame = frame.filter(is_kept(jvm, DELETED_ROWS.name, ROW_INDEX.name))
        if kind is Files.MARKED:
            frame = frame.filter(is_changed(jvm, ROW_INDEX.name, self.number_width))
        return self._projected(frame, tuple(file_fields))

    def _file_relation(self, index: DeltaFileIndex, *, has_row_index: bool) -> Any:
        """Return the node of a plan that reads the files of an index. Plans show it with the location and the version.

        Without a name, plans would show the class of the index, which is a generated name of a proxy.
        """
        spark, jvm, columns = self.spark, self.jvm, self.columns
        options = {
            **relation_options(self.listing.location, self.listing.storage_options, columns),
            **_local_options(spark, self.listing.location),
        }
        relation = jvm.type(f"{_SOURCES}.HadoopFsRelation")(
            index,
            jvm.struct_type(index.schema),
            jvm.struct_type(columns.data_schema(row_index=has_row_index, row_tracking=self.row_tracking)),
            jvm.none,
            jvm.once("ParquetFileFormat", jvm.type(f"{_SOURCES}.parquet.ParquetFileFormat")),
            jvm.map(options),
            spark._jsparkSession,
        )
        version = "" if self.listing.version is None else f"@v{self.listing.version}"
        node = jvm.module(f"{_SOURCES}.LogicalRelation").apply(
            relation, _named_table(jvm, self.listing.location + version)
        )
        if self.streaming_index is None:
            return node
        members = (relation, node.output(), node.catalogTable(), True, jvm.none)
        return node.copy(*members[: jvm.arity(f"{_SOURCES}.LogicalRelation")])

    def _named(self, relation: Any, names: tuple[str, ...]) -> DataFrame:
        """Return all columns of a relation under these names, always in a projection.

        Without a projection, Spark would accept an INSERT into a view of the relation. The INSERT would write files
        that no commit names, and INSERT OVERWRITE would delete the table. Spark's optimizer removes a projection that
        renames nothing. The plan is made here, because every intermediate DataFrame takes a millisecond.
        """
        jvm = self.jvm
        if names != tuple(column.physical.name for column in self.columns.relation_columns):
            renamed = jvm.once(("names", names), lambda: jvm.seq(names))
            return DataFrame(frame_of_plan(self.spark, relation)._jdf.toDF(renamed), self.spark)
        project = jvm.type("org.apache.spark.sql.catalyst.plans.logical.Project")(relation.output(), relation)
        return frame_of_plan(self.spark, project)

    def _projected(self, frame: DataFrame, file_fields: tuple[str, ...]) -> DataFrame:
        """Return the columns of the table, and then the extra ones, from a frame over a relation."""
        jvm, columns = self.jvm, self.columns
        pads = pads_texts(self.spark, columns.schema)
        shown = (self.row_tracking, self.shown_ids, self.own_metadata, self.file_number, self.row_index, pads)
        # The expressions refer to columns by name, so they are valid for every relation with the same columns.
        made = jvm.once(
            ("projection", columns, shown, self.number_width, self.change_kind, file_fields),
            lambda: jvm.seq([one._jc for one in output_columns(columns, self._extra(file_fields), pads=pads)]),
        )
        return DataFrame(frame._jdf.select(made), self.spark)

    def _extra(self, file_fields: Sequence[str]) -> dict[str, Column]:
        """Return the extra columns; `_metadata` is the last of them."""
        extra: dict[str, Column] = {}
        ids = self._row_tracking_columns() if self.row_tracking else {}
        for field, value in zip(self.shown_ids, ids.values(), strict=False):
            extra[field.name] = value
        if self.file_number is not None:
            extra[self.file_number] = F.col(FILE_NUMBER.name)
        if self.row_index is not None:
            extra[self.row_index] = F.col(ROW_INDEX.name)
        if self.number_width:
            extra.update(change_columns(self.jvm, ROW_INDEX.name, self.number_width, self.change_kind))
        if self.own_metadata:
            more = {"row_index": F.col(ROW_INDEX.name)}
            if self.row_tracking:
                more["row_id"], more["row_commit_version"] = ids.values()
                more["base_row_id"] = F.col(BASE_ROW_ID.name)
                more["default_row_commit_version"] = F.col(DEFAULT_ROW_COMMIT_VERSION.name)
            extra[METADATA] = metadata_column(file_fields, more)
        return extra

    def _row_tracking_columns(self) -> dict[str, Column]:
        base, default = F.col(BASE_ROW_ID.name), F.col(DEFAULT_ROW_COMMIT_VERSION.name)
        return row_tracking_columns(self.columns, base, default, F.col(ROW_INDEX.name))
