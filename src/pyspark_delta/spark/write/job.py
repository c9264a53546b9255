"""The Spark job that writes data files: every task writes its rows with Arrow and returns one small row per file."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext
from pyspark_delta.errors import DeltaError
from pyspark_delta.spark.write.task import RESULT, write_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Rows that cross to a worker at once. Workers gather them into row groups, so this only sets the overhead of crossing.
_ROWS_AT_ONCE = 64_000


def write_frame(frame: DataFrame, context: WriteContext) -> pa.Table:
    """Write the rows of a frame, whose columns are those of the context; the files, columns as in `WRITTEN_SCHEMA`.

    Raises the DeltaError that a worker met, as itself. Files that other tasks wrote stay behind; no commit names them.
    """
    # PySpark resolves the columns by name once more, and stumbles over dots in them: workers go by position.
    frame = frame.toDF(*(f"c{position}" for position in range(len(context.schema))))
    if context.partition_columns:
        # so that a task has one file open at a time
        frame = frame.sortWithinPartitions(
            *(f"c{context.schema.names.index(name)}" for name in context.partition_columns)
        )
    with _setting(frame.sparkSession, _BATCH_ROWS, str(_ROWS_AT_ONCE)), warnings.catch_warnings():
        # PySpark warns about pandas, which nothing here uses.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        rows = frame.mapInArrow(partial(write_partition, context), RESULT).toArrow()
    failures = rows.column("failure").drop_null()
    if len(failures):
        error: DeltaError = pickle.loads(failures[0].as_py())
        raise error
    return rows.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA)


@contextmanager
def _setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set a session configuration while the block runs."""
    before = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, before)
