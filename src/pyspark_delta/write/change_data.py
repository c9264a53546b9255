"""Change data files of a commit: their location, and their additional column (C163).

If a commit only adds files, or only removes whole ones, readers derive the changes. If it rewrites files with rows that
stay, they cannot: every changed row is then in a change data file, also the added ones (C164-C174).
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.schema.types import STRING, StructField, StructType
from pyspark_delta.storage.paths import join
from pyspark_delta.write.written import with_columns

CHANGE_DATA_DIRECTORY = "_change_data"
CHANGE_TYPE = StructField("_change_type", STRING)


def change_context(context: WriteContext) -> WriteContext:
    """Return the context for change data files, from that of the data files: one more column, no statistics."""
    location = join(context.table_location, CHANGE_DATA_DIRECTORY)
    return replace(
        with_columns(context, StructType((CHANGE_TYPE,))), table_location=location, stats_columns=(), checks=()
    )


def change_files(written: pa.Table) -> pa.Table:
    """Return the files written in a `change_context`, as a commit names them."""
    paths = pc.binary_join_element_wise(CHANGE_DATA_DIRECTORY, written["path"], "/")
    files = written.set_column(written.column_names.index("path"), "path", paths)
    return files.select(["path", "partition_values", "size"])
