"""Keeps PySpark from logging an error that is an expected answer, as when an expression is only tried.

When PySpark creates an exception that has a query context, it logs a line of JSON on standard error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

try:
    from pyspark.logger import PySparkLogger
except ImportError:  # PySpark 3.5, which does not log exceptions
    PySparkLogger = None  # type: ignore[assignment,misc]

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_is_probing: ContextVar[bool] = ContextVar("_is_probing", default=False)


@contextmanager
def probing() -> Iterator[None]:
    """Keep PySpark from logging the exceptions that it creates in this thread while the block runs.

    The exceptions propagate as usual.
    """
    _install()
    token = _is_probing.set(True)
    try:
        yield
    finally:
        _is_probing.reset(token)


@lru_cache(maxsize=1)
def _install() -> None:
    for name in _LOGGERS if PySparkLogger is not None else ():
        PySparkLogger.getLogger(name).addFilter(_is_wanted)


def _is_wanted(_: logging.LogRecord) -> bool:
    return not _is_probing.get()
