"""A session whose tables are on HDFS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.plugins.hdfs import SETTINGS


@pytest.fixture(scope="session")
def hdfs_spark(delta_spark: SparkSession, hdfs_root: str) -> Iterator[SparkSession]:
    """The enabled session; its client does not wait for the NameNode."""
    hadoop = delta_spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in SETTINGS.items():
        hadoop.set(name, value)
    yield delta_spark
    for name in SETTINGS:
        hadoop.unset(name)
