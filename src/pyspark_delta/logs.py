"""The loggers of the package, below `pyspark_delta`. Applications choose what becomes of their records."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

logging.getLogger("pyspark_delta").addHandler(logging.NullHandler())


def logger(module: str) -> logging.Logger:
    """Return the logger of a module, by its name."""
    return logging.getLogger(module)


@contextmanager
def timed(log: logging.Logger, what: str, *arguments: object) -> Iterator[None]:
    """Log at DEBUG how long the block takes, also if it fails. Without that level, nothing is measured."""
    if not log.isEnabledFor(logging.DEBUG):
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        log.debug(f"{what} took %.3f s", *arguments, time.perf_counter() - start)
