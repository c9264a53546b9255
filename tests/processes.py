"""Processes for tests of what is done at once. They are forked from one that has imported what they need.

A new process imports for more than a second, and these tests have dozens.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

_IMPORTED = (
    "pyarrow.parquet",
    "pytest",
    "pyspark_delta.catalogs",
    "pyspark_delta.table",
    "pyspark_delta.transaction.transaction",
)


def processes() -> ForkServerContext:
    """What starts them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context
