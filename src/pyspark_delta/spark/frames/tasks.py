"""The Arrow scan: Python workers read data files that Spark itself cannot read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.data.reader import read_task
from pyspark_delta.engines.tasks import FileGroup, ItemTask, pickle_items, run_items, single_files
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.worker_python import prepare_workers
from pyspark_delta.spark.frames.schemas import to_spark
from pyspark_delta.spark.hadoop.tasks import with_hadoop_access

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.scan.file_source import FileSource

_TASK = "task binary"
MOST_TASKS = 10_000
"""The maximum number of tasks of one job. If there are more items, a task gets several."""


def task_frame(
    spark: SparkSession,
    source: FileSource,
    files: pa.Table,
    *,
    row_tracking: bool = False,
    file_number: str | None = None,
    row_index: str | None = None,
) -> DataFrame:
    """Return the rows of some files as `public_scan.frame_of_files` does, with one task for each file."""
    context = source.read_context(row_ids=row_tracking, row_index=row_index, time_zone=session_time_zone(spark))
    fields = {plan.field.name: plan.field for plan in context.columns}
    schema = [fields[name] for name in context.output]
    if file_number is not None:  # before the position of the row, as in `frame_of_files`
        place = len(schema) - (row_index is not None)
        schema.insert(place, StructField(file_number, LONG))
    read = partial(_read, None if file_number is None else place)
    return frame_of_tasks(spark, single_files(context, files), read, StructType(tuple(schema)))


def frame_of_tasks(spark: SparkSession, items: Iterable[object], task: ItemTask, schema: StructType) -> DataFrame:
    """Return the rows that `task` makes of each picklable item, in up to `MOST_TASKS` Spark tasks.

    The tasks run each time the frame is executed. Raises MissingDependencyError if workers cannot run the package.
    """
    prepare_workers(spark)
    pickled = [(item,) for item in pickle_items(items)]
    frame = spark.createDataFrame(pickled, _TASK)
    frame = frame if len(pickled) < 2 else frame.repartition(min(len(pickled), MOST_TASKS))
    return frame.mapInArrow(with_hadoop_access(spark, partial(run_items, task)), to_spark(schema))


def _read(place: int | None, number: int, files: FileGroup) -> Iterator[pa.RecordBatch]:
    for task in files.tasks():
        for rows in read_task(files.context, task):
            if place is not None:
                rows = rows.add_column(place, "number", pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows))
            yield rows
