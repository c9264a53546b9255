"""Change data files of a commit: their location, and their additional column (C163).

If a commit only adds files, or only removes whole ones, readers derive the changes. If it rewrites files with rows that
stay, they cannot: every changed row is then in a change data file, also the added ones (C164-C174).
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.changes.configuration_ranges import column_difference
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.schema.types import LONG, STRING, StructField, StructType
from pyspark_delta.storage.paths import join
from pyspark_delta.write.written import with_columns

CHANGE_DATA_DIRECTORY = "_change_data"
CHANGE_TYPE = StructField("_change_type", STRING)

PAIR = (StructField("__pyspark_delta_file", LONG), StructField("__pyspark_delta_row", LONG))
"""Columns that the two images of an updated row share: the number of its file, and its position there.

Statements of a transaction store them, so that a later one can change the row again. Readers drop them (C172).
"""


def change_context(context: WriteContext, *, pairs: bool = False) -> WriteContext:
    """Return the context for change data files, from that of the data files: one more column, no statistics.

    With `pairs`, the columns `PAIR` follow.
    """
    location = join(context.table_location, CHANGE_DATA_DIRECTORY)
    more = StructType((CHANGE_TYPE, *PAIR) if pairs else (CHANGE_TYPE,))
    return replace(with_columns(context, more), table_location=location, stats_columns=(), checks=())


def check_one_feed(before: TableConfiguration, after: TableConfiguration, operation: Operation) -> None:
    """Check that change data files written under the configuration `before` can be in one commit with another one.

    A commit has one schema and one partitioning, with which all its change data files are read. Raises
    InvalidOperationError.
    """
    problem = column_difference(before, after)
    if problem is None and before.partition_columns != after.partition_columns:
        problem = "the table is partitioned by other columns"
    if problem is not None:
        raise InvalidOperationError(
            f"{operation.name} cannot be in one transaction with the changes of rows before it: the table has a change "
            f"data feed, which shows all of them with one schema, but {problem}. Make two transactions of it.",
            operation=operation.name,
        )


def change_files(written: pa.Table) -> pa.Table:
    """Return the files written in a `change_context`, as a commit names them."""
    paths = pc.binary_join_element_wise(CHANGE_DATA_DIRECTORY, written["path"], "/")
    files = written.set_column(written.column_names.index("path"), "path", paths)
    return files.select(["path", "partition_values", "size"])
