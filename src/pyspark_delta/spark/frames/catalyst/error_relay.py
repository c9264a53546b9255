"""Makes an error that occurs while the JVM plans or runs a query reach the caller as the original exception.

The JVM calls Python during planning, as the file index. If Python raises an error, py4j puts its text into a Java
exception, which PySpark raises as a `Py4JJavaError`. So this module keeps the error, adds its number to the text, and
makes PySpark's conversion of Java exceptions return the original error.

If Spark itself fails to read a data file of a Delta table, the conversion returns a `DataFileError`.
"""

from __future__ import annotations

import itertools
import logging
import re
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions import captured

from pyspark_delta.errors import DataFileError, DeltaError
from pyspark_delta.lru import LruCache

_MARK = re.compile(r"\(pyspark-delta failure (\d+)\)")
_KEPT = 100
_LONGEST_CHAIN = 10
_UNREADABLE = "[FAILED_READ_FILE"
_MISSING = "[FAILED_READ_FILE.FILE_NOT_EXIST]"
# Spark 3.5 names the file in the message only. Of any path, Hadoop says that the file does not exist; the advice is
# Spark's.
_ADVICE = "It is possible the underlying files have been updated"
_MISSING_IN_TEXT = re.compile(rf"File (?P<path>.+?) does not exist\s+{_ADVICE}")
_DAMAGED_IN_TEXT = re.compile(
    r"(?P<path>[\w+.-]+:/.*?) is not a Parquet file(?:\. Expected magic number| \(length is too low)"
    r"|(?:Encountered error while reading file|Parquet column cannot be converted in file) (?P<read>.+?)\. "
    r"(?:Details|Column):"
)

# Spark computes some expressions while it reads a file, such as `variant_get`; the file is good if they fail.
_OF_VALUE = re.compile(r"\[(?!MALFORMED_)[A-Z0-9_.]+\].* SQLSTATE: 22", re.DOTALL)

_lock = Lock()
_numbers = itertools.count(1)
_failures: LruCache[int, Exception] = LruCache(_KEPT)
_read: LruCache[str, frozenset[int]] = LruCache(_KEPT)  # the versions that Spark reads, by the location of the table


class RelayedError(Exception):
    """The exception that is passed to the JVM: the text of an error, and the number under which the error is kept."""


class ExpectedError(Py4JJavaError):  # type: ignore[misc]
    """An exception of Java that the JVM gets back as it is, because Spark expects it and catches it.

    `pass_expected` must have been called for the gateway.
    """

    def __init__(self, java_exception: Any) -> None:
        super().__init__("expected by Spark", java_exception)


def relay(error: Exception) -> RelayedError:
    """Keep an error, and return the exception to raise in a callback of the JVM. The last 100 errors are kept."""
    return RelayedError(f"{error} {keep(error)}")


def keep(error: Exception) -> str:
    """Keep an error, and return the text by which `kept` finds it. The last 100 errors are kept."""
    install()
    number = next(_numbers)
    _failures.put(number, error)
    return f"(pyspark-delta failure {number})"


def kept(text: str) -> Exception | None:
    """Return the error of a text that contains what `keep` returned; None if there is none."""
    mark = _MARK.search(text)
    return None if mark is None else _failures.get(int(mark[1]))


def pass_expected(gateway: Any) -> None:
    """Let a gateway pass an `ExpectedError` of a callback to the JVM as the exception of Java.

    Py4J has a switch for this, which it reads while it handles the exception. For others the switch stays as it was.
    """
    parameters: Any = gateway.callback_server_parameters
    before = parameters.propagate_java_exceptions
    if hasattr(type(parameters), "propagate_java_exceptions"):
        return
    passes = property(lambda _: before or isinstance(sys.exc_info()[1], ExpectedError))
    base = type(parameters)
    parameters.__class__ = type(base.__name__, (base,), {"propagate_java_exceptions": passes})


def expect(location: str, version: int) -> None:
    """Record that Spark will read files of a version; `location` is a URI as Spark shows it. 100 tables are kept."""
    install()
    _read.update(location, lambda versions: (versions or frozenset()) | {version})


class _Quiet(logging.Filter):
    """A filter for py4j's loggers: they log every exception of a callback, but these reach the caller."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], RelayedError | ExpectedError))


def install() -> None:
    """Make PySpark raise the kept errors, and keep py4j from logging them. Doing so again changes nothing."""
    with _lock:
        original = captured.convert_exception
        if getattr(original, "restores_delta_errors", False):
            return

        def convert_exception(java_exception: Any) -> Any:
            # Code that waits for a query catches StreamingQueryException, whatever ended the query.
            is_of_query = java_exception is not None and _is_of_query(java_exception)
            return (None if is_of_query else _find(java_exception, original)) or original(java_exception)

        convert_exception.restores_delta_errors = True  # type: ignore[attr-defined]
        setattr(captured, "convert_exception", convert_exception)  # noqa: B010 - its declared type is narrower
        for name in ("py4j.clientserver", "py4j.java_gateway"):
            logging.getLogger(name).addFilter(_Quiet())


def _is_of_query(java_exception: Any) -> bool:
    return str(java_exception.getClass().getSimpleName()) == "StreamingQueryException"


def _find(java_exception: Any, convert: Callable[[Any], Exception]) -> Exception | None:
    for _ in range(_LONGEST_CHAIN):
        if java_exception is None:
            return None
        text = str(java_exception.getMessage())
        if _MARK.search(text) is not None:
            return kept(text)
        if text.startswith(_UNREADABLE):
            cause = java_exception.getCause() or java_exception
            if _OF_VALUE.match(str(cause.getMessage())) is not None:
                return convert(cause)
            path = str(java_exception.getMessageParameters().get("path"))
            return _unreadable_file(path, None if text.startswith(_MISSING) else str(cause.getMessage()))
        if (missing := _MISSING_IN_TEXT.match(text)) is not None:
            return _unreadable_file(missing["path"], None)
        if (damaged := _DAMAGED_IN_TEXT.match(text)) is not None:
            cause = java_exception.getCause() if text.rstrip().endswith("Details:") else None
            return _unreadable_file(damaged["path"] or damaged["read"], str(cause.getMessage()) if cause else text)
        java_exception = java_exception.getCause()
    return None


def _is_below(path: str, location: str) -> bool:
    """Return True if a path is below a location, a URI; Spark 3.5 does not show all paths as URIs."""
    return path.startswith((f"{location}/", f"{unquote(location)}/"))


def _unreadable_file(path: str, reason: str | None) -> DeltaError | None:
    """Return the error for a data file of a Delta table, which is missing if no reason is given; None for others."""
    versions = next((known for location, known in _read.items() if _is_below(path, location)), None)
    if versions is None:
        return None
    where = f"Data file '{path}' of version {min(versions)}" if len(versions) == 1 else f"Data file '{path}'"
    if reason is None:
        return DataFileError(
            f"{where} does not exist, though the log says it is part of the table. It may have been vacuumed, or "
            "removed by hand: read a newer version, or restore the file.",
            error_class="DELTA_FILE_NOT_FOUND_DETAILED",
            path=path,
        )
    return DataFileError(
        f"{where} cannot be read as Parquet: {reason}. If it is damaged or incomplete, restore it.",
        path=path,
    )
