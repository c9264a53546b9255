"""The table that the tests of versions read and change."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def path(delta_spark: SparkSession, tmp_path: Path) -> str:
    """A table with the rows 0 to 9, partitioned by `k`, at version 0; its change data feed begins at version 1."""
    path = str(tmp_path / "t")
    rows = delta_spark.range(10).selectExpr("id", "CAST(id % 3 AS INT) AS k", "CAST(id AS STRING) AS s")
    rows.coalesce(1).write.format("delta").partitionBy("k").save(path)
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    return path
