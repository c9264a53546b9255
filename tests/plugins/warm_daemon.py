"""The process that forks Spark's Python workers, with all that they import already imported.

Spark ends a worker with each task that fails, and each new one would import the same again, for a second. The workers
of the stage `cluster` come from PySpark's own module.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module

IMPORTED = (
    "pandas",
    "pyarrow.pandas_compat",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "pyspark_delta.engines.arrow",
    "pyspark_delta.engines.write_task",
    "pyspark_delta.spark.engine.write.job",
    "pyspark_delta.spark.source.reader",
    "pyspark_delta.spark.source.writer",
)


def main() -> None:
    """Import the modules and serve, as PySpark's own module does."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process with threads is not to be forked
    sys.path[:] = [entry for entry in sys.path if not entry.endswith((".jar", ".zip"))]  # which workers read again
    for name in IMPORTED:
        with suppress(ImportError):  # as in an environment of another test
            import_module(name)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task: not among what was imported
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
