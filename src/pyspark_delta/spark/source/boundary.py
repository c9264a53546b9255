"""Prepares errors for Spark, which passes on only the text of their traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_delta.errors import MissingDependencyError, annotate


@contextmanager
def boundary() -> Iterator[None]:
    """Let a DeltaError of the block carry its facts in its text; name the Python that lacks a missing package."""
    with annotate():
        try:
            yield
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"The Python that Spark starts, {sys.executable}, has no module '{error.name}': install pyspark-delta "
                "there with pip, or set PYSPARK_PYTHON to the Python that has it.",
                module=error.name,
            ) from None
