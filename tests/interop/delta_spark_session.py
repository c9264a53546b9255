"""A session with delta-spark, for tables of a few rows; runs in the virtual environment of delta-spark's PySpark."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

# What makes a session for tables of a few rows fast: no parallelism, no generated code, no second compiler.
FAST = {
    "spark.ui.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
    # With one compiler the JVM gives compiled methods little room, and compiles Spark's again and again.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
    "spark.driver.memory": "2g",
    "spark.rdd.compress": "false",
    "spark.shuffle.compress": "false",
}


def session(jars: list[str], settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with delta-spark, and further settings."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    )
    for name, value in {**FAST, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
