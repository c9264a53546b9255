"""Change data files: the rows that a write removed and added, if readers could not derive them (Change Data Files).

If a commit only adds files, or only removes whole ones, readers derive the changes. If it rewrites files with rows that
stay, they cannot: every changed row is then in a change data file, also the added ones (C164-C174).
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
    """Write removed rows of the schema `before` and added rows of the schema `after`; return the files.

    Paths are relative to the table, in the directory `_change_data`.
    """
    gone, come = _changed(deleted, before, "delete", context), _changed(inserted, after, "insert", context)
    return change_files(write_frame(gone.unionAll(come), change_context(context)))


def write_inserts(inserted: DataFrame, schema: StructType, context: WriteContext) -> pa.Table:
    """Write added rows for a commit whose other changes are in change data files; return the files."""
    return change_files(write_frame(_changed(inserted, schema, "insert", context), change_context(context)))


def _changed(frame: DataFrame, schema: StructType, change: str, context: WriteContext) -> DataFrame:
    typed = frame.withColumn(CHANGE_TYPE.name, sf.lit(change))
    return align(typed, StructType((*schema, CHANGE_TYPE)), change_context(context).schema)
