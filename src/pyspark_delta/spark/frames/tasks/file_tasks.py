"""Workers read chosen data files with the Arrow reader if Spark itself cannot read them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.data.reader import read_task
from pyspark_delta.engines.tasks import single_files
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.spark.conf.worker_python import prepare_workers
from pyspark_delta.spark.frames.schemas import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.scan.file_source import FileSource

_TASK = "task binary"
_MOST_TASKS = 10_000


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
    time_zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    context = source.read_context(row_ids=row_tracking, row_index=row_index, time_zone=time_zone)
    fields = {plan.field.name: plan.field for plan in context.columns}
    schema = [fields[name] for name in context.output]
    if file_number is not None:  # before the position of the row, as in `frame_of_files`
        place = len(schema) - (row_index is not None)
        schema.insert(place, StructField(file_number, LONG))
    frame = spread(spark, enumerate(single_files(context, files)))
    return frame.mapInArrow(
        partial(_read, context, None if file_number is None else place), to_spark(StructType(tuple(schema)))
    )


def spread(spark: SparkSession, tasks: Iterable[object]) -> DataFrame:
    """Return a frame with one pickled row per task, distributed over as many Spark tasks as possible.

    Raises MissingDependencyError.
    """
    prepare_workers(spark)
    pickled = [(pickle.dumps(task),) for task in tasks]
    frame = spark.createDataFrame(pickled, _TASK)
    return frame if len(pickled) < 2 else frame.repartition(min(len(pickled), _MOST_TASKS))


def _read(context: ReadContext, place: int | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for pickled in batch.column(0):
            number, files = pickle.loads(pickled.as_py())
            for task in files.tasks():
                for rows in read_task(context, task):
                    if place is not None:
                        rows = rows.add_column(place, "number", pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows))
                    yield rows
