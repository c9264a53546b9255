"""Errors that arise while the JVM plans a query, carried to the caller as the `DeltaError` they are.

The JVM calls the file index in the middle of a query. py4j turns what it raises into text inside a Java exception,
which PySpark hands on as a `Py4JJavaError`. So the error is kept here under a mark in that text, and PySpark's
conversion of Java exceptions answers with the original.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections import OrderedDict
from threading import Lock
from typing import Any

from pyspark.errors.exceptions import captured

from pyspark_delta.errors import DeltaError

_MARK = re.compile(r"\(pyspark-delta failure (\d+)\)")
_KEPT = 100
_LONGEST_CHAIN = 10

_lock = Lock()
_numbers = itertools.count(1)
_failures: OrderedDict[int, DeltaError] = OrderedDict()


class RelayedError(Exception):
    """What the JVM is told: the text of the error, and the mark under which it is kept."""


def relay(error: DeltaError) -> RelayedError:
    """Keep the error and give the exception to raise towards the JVM. The newest hundred are kept."""
    _install()
    with _lock:
        number = next(_numbers)
        _failures[number] = error
        while len(_failures) > _KEPT:
            _failures.popitem(last=False)
    return RelayedError(f"{error} (pyspark-delta failure {number})")


class _Quiet(logging.Filter):
    """py4j logs every exception of a callback with its traceback; ours reach the caller instead."""

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
        java_exception = java_exception.getCause()
    return None
