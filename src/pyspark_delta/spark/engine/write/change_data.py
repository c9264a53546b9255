"""Change data files: which rows a write took away and which it added, where readers could not tell (Change Data Files).

Where a commit only adds files, or only removes whole ones, readers derive the changes from them. Where it writes rows
anew that stay, they could not: then every changed row is in a change data file, the added ones too (C164-C174).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as sf

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.engine.write.alignment import align
from pyspark_delta.spark.engine.write.job import write_frame
from pyspark_delta.write.change_data import CHANGE_TYPE, change_context, change_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    told = frame.withColumn(CHANGE_TYPE.name, sf.lit(change))
    return align(told, StructType((*schema, CHANGE_TYPE)), change_context(context).schema)
