"""Delta tables in Spark sessions, classic and Connect: the only package that imports pyspark."""

import pyspark.errors  # noqa: F401 - from now on a DeltaError is a PySparkException

from pyspark_delta.errors.base import derive_from_pyspark

derive_from_pyspark()
