"""Spark sessions of the peers, alike but for who reads Delta tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from benchmarks.run import peer_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(reader: str) -> SparkSession:
    """A local session on all cores, up and running; `reader` is `ours`, `delta-spark` or `parquet`."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 1))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    if reader == "delta-spark":
        builder = (
            builder.config("spark.jars", ",".join(map(str, peer_jars())))
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        )
    spark = builder.getOrCreate()
    if reader == "ours":
        import pyspark_delta

        pyspark_delta.enable(spark)
    spark.range(1000).selectExpr("sum(id)").collect()
    return spark
