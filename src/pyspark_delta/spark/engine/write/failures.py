"""Errors of tasks on their way to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pyarrow as pa

from pyspark_delta.errors import DeltaError

FAILURE = "failure"
"""The binary column of what tasks make, that holds the pickled DeltaError of one that could not go on."""


def or_failure(make: Callable[[], pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """What a task makes, of a schema with `FAILURE`, or a single row with the DeltaError for which it cannot go on.

    A value crosses better than an exception: Spark would try the task again, and lose the class of the error.
    """
    try:
        result = make()
    except DeltaError as error:
        result = pa.Table.from_pylist([{FAILURE: pickle.dumps(error)}], schema)
    yield from result.to_batches()


def raise_failure(result: pa.Table) -> None:
    """Raise the first error among what tasks made."""
    failures = result.column(FAILURE).drop_null()
    if len(failures):
        error: DeltaError = pickle.loads(failures[0].as_py())
        raise error
