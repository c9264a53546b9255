"""Prepares errors for Spark, which returns only the text of their traceback to the user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_delta.errors import MissingDependencyError, annotate


@contextmanager
def boundary() -> Iterator[None]:
    """Add the facts of a DeltaError to its text.

    Raises MissingDependencyError, with the path of the running Python, for a module that is not installed.
    """
    with annotate():
        try:
            yield
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"The Python that Spark starts, {sys.executable}, has no module '{error.name}': install pyspark-delta "
                "there with pip, or set PYSPARK_PYTHON to the Python that has it.",
                module=error.name,
            ) from None
