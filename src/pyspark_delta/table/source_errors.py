"""Errors of what rows are read from: a reader that was read before, a closed connection, a file that is gone.

Exceptions that a caller's own iterator raises pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from weakref import WeakSet

import pyarrow as pa

from pyspark_delta.errors import DeltaError, InvalidOperationError

T = TypeVar("T")

_read: WeakSet[pa.RecordBatchReader] = WeakSet()


def opened(data: object, open_rows: Callable[[], T]) -> T:
    """Return what a call returns that opens a source, such as the query of a data frame.

    Raises InvalidOperationError for any exception of it.
    """
    try:
        return open_rows()
    except DeltaError:
        raise
    except Exception as error:
        raise _unreadable(data, error) from error


def batches_of(reader: pa.RecordBatchReader, data: object) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader that was opened for `data`.

    Raises InvalidOperationError for an error of Arrow, and for a reader that was read before, which would be empty now.
    """
    if isinstance(data, pa.RecordBatchReader):
        if data in _read:
            raise InvalidOperationError(
                "The RecordBatchReader has no rows any more: a reader can be read only once. Nothing was written. Open "
                "it again."
            )
        _read.add(data)
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(data, error) from error


def _unreadable(data: Any, error: Exception) -> InvalidOperationError:
    text = "; ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else str(error)
    reason = text.partition("\n")[0].partition(". Detail: Python exception")[0].rstrip(" .")
    return InvalidOperationError(
        f"The rows of the {type(data).__name__} cannot be read: {reason or type(error).__name__}. Nothing was written. "
        "Correct the source, or open it again."
    )
