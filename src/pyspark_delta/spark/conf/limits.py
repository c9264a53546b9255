"""The session's limits of statements: the cost model, and how often a statement runs again after a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COST_MODEL = "spark.pyspark_delta.costModel"
"""The session setting with limits that differ from the defaults, as a JSON object."""
REEXECUTIONS = "spark.pyspark_delta.reexecution.maxAttempts"
"""The session setting for how often an operation is run again after a conflict; 0 switches it off."""
_DEFAULT_REEXECUTIONS = 3


def cost_model(spark: SparkSession) -> CostModel:
    """Return the limits of a session. Raises InvalidOptionError for a setting that is not a cost model."""
    text = spark.conf.get(COST_MODEL, None)
    return DEFAULT if text is None else CostModel.parse(text)


def reexecutions(spark: SparkSession) -> int:
    """Return how often the session runs an operation again. Raises InvalidOptionError if it is not a number."""
    text = spark.conf.get(REEXECUTIONS, None)
    if text is None:
        return _DEFAULT_REEXECUTIONS
    if not text.strip().isdecimal():
        raise InvalidOptionError(f"The session setting {REEXECUTIONS} is a number of times, or 0; found '{text}'.")
    return int(text)
