"""Optimized write: exchanges rows between tasks first, so that partitions of the table get few, large files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import AUTO_OPTIMIZE, OPTIMIZE_WRITE
from pyspark_delta.spark.conf.write_defaults import boolean_setting
from pyspark_delta.write.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def wants_optimized_write(spark: SparkSession, options: WriteOptions, configuration: TableConfiguration) -> bool:
    """Return True if a write is optimized: by option, session or table, else if the table is partitioned."""
    properties = configuration.properties
    for said in (
        options.optimize_write,
        boolean_setting(spark, "optimizeWrite.enabled"),
        OPTIMIZE_WRITE.of(properties),
        AUTO_OPTIMIZE.of(properties),
    ):
        if said is not None:
            return said
    return bool(configuration.partition_columns)


def rebalance(frame: DataFrame, configuration: TableConfiguration, names: tuple[str, ...]) -> DataFrame:
    """Return the frame with the rows of each table partition together; `names` are the table's columns by position.

    Spark splits partitions that are too large and merges small ones.
    """
    places = [f"c{names.index(name)}" for name in configuration.partition_columns]
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).hint("rebalance", *places)
