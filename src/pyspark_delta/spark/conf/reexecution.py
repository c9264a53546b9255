"""The session setting for how often a statement runs again after a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REEXECUTIONS = "spark.pyspark_delta.reexecution.maxAttempts"
"""The session setting for how often an operation is run again after a conflict; 0 switches it off."""

_DEFAULT = 3


def reexecutions(spark: SparkSession) -> int:
    """Return how often the session runs an operation again. Raises InvalidOptionError if it is not a number."""
    text = spark.conf.get(REEXECUTIONS, None)
    if text is None:
        return _DEFAULT
    if not text.strip().isdecimal():
        raise InvalidOptionError(f"The session setting {REEXECUTIONS} is a number of times, or 0; found '{text}'.")
    return int(text)
