"""Rows of a frame as new data files: of the table, or rows that the table had and keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import no_files
from pyspark_delta.protocol.properties import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from pyspark_delta.scan.planner import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, require_row_tracking
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.spark.write.columns import align
from pyspark_delta.spark.write.job import furthest_marks, write_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Written:
    """New files with columns of `actions.columns`, how many rows they hold, and their size in bytes."""

    files: pa.Table
    rows: int
    size: int
    marks: Mapping[str, int] = field(default_factory=dict)  # the last numbers that identity columns were given

    @classmethod
    def of(cls, files: pa.Table, context: WriteContext) -> Written:
        """What `write_frame` returned for a context."""
        rows, size = (pc.sum(files.column(name)).as_py() or 0 for name in ("num_records", "size"))
        kept = files.drop_columns(["num_records", "marks"]) if files.num_rows else no_files()
        return cls(kept, rows, size, furthest_marks(files, context))

    @classmethod
    def nothing(cls) -> Written:
        """No files."""
        return cls(no_files(), 0, 0)


def has_row_ids(configuration: TableConfiguration) -> bool:
    """Whether rows keep their ids when they are written anew (C321)."""
    return is_active(configuration, Feature.ROW_TRACKING)


def write_kept(frame: DataFrame, before: TableConfiguration, context: WriteContext) -> Written:
    """Write rows that the table has already, with its columns and, where it tracks rows, their ids.

    Row ids and commit versions are stored in columns of their own, since the new files imply others (C324, C326).
    """
    extended = with_row_ids(before, context)
    if extended is context:
        return Written.of(write_frame(align(frame, before.schema, context.schema), context), context)
    shown = StructType((StructField(ROW_ID_COLUMN, LONG), StructField(ROW_COMMIT_VERSION_COLUMN, LONG)))
    aligned = align(frame, StructType((*before.schema, *shown)), StructType((*context.schema, *shown)))
    return Written.of(write_frame(aligned, extended), extended)


def with_row_ids(before: TableConfiguration, context: WriteContext) -> WriteContext:
    """The context for files with rows that the table has already: after its columns, those with their ids, if any.

    Raises as `require_row_tracking`.
    """
    if not has_row_ids(before):
        return context
    require_row_tracking(before)
    names = (MATERIALIZED_ROW_ID.of(before.properties), MATERIALIZED_ROW_COMMIT_VERSION.of(before.properties))
    return with_columns(context, StructType(tuple(StructField(name, LONG) for name in names if name is not None)))


def with_columns(context: WriteContext, columns: StructType) -> WriteContext:
    """The context for files with more columns than those of the table."""
    stored = len(context.partition_columns) if context.stores_partition_columns else 0
    fields = context.data_schema.fields
    data, partition = fields[: len(fields) - stored], fields[len(fields) - stored :]
    return replace(
        context,
        schema=StructType((*context.schema, *columns)),
        data_schema=StructType((*data, *columns, *partition)),
    )
