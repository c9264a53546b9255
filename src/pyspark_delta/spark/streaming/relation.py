"""The relations of a stream: the leaf in its DataFrame, and the frames of its batches.

A batch is read as a table is, by Spark's Parquet scan over a file index in Python. So it has the deletion vectors, the
column mapping and the partition values of batch reads, and the filters of the query reach the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.changes.existing import with_statuses
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.scan.matches import keep_possible
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.frames.catalyst.deleted_rows import FilesOfChanges, gather
from pyspark_delta.spark.frames.catalyst.file_index import DeltaFileIndex, Files
from pyspark_delta.spark.frames.catalyst.file_metadata import can_expose, hide_last_column
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.frames.catalyst.scan import catalyst_frame_of_stream
from pyspark_delta.spark.frames.reading import with_all_columns
from pyspark_delta.spark.frames.relation_columns import table_columns
from pyspark_delta.spark.streaming.errors import stream_callback
from pyspark_delta.spark.streaming.internals import relation_members, runtime
from pyspark_delta.streaming.commits import FILE_COLUMNS
from pyspark_delta.streaming.contents import BatchFiles

_LEAF = "StreamingExecutionRelation"
_LEAF_MEMBERS = (4, 5)  # without and with a name
_RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
_RELATION_MEMBERS = (4, 5)
_SELECTS_ROWS = "selects_rows"  # a column of the files of a change feed


class StreamFileIndex(DeltaFileIndex):
    """The files of one batch for Spark's planner, with errors as a query expects them."""

    @stream_callback
    def sizeInBytes(self) -> int:
        return super().sizeInBytes()

    @stream_callback
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        return self._list(elements(partition_filters), elements(data_filters))

    @stream_callback
    def inputFiles(self) -> Any:
        return self._input_files()


@dataclass(frozen=True)
class BatchListing:
    """The files of one way to read in a batch. `find` returns them, and is called once, when Spark plans the batch.

    `identity` names the batch among those of the table. Spark may plan several parts of a query at once. With the
    `configuration` of the table, filters of the query skip files by partition values and statistics. Those of changes
    are not skipped.
    """

    location: str
    find: Callable[[], pa.Table] = field(compare=False, repr=False)
    identity: str
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    version: int | None = None
    configuration: TableConfiguration | None = field(default=None, compare=False, repr=False)
    _found: list[pa.Table] = field(default_factory=list, compare=False, repr=False)
    _lock: Lock = field(default_factory=Lock, compare=False, repr=False)

    def select(self, where: Any, *, row_tracking: bool, statistics: bool, time_zone: str) -> pa.Table:
        if where is None or self.configuration is None:
            return self._files()
        return keep_possible(self._files(), self.configuration, where, time_zone=time_zone)

    def size_in_bytes(self) -> int:
        return int(pc.sum(self._files()["size"]).as_py() or 0)

    def _files(self) -> pa.Table:
        with self._lock:
            if not self._found:
                self._found.append(self.find().combine_chunks())
            return self._found[0]


@dataclass(frozen=True)
class BatchFrames:
    """Makes the frames of the batches of a stream, which have the same columns.

    `source` is the table with the schema of the stream. With `metadata`, the last column is `_metadata`.
    """

    spark: SparkSession
    source: FileSource
    metadata: bool

    def of_files(self, parts: Sequence[BatchFiles], identity: str) -> DataFrame:
        """Return the rows of the files of a batch. Raises DataFileError and DeletionVectorError for a change feed."""
        frames: list[DataFrame] = []
        for number, part in enumerate(parts):
            of_part = self._of_changes if _SELECTS_ROWS in part.files.column_names else self._of_rows
            of_files = of_part(part.source, part.files, f"{identity} {number}")
            frames += of_files if part.source.schema == self.source.schema else map(partial(self._only, part), of_files)
        return reduce(DataFrame.unionAll, frames) if frames else self.empty()

    def _only(self, part: BatchFiles, frame: DataFrame) -> DataFrame:
        """Return the rows that are in the batch, with the columns of the stream."""
        rows = frame if part.only is None else frame.where(to_sql(part.only))
        return rows.select(*map(quoted, self.source.schema.names))

    def later(self, find: Callable[[], Sequence[BatchFiles]], identity: str) -> DataFrame:
        """Return the rows of the files that `find` returns. It is called when Spark plans the batch.

        The files are read in one way, that of `source`.
        """
        supports_vectors = is_supported(self.source.configuration, Feature.DELETION_VECTORS)
        kinds = (Files.INTACT, Files.DELETED_FROM) if supports_vectors else (Files.ALL,)
        return self._frame(self.source, lambda: pa.concat_tables([_NO_FILES, *_files(find())]), identity, kinds)

    def empty(self) -> DataFrame:
        """Return no rows."""
        return self._frame(self.source, _NO_FILES, "", (Files.ALL,))

    def _of_rows(self, source: FileSource, files: pa.Table, identity: str) -> Iterator[DataFrame]:
        yield self._frame(source, files, identity, _kinds(files["deletion_vector"]))

    def _of_changes(self, source: FileSource, files: pa.Table, identity: str) -> Iterator[DataFrame]:
        """Yield the rows of files that are changes as a whole, and those of files in which commits changed rows."""
        files = with_statuses(with_all_columns(files), source.location, source.storage_options)
        selecting = pc.fill_null(files[_SELECTS_ROWS], False)
        whole = files.filter(pc.invert(selecting))
        if whole.num_rows:
            yield from self._of_rows(source, whole, identity)
        if whole.num_rows < files.num_rows:
            chosen = files.filter(selecting).combine_chunks()
            changed = gather(chosen, source.location, source.storage_options)
            without_constants = replace(source, constants=(), stored_too=())
            yield self._frame(without_constants, changed.files, f"{identity} changes", (Files.MARKED,), changed)

    def _frame(
        self,
        source: FileSource,
        files: pa.Table | Callable[[], pa.Table],
        identity: str,
        kinds: tuple[Files, ...],
        changed: FilesOfChanges | None = None,
    ) -> DataFrame:
        find = files if callable(files) else lambda: files
        is_of_rows = changed is None and not source.constants and not source.in_files_too
        configuration = source.configuration if is_of_rows else None
        return catalyst_frame_of_stream(
            self.spark,
            BatchListing(source.location, find, identity, source.storage_options, None, configuration),
            table_columns(source.configuration, source.in_files_too, source.constants),
            kinds,
            StreamFileIndex,
            row_tracking=self.metadata and is_active(source.configuration, Feature.ROW_TRACKING),
            metadata=self.metadata,
            number_width=0 if changed is None else changed.width,
            change_kind=None if changed is None else changed.kind,
        )


def can_have_metadata(source: FileSource) -> bool:
    """Return True if the stream can have the hidden column `_metadata`."""
    return not source.constants and can_expose(table_columns(source.configuration).names)


def leaf_frame(spark: SparkSession, source: Any, frames: BatchFrames, name: str | None = None) -> DataFrame:
    """Return the DataFrame of a stream. `source` implements Spark's trait `Source`; a query calls it for each batch.

    `name` identifies the source among those of a query.
    """
    jvm = jvm_of(spark)
    types = jvm.module("org.apache.spark.sql.catalyst.types.DataTypeUtils")
    output = types.toAttributes(frames.empty()._jdf.schema())
    named = relation_members(jvm, name)
    leaf = jvm.type(runtime(jvm, _LEAF))(source, output, jvm.none, *named, spark._jsparkSession)
    frame = frame_of_plan(spark, leaf)
    return hide_last_column(jvm, frame) if frames.metadata else frame


def unavailable(spark: SparkSession) -> str | None:
    """Return why this Spark cannot use a stream's source in Python; None if it can. It is tried once for each JVM.

    The file index of batch reads is tried elsewhere.
    """
    return _try_internals(spark.sparkContext._gateway)


@lru_cache(maxsize=2)
def _try_internals(gateway: Any) -> str | None:
    from py4j.clientserver import ClientServer

    if not isinstance(gateway, ClientServer):
        return "PYSPARK_PIN_THREAD is false, so that calls do not know their query"
    try:
        jvm = Jvm(gateway)
        text = jvm.type(runtime(jvm, "SerializedOffset"))("{}")
        if str(text.json()) != "{}":
            return f"an offset was converted to {text.json()}"
        for name, members in ((runtime(jvm, _LEAF), _LEAF_MEMBERS), (_RELATION, _RELATION_MEMBERS)):
            if jvm.arity(name) not in members:
                return f"{name} has {jvm.arity(name)} members"
        relation_members(jvm, None)
        jvm.module("org.apache.spark.sql.catalyst.types.DataTypeUtils")
        jvm.type("org.apache.spark.sql.connector.read.streaming.ReadLimit").maxFiles(1)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


_NO_FILES = pa.schema(FILE_COLUMNS).empty_table()


def _files(parts: Sequence[BatchFiles]) -> list[pa.Table]:
    names = [column.name for column in FILE_COLUMNS]
    return [part.files.select(names) for part in parts]


def _kinds(vectors: pa.ChunkedArray) -> tuple[Files, ...]:
    if vectors.null_count == len(vectors):
        return (Files.ALL,)
    return (Files.DELETED_FROM,) if vectors.null_count == 0 else (Files.INTACT, Files.DELETED_FROM)
