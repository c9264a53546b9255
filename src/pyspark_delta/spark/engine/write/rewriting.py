"""Files of which rows leave, written anew: workers read the rows that stay, and write them, with Arrow.

Spark only hands out the files. Their rows stay in the memory of one worker, as they are: nothing is converted for Spark
and back, and the rows that leave are told by their positions, which Arrow knows for nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.parts import write_all
from pyspark_delta.data.reader import partition_text, read_tasks, tasks_of
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, written_files
from pyspark_delta.engines.cost import CostModel
from pyspark_delta.spark.conf.cores import cores_of
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.engine.write.job import run_each
from pyspark_delta.spark.engine.write.task import RESULT, write_partition
from pyspark_delta.spark.frames.file_source import FileSource
from pyspark_delta.spark.frames.tasks.partitions import group_files, in_shares
from pyspark_delta.write.written import Written, with_row_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite_files(
    spark: SparkSession, source: FileSource, files: pa.Table, context: WriteContext, cost: CostModel
) -> Written:
    """Write the rows of files that their deletion vectors do not mark, with their ids where they have some.

    `files` have columns of `actions.columns`; rows are read in the schema of `source`, and written as `context` says.
    Small files of a partition of the table become one.

    Raises as `read_tasks` and `write_all`. Files that other tasks wrote stay behind then; no commit names them.
    """
    extended = with_row_ids(source.configuration, context)
    read = source.read_context(
        context.schema.fields, row_ids=extended is not context, time_zone=session_time_zone(spark)
    )
    files = by_partition(files, context)
    if cost.rewrites_in_driver(files):
        rows = _named(extended, read_tasks(read, list(tasks_of(files))))
        return Written.of(written_files(write_all(extended, rows)), extended)
    groups = group_files(read, in_shares(files, cost), cores_of(spark), cost)
    written = run_each(spark, groups, partial(_rewrite, extended), RESULT)
    return Written.of(written.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA), extended)


def _named(context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, list(context.schema.names))


def by_partition(files: pa.Table, context: WriteContext) -> pa.Table:
    """The files, those of a partition of the table side by side, so that a task has one file open at a time."""
    if not context.partition_names:
        return files
    # By number, as Arrow takes a name that begins with a dot for a path.
    keys = pa.table({str(i): partition_text(files, name) for i, name in enumerate(context.partition_names)})
    return files.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]))


def _rewrite(context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from write_partition(context, False, _rows(batches))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the files that a task was given."""
    for batch in batches:
        for pickled in batch.column(0):
            group = pickle.loads(pickled.as_py())
            yield from read_tasks(group.context, group.tasks())
