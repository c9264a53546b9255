"""The Spark job that writes data files: every task writes its rows with Arrow and returns one small row per file."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext
from pyspark_delta.spark.lent_settings import lent_setting
from pyspark_delta.spark.worker_python import missing_package, prepare_workers
from pyspark_delta.spark.write.failures import raise_failure
from pyspark_delta.spark.write.task import RESULT, write_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ArrowTask: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '(pyspark_delta|pyarrow|orjson|numpy)")
_LOCAL_TASKS = "spark.sql.leafNodeDefaultParallelism"
_MOST_TASKS = 10_000
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Rows that cross to a worker at once. Workers gather them into row groups, so this only sets the overhead of crossing.
_ROWS_AT_ONCE = 64_000


def write_frame(frame: DataFrame, context: WriteContext, *, few_partitions: bool = False) -> pa.Table:
    """Write the rows of a frame; the files, columns as in `WRITTEN_SCHEMA`.

    The columns of the frame are those of the context, then the column of violations where the context has checks. With
    `few_partitions`, a task has all rows of a partition, and workers put in order what they get: that is faster than
    sorting in Spark, but makes more files where a task has much.

    Raises the DeltaError that a worker met, as itself. Files that other tasks wrote stay behind; no commit names them.
    """
    # PySpark resolves the columns by name once more, and stumbles over dots in them: workers go by position.
    frame = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    if context.partition_columns and not few_partitions:
        # so that a task has one file open at a time
        frame = frame.sortWithinPartitions(
            *(f"c{context.schema.names.index(name)}" for name in context.partition_columns)
        )
    rows = run_on_workers(frame, partial(write_partition, context, few_partitions), RESULT)
    return rows.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA)


def run_on_workers(frame: DataFrame, task: ArrowTask, result: str) -> pa.Table:
    """What a function makes of the rows of a frame, a task of the workers at a time.

    `result` is the schema of what it makes, in Spark's words, with a column for failures as `failures.or_failure` fills
    it; these are raised here.
    """
    prepare_workers(frame.sparkSession)
    with lent_setting(frame.sparkSession, _BATCH_ROWS, str(_ROWS_AT_ONCE)), warnings.catch_warnings():
        # PySpark warns about pandas, which nothing here uses.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        rows = _run(frame.mapInArrow(task, result))
    raise_failure(rows)
    return rows


def run_each(spark: SparkSession, items: Iterable[object], task: ArrowTask, result: str) -> pa.Table:
    """What a function makes of some objects, which it gets pickled in the only column; each has a task of its own.

    Spark spreads the rows of local data evenly, and an exchange by chance: two rows may well meet in one task then.
    Raises as `run_on_workers`.
    """
    pickled = pa.array([pickle.dumps(item) for item in items], pa.binary())
    with lent_setting(spark, _LOCAL_TASKS, str(min(max(1, len(pickled)), _MOST_TASKS))):
        return run_on_workers(spark.createDataFrame(pa.table({"task": pickled})), task, result)


def furthest_marks(files: pa.Table, context: WriteContext) -> dict[str, int]:
    """The last number that each identity column was given in the files of a write."""
    found: dict[str, int] = {}
    for marks in files.column("marks").to_pylist():
        for name, mark in marks or ():
            step = next(c.step for c in context.numbered if c.name == name)
            found[name] = mark if name not in found else (max if step > 0 else min)(found[name], mark)
    return found


def _run(job: DataFrame) -> pa.Table:
    try:
        return job.toArrow()
    except Exception as error:
        missing = _MISSING_MODULE.search(str(error))
        if missing is None:
            raise
        raise missing_package(missing[1]) from None
