"""The cost model of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.engines.cost import DEFAULT, CostModel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COST_MODEL = "spark.pyspark_delta.costModel"
"""The session setting with limits that differ from the defaults, as a JSON object."""


def cost_model(spark: SparkSession) -> CostModel:
    """Return the limits of a session. Raises InvalidOptionError for a setting that is not a cost model."""
    text = spark.conf.get(COST_MODEL, None)
    return DEFAULT if text is None else CostModel.parse(text)
