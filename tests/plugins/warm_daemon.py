"""The process that forks Spark's Python workers, with all that they import already imported.

Spark ends a worker with each task that fails, and each new one would import the same again, for a second. The workers
of the stage `cluster` come from PySpark's own module.
"""

from __future__ import annotations

import gc
import os
import threading

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process with threads is not to be forked

import pandas
import pyarrow.pandas_compat
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark.daemon import manager

import pyspark_delta.engines.arrow
import pyspark_delta.engines.write_task
import pyspark_delta.spark.engine.write.job
import pyspark_delta.spark.source.reader
import pyspark_delta.spark.source.writer

IMPORTED = (pandas, pyarrow, pyspark, pyspark_delta)

if __name__ == "__main__":
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task: not among what was imported
    manager()
