"""The net change of rows that a transaction changes more than once: change data files that show each row once (C169).

Rows have no identity that every table stores. So the rows after the first changes are matched with equal rows before
the second ones, as many as there are. Of two changes of a row, the value before the first one stays, and the value
after the second one; nothing stays of a row that is inserted and deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark.sql.functions as sf
from pyspark.sql import Window

from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.engine.write.alignment import align
from pyspark_delta.spark.engine.write.job import write_frame
from pyspark_delta.spark.engine.write.row_keys import row_key
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.transaction.write_plan import FileOptions, write_context
from pyspark_delta.write.change_data import CHANGE_TYPE, PAIR, change_context, change_files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OLD, _NEW = "old", "new"
"""The row before a change, null if it was inserted, and after it, null if it was deleted. One of them is not null."""

_ROW, _KIND, _KEY, _NUMBER = "row", "kind", "key", "number"
_PAIR = tuple(field.name for field in PAIR)
_BEFORE = (RowAction.DELETE.value, RowAction.PREIMAGE.value)
_IMAGES = (RowAction.PREIMAGE.value, RowAction.UPDATE.value)


def write_net_changes(
    spark: SparkSession,
    location: str,
    configuration: TableConfiguration,
    options: FileOptions,
    changes: tuple[pa.Table, pa.Table],
) -> pa.Table:
    """Write change data files with what the first and then the second `changes` do together; return the files.

    Both are change data files, with `PAIR` where rows are updated. They are read with the columns of `configuration`,
    which is what the table declares after the second ones.
    """
    source = FileSource(
        location, configuration, options.storage_options, stored_too=(CHANGE_TYPE,), sometimes_stored=PAIR
    )
    first, second = (_changes(read_files(spark, source, files), configuration.schema) for files in changes)
    rows = _rows(_joined(first, second, configuration.schema), configuration.schema)
    context = change_context(write_context(location, configuration, options), pairs=True)
    shown = StructType((*configuration.schema, CHANGE_TYPE, *PAIR))
    return change_files(write_frame(align(rows, shown, context.schema), context))


def _changes(images: DataFrame, schema: StructType) -> DataFrame:
    """Return the changes of rows, with the columns `_OLD`, `_NEW` and `PAIR`, from the rows of change data files.

    An image without a pair is a change of its own, so that nothing is lost.
    """
    row = sf.struct(*(sf.col(quoted(name)).alias(name) for name in schema.names)).alias(_ROW)
    images = images.select(row, sf.col(CHANGE_TYPE.name).alias(_KIND), *_PAIR)
    is_old, is_paired = sf.col(_KIND).isin(*_BEFORE), sf.col(_KIND).isin(*_IMAGES) & sf.col(_PAIR[1]).isNotNull()
    old, new = sf.when(is_old, sf.col(_ROW)), sf.when(~is_old, sf.col(_ROW))
    alone = images.where(~is_paired).select(old.alias(_OLD), new.alias(_NEW), *_PAIR)
    both = [sf.first(value, ignorenulls=True).alias(name) for value, name in ((old, _OLD), (new, _NEW))]
    updated = images.where(is_paired).groupBy(*_PAIR).agg(*both).select(_OLD, _NEW, *_PAIR)
    return alone.unionAll(updated)


def _joined(first: DataFrame, second: DataFrame, schema: StructType) -> DataFrame:
    """Return what changes do that follow each other."""
    one, other = _numbered(first, _NEW, _OLD, schema).alias("a"), _numbered(second, _OLD, _NEW, schema).alias("b")
    is_same = (sf.col(f"a.{_KEY}") == sf.col(f"b.{_KEY}")) & (sf.col(f"a.{_NUMBER}") == sf.col(f"b.{_NUMBER}"))

    def chosen(side: str, otherwise: str, name: str) -> Column:
        there = sf.col(f"{side}.{_NUMBER}").isNotNull()
        return sf.when(there, sf.col(f"{side}.{name}")).otherwise(sf.col(f"{otherwise}.{name}")).alias(name)

    pair = (sf.coalesce(sf.col(f"a.{name}"), sf.col(f"b.{name}")).alias(name) for name in _PAIR)
    return one.join(other, is_same, "full_outer").select(chosen("a", "b", _OLD), chosen("b", "a", _NEW), *pair)


def _numbered(changes: DataFrame, side: str, other_side: str, schema: StructType) -> DataFrame:
    """Return changes with a key of the row on one side, and a number among the changes with the same key.

    The key is null if there is no such row. Changes with the same number are the same on the other side too, so the
    result does not depend on the order in which Spark reads them.
    """
    key, other_key = row_key(sf.col(side), schema), row_key(sf.col(other_side), schema)
    keyed = changes.select("*", key.alias(_KEY), other_key.alias("other"))
    spread = sf.when(sf.col(_KEY).isNull(), sf.col("other"))  # else one task would get all rows without a key
    number = sf.row_number().over(Window.partitionBy(_KEY, spread).orderBy("other"))
    return keyed.select(_OLD, _NEW, *_PAIR, _KEY, number.alias(_NUMBER))


def _rows(changes: DataFrame, schema: StructType) -> DataFrame:
    """Return the images of changes, with the columns of the table, `CHANGE_TYPE` and `PAIR`."""
    old, new = sf.col(_OLD), sf.col(_NEW)

    def image(row: Column, alone: RowAction, paired: RowAction, other: Column) -> Column:
        kind = sf.when(other.isNull(), alone.value).otherwise(paired.value)
        return sf.struct(row.alias(_ROW), kind.alias(_KIND))

    before = image(old, RowAction.DELETE, RowAction.PREIMAGE, new)
    after = image(new, RowAction.INSERT, RowAction.UPDATE, old)
    images = sf.filter(sf.array(before, after), lambda one: one.getField(_ROW).isNotNull())
    exploded = changes.select(sf.explode(images).alias("image"), *_PAIR)
    columns = (sf.col("image").getField(_ROW).getField(name).alias(name) for name in schema.names)
    return exploded.select(*columns, sf.col("image").getField(_KIND).alias(CHANGE_TYPE.name), *_PAIR)
