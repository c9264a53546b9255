"""The Catalyst scan: a `FileIndex` in Python, which Spark's planner asks for the files of a query.

Spark prunes columns, plans joins and reads Parquet in its own generated code. Once per query, during planning, it asks
the file index which files of one snapshot may hold rows for the predicates, and which constants each file has.
Partition values come from the log.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.deletion_vectors.bitmap import to_words
from pyspark_delta.errors import DeltaError
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import BINARY, LONG, DataType, StructField, StructType
from pyspark_delta.spark.frames.catalyst.callbacks import called_by_jvm
from pyspark_delta.spark.frames.catalyst.deleted_rows import CHANGES, NUMBERS
from pyspark_delta.spark.frames.catalyst.directories import (
    Groups,
    directories_json,
    each_file,
    group_files,
    hadoop_paths,
    rows_json,
    strings_json,
    uri_texts,
)
from pyspark_delta.spark.frames.catalyst.error_relay import expect, relay
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.listings import Listing
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.frames.catalyst.predicates import Translator
from pyspark_delta.spark.frames.catalyst.sequences import concatenated
from pyspark_delta.spark.frames.catalyst.unsafe_rows import encode_rows
from pyspark_delta.spark.frames.catalyst.vectors import read_vectors
from pyspark_delta.spark.frames.relation_columns import TableColumns
from pyspark_delta.storage.paths import to_hadoop

DELETED_ROWS = StructField("_pyspark_delta_deleted_rows", BINARY)
BASE_ROW_ID = StructField("_pyspark_delta_base_row_id", LONG)
DEFAULT_ROW_COMMIT_VERSION = StructField("_pyspark_delta_default_row_commit_version", LONG)
FILE_NUMBER = StructField("_pyspark_delta_file_number", LONG)
_LOCAL_RELATION = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"
_ROW_TRACKING = (BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION)


class Files(Enum):
    """The files of a listing that an index returns."""

    ALL = "all"
    INTACT = "without deletion vector"
    DELETED_FROM = "with deletion vector"
    MARKED = "with numbers of changes"


class DeltaFileIndex:
    """The files of one listing for Spark's planner. An index is immutable, so a DataFrame stays at one version.

    The JVM holds a proxy of this object for as long as a plan refers to it, and py4j holds the object for as long as
    the JVM holds the proxy. Equal indexes make equal plans: Spark's cache and its reuse of exchanges depend on this.
    """

    class Java:
        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)

    def __init__(
        self,
        jvm: Jvm,
        listing: Listing,
        columns: TableColumns,
        files: Files,
        *,
        row_tracking: bool,
        numbered: bool = False,
        time_zone: str,
    ) -> None:
        self._jvm = jvm
        self._listing = listing
        self._files = files
        self._partition = columns.partition
        self._translator = Translator(columns.relation_columns)
        self._time_zone = time_zone
        self._row_tracking = row_tracking
        self._numbered = numbered
        self._hidden = (
            *((DELETED_ROWS,) if files is Files.DELETED_FROM else ()),
            *((NUMBERS, CHANGES) if files is Files.MARKED else ()),
            *(_ROW_TRACKING if row_tracking else ()),
            *((FILE_NUMBER,) if numbered else ()),
        )
        self._schema = StructType(columns.partition_schema().fields + self._hidden)
        self._java_schema = jvm.struct_type(self._schema)
        root = to_hadoop(listing.location)
        if listing.version is not None:
            expect(uri_texts(pa.array([root]))[0].as_py(), listing.version)
        self._java_root = jvm.once(("root", root), lambda: jvm.seq([jvm.type("org.apache.hadoop.fs.Path")(root)]))
        self._text = f"Delta[version={listing.version}, {listing.location}, {self._digest()}]"
        self._hash = zlib.crc32(self._text.encode()) - 2**31

    @property
    def schema(self) -> StructType:
        """The partition columns, followed by the hidden constants of each file."""
        return self._schema

    @property
    def hidden(self) -> tuple[StructField, ...]:
        """The hidden constants of each file."""
        return self._hidden

    # ------------------------------------------------------------------------------------------- called by the JVM
    @called_by_jvm
    def rootPaths(self) -> Any:
        return self._java_root

    @called_by_jvm
    def partitionSchema(self) -> Any:
        return self._java_schema

    @called_by_jvm
    def sizeInBytes(self) -> int:
        return self._listing.size_in_bytes()

    @called_by_jvm
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        try:
            return self._list(elements(partition_filters), elements(data_filters))
        except DeltaError as error:
            raise relay(error) from None

    @called_by_jvm
    def inputFiles(self) -> Any:
        try:
            return self._input_files()
        except DeltaError as error:
            raise relay(error) from None

    def refresh(self) -> None:
        return None

    @called_by_jvm
    def metadataOpsTimeNs(self) -> Any:
        return self._jvm.none

    @called_by_jvm
    def isTimeTravel(self) -> bool:
        return False

    @called_by_jvm
    def equals(self, other: Any) -> bool:
        # `other` is the JVM's proxy of an index; its `toString` calls the method below.
        if self is other:
            return True
        return other is not None and str(other.toString()) == self._text

    @called_by_jvm
    def hashCode(self) -> int:
        return self._hash

    @called_by_jvm
    def toString(self) -> str:
        return self._text

    # ---------------------------------------------------------------------------------------------------- the files
    def _list(self, partition_filters: Sequence[Any], data_filters: Sequence[Any]) -> Any:
        jvm = self._jvm
        files = self._select(self._translator.translate([*partition_filters, *data_filters]))
        if self._hidden:
            groups = each_file(len(files))
        else:
            groups = group_files([self._texts(files, c.physical.name) for c in self._partition], len(files))
        values = self._partition_values(files, groups)
        if partition_filters and len(groups):
            kept = self._satisfying(partition_filters, values, len(groups))
            files, groups, values = _restrict(files, groups, values, kept)
        if not len(groups):
            return jvm.nil
        values += self._hidden_values(files)
        rows = encode_rows(values, len(groups))
        paths = hadoop_paths(self._listing.location, files["path"])
        result = jvm.nil
        for text in directories_json(files, paths, groups, rows, jvm.byte_array_offset):
            batch = jvm.directories(text)
            result = batch if result is jvm.nil else concatenated(jvm, result, batch)
        return result

    def _input_files(self) -> Any:
        paths = hadoop_paths(self._listing.location, self._select(None)["path"])
        return self._jvm.strings(strings_json(paths))

    def _digest(self) -> str:
        """Return a digest of everything that the result depends on. A digest hides secrets in the storage options."""
        parts = (
            self._listing.identity,
            self._files.value,
            self._row_tracking,
            self._numbered,
            self._time_zone,
            sorted(self._listing.storage_options.items()),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _select(self, where: Any) -> pa.Table:
        files = self._listing.select(
            where,
            row_tracking=self._row_tracking,
            statistics=self._files is Files.DELETED_FROM,
            time_zone=self._time_zone,
        )
        if self._numbered:
            files = files.append_column(FILE_NUMBER.name, pa.array(np.arange(files.num_rows)))
        if self._files in (Files.INTACT, Files.DELETED_FROM):
            with_vector = files["deletion_vector"].is_valid()
            files = files.filter(with_vector if self._files is Files.DELETED_FROM else pc.invert(with_vector))
        return files.combine_chunks()

    def _texts(self, files: pa.Table, physical_name: str) -> pa.Array:
        values = files["partition_values"].combine_chunks()
        return pc.map_lookup(values, pa.scalar(physical_name), "last")

    def _partition_values(self, files: pa.Table, groups: Groups) -> list[tuple[pa.Array, DataType]]:
        first = pa.array(groups.first_file)
        values = []
        for column in self._partition:
            texts = self._texts(files, column.physical.name).take(first)
            name, data_type = column.logical.name, column.logical.type
            typed = parse_partition_column(texts, data_type, self._time_zone, column=name, table=self._listing.location)
            values.append((typed, data_type))
        return values

    def _hidden_values(self, files: pa.Table) -> list[tuple[pa.Array, DataType]]:
        """Return the values of the hidden constants, one for each file. With them, every file is a group."""
        values: list[tuple[pa.Array, DataType]] = []
        if self._files is Files.DELETED_FROM:
            values.append((self._deleted_rows(files), BINARY))
        if self._files is Files.MARKED:
            values += [(files[constant.name].combine_chunks(), BINARY) for constant in (NUMBERS, CHANGES)]
        if self._row_tracking:
            values.append((files["base_row_id"].combine_chunks(), LONG))
            values.append((files["default_row_commit_version"].combine_chunks(), LONG))
        if self._numbered:
            values.append((files[FILE_NUMBER.name].combine_chunks(), LONG))
        return values

    def _deleted_rows(self, files: pa.Table) -> pa.Array:
        bitmaps = read_vectors(files, self._listing.location, self._listing.storage_options)
        return pa.array([to_words(bitmap).tobytes() for bitmap in bitmaps], pa.large_binary())

    def _satisfying(
        self, filters: Sequence[Any], values: Sequence[tuple[pa.Array, DataType]], count: int
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the groups whose partition values satisfy the filters, which Catalyst itself evaluates.

        Spark does not repeat partition filters after the scan. So they must be decided here, also those that were not
        translated, and with Spark's semantics of every function.
        """
        jvm = self._jvm
        expressions = jvm.root.org.apache.spark.sql.catalyst.expressions
        condition = filters[0]
        for one in filters[1:]:
            condition = expressions.And(condition, one)
        names = {field.name.casefold(): index for index, field in enumerate(self._schema.fields[: len(values)])}
        attributes = elements(condition.references().toSeq())
        used = [values[names[str(attribute.name()).casefold()]] for attribute in attributes]
        ordinal = expressions.AttributeReference(
            "group",
            jvm.data_type('"long"'),
            False,
            jvm.root.org.apache.spark.sql.types.Metadata.empty(),
            expressions.NamedExpression.newExprId(),
            jvm.nil,
        )
        rows = encode_rows([*used, (pa.array(np.arange(count)), LONG)], count)
        kept = []
        for text in rows_json(rows, jvm.byte_array_offset):
            kept += self._evaluate(condition, jvm.seq([*attributes, ordinal]), ordinal, jvm.rows(text))
        return np.array(kept, dtype=np.int64)

    def _evaluate(self, condition: Any, attributes: Any, ordinal: Any, rows: Any) -> list[int]:
        logical = self._jvm.root.org.apache.spark.sql.catalyst.plans.logical
        rule = self._jvm.module("org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
        local = self._jvm.make(_LOCAL_RELATION, attributes, rows, False, self._jvm.none)
        kept = rule.apply(logical.Filter(condition, local))
        numbers = rule.apply(logical.Project(self._jvm.seq([ordinal]), kept))
        text = numbers.data().mkString(";")
        return [int(row[1:-1]) for row in text.split(";")] if text else []


def _restrict(
    files: pa.Table,
    groups: Groups,
    values: Sequence[tuple[pa.Array, DataType]],
    kept: np.ndarray[Any, np.dtype[np.int64]],
) -> tuple[pa.Table, Groups, list[tuple[pa.Array, DataType]]]:
    """Return the files, groups and values of the groups that are `kept`."""
    renumbered = np.full(len(groups), -1, dtype=np.int64)
    renumbered[kept] = np.arange(len(kept))
    of_file = renumbered[groups.of_file]
    files = files.filter(pa.array(of_file >= 0)).combine_chunks()
    taken = pa.array(kept)
    return (
        files,
        Groups(of_file[of_file >= 0], groups.first_file[kept]),
        [(array.take(taken), data_type) for array, data_type in values],
    )
