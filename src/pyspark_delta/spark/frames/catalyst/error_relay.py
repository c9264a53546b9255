"""Carries errors that occur while the JVM plans or runs a query to the caller as the original `DeltaError`.

The JVM calls the file index during planning. py4j turns what it raises into text inside a Java exception, which PySpark
raises as a `Py4JJavaError`. So the error is kept here under a mark in that text, and PySpark's conversion of Java
exceptions returns the original.

If Spark itself fails to read a data file of a table that it got from here, the conversion returns a `DataFileError`.
"""

from __future__ import annotations

import itertools
import logging
import re
from threading import Lock
from typing import Any

from pyspark.errors.exceptions import captured

from pyspark_delta.errors import DataFileError, DeltaError
from pyspark_delta.lru import LruCache

_MARK = re.compile(r"\(pyspark-delta failure (\d+)\)")
_KEPT = 100
_LONGEST_CHAIN = 10
_UNREADABLE = "[FAILED_READ_FILE"
_MISSING = "[FAILED_READ_FILE.FILE_NOT_EXIST]"

_lock = Lock()
_numbers = itertools.count(1)
_failures: LruCache[int, DeltaError] = LruCache(_KEPT)
_read: LruCache[str, frozenset[int]] = LruCache(_KEPT)  # versions by the location of the table


class RelayedError(Exception):
    """The exception for the JVM: the text of the error, and the mark under which the error is kept."""


def relay(error: DeltaError) -> RelayedError:
    """Keep the error and return the exception to raise towards the JVM. The newest hundred errors are kept."""
    _install()
    number = next(_numbers)
    _failures.put(number, error)
    return RelayedError(f"{error} (pyspark-delta failure {number})")


def expect(location: str, version: int) -> None:
    """Note that Spark will read files of a version; `location` is as Spark shows it. A hundred tables are kept."""
    _install()
    _read.update(location, lambda versions: (versions or frozenset()) | {version})


class _Quiet(logging.Filter):
    """A logger filter: py4j logs every exception of a callback with its traceback, but ours reach the caller."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], RelayedError))


def _install() -> None:
    with _lock:
        original = captured.convert_exception
        if getattr(original, "restores_delta_errors", False):
            return

        def convert_exception(java_exception: Any) -> Any:
            return _find(java_exception) or original(java_exception)

        convert_exception.restores_delta_errors = True  # type: ignore[attr-defined]
        setattr(captured, "convert_exception", convert_exception)  # noqa: B010 - its declared type is narrower
        for name in ("py4j.clientserver", "py4j.java_gateway"):
            logging.getLogger(name).addFilter(_Quiet())


def _find(java_exception: Any) -> DeltaError | None:
    for _ in range(_LONGEST_CHAIN):
        if java_exception is None:
            return None
        mark = _MARK.search(str(java_exception.getMessage()))
        if mark is not None:
            return _failures.get(int(mark[1]))
        if str(java_exception.getMessage()).startswith(_UNREADABLE):
            return _unreadable_file(java_exception)
        java_exception = java_exception.getCause()
    return None


def _unreadable_file(java_exception: Any) -> DeltaError | None:
    """Return the error for a data file of one of our tables; None for any other file."""
    path = str(java_exception.getMessageParameters().get("path"))
    versions = next((known for location, known in _read.items() if path.startswith(f"{location}/")), None)
    if versions is None:
        return None
    where = f"Data file '{path}' of version {min(versions)}" if len(versions) == 1 else f"Data file '{path}'"
    if str(java_exception.getMessage()).startswith(_MISSING):
        return DataFileError(
            f"{where} does not exist, though the log says it is part of the table. It may have been vacuumed, or "
            "removed by hand: read a newer version, or restore the file.",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        )
    cause = java_exception.getCause() or java_exception
    return DataFileError(
        f"{where} cannot be read as Parquet: {cause.getMessage()}. If it is damaged or incomplete, restore it.",
        path=path,
    )
