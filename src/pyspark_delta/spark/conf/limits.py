"""The limits that a session sets for statements: the cost model, and how often they run again after a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COST_MODEL = "spark.pyspark_delta.costModel"
"""The session setting with limits that differ from the defaults, as a JSON object."""
REEXECUTIONS = "spark.pyspark_delta.reexecution.maxAttempts"
"""The session setting for how often an operation runs again after a conflict; 0 means never."""
_DEFAULT_REEXECUTIONS = 3


def cost_model(spark: SparkSession) -> CostModel:
    """Return the cost model of a session. Raises InvalidOptionError if its setting is not a valid cost model."""
    text = spark.conf.get(COST_MODEL, None)
    return DEFAULT if text is None else CostModel.parse(text)


def reexecutions(spark: SparkSession) -> int:
    """Return how often a session runs an operation again after a conflict, by default 3 times.

    Raises InvalidOptionError if its setting is not a whole number.
    """
    text = spark.conf.get(REEXECUTIONS, None)
    if text is None:
        return _DEFAULT_REEXECUTIONS
    if not text.strip().isdecimal():
        raise InvalidOptionError(f"The session setting {REEXECUTIONS} is a number of times from 0 on, found '{text}'.")
    return int(text)
