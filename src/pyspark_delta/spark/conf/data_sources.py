"""The Python Data Sources of this package, as a session knows them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.conf.sessions import DATA_SOURCE_MODULE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_data_source(spark: SparkSession, module: str = DATA_SOURCE_MODULE) -> None:
    """Register the data source of a module, from where Spark itself looks it up.

    Spark 4.0 takes none that it has found itself, as it does where the Python of its driver has this package.
    """
    try:
        spark.dataSource.register(import_module(module).DefaultSource)
    except AnalysisException as error:
        if condition_of(error) != "DATA_SOURCE_ALREADY_EXISTS":
            raise
