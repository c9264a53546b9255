"""Change data files: which rows a write took away and which it added, where readers could not tell (Change Data Files).

Where a commit only adds files, or only removes whole ones, readers derive the changes from them. Where it writes rows
anew that stay, they could not: then every changed row is in a change data file, the added ones too (C164-C174).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as sf

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.schema.types import STRING, StructField, StructType
from pyspark_delta.spark.engine.write.alignment import align
from pyspark_delta.spark.engine.write.job import write_frame
from pyspark_delta.spark.engine.write.rows_written import with_columns
from pyspark_delta.storage.paths import join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGE_DATA_DIRECTORY = "_change_data"
CHANGE_TYPE = "_change_type"
_KIND = StructField(CHANGE_TYPE, STRING)


def write_changes(
    deleted: DataFrame, inserted: DataFrame, before: StructType, after: StructType, context: WriteContext
) -> pa.Table:
    """Write rows that left, of the schema `before`, and rows that came, of the schema `after`; the files.

    Paths are relative to the table, in the directory `_change_data`.
    """
    gone, come = _changed(deleted, before, "delete", context), _changed(inserted, after, "insert", context)
    return change_files(write_frame(gone.unionAll(come), change_context(context)))


def write_inserts(inserted: DataFrame, schema: StructType, context: WriteContext) -> pa.Table:
    """Write rows that came, for a commit whose other changes are in change data files; the files."""
    return change_files(write_frame(_changed(inserted, schema, "insert", context), change_context(context)))


def _changed(frame: DataFrame, schema: StructType, change: str, context: WriteContext) -> DataFrame:
    told = frame.withColumn(CHANGE_TYPE, sf.lit(change))
    return align(told, StructType((*schema, _KIND)), change_context(context).schema)


def change_context(context: WriteContext) -> WriteContext:
    """The context for the change data files of a table, from that of its data files: one more column, no statistics."""
    location = join(context.table_location, CHANGE_DATA_DIRECTORY)
    return replace(with_columns(context, StructType((_KIND,))), table_location=location, stats_columns=(), checks=())


def change_files(written: pa.Table) -> pa.Table:
    """The files that were written in a `change_context`, as a commit names them."""
    paths = pc.binary_join_element_wise(CHANGE_DATA_DIRECTORY, written["path"], "/")
    files = written.set_column(written.column_names.index("path"), "path", paths)
    return files.select(["path", "partition_values", "size"])
