"""Golden tables on HDFS, read in a session by Spark's own scan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.golden.catalogue import assert_content, golden_tables

TABLES = (
    "dat/all_primitive_types",
    "dat/deletion_vectors",
    "dat/multi_partitioned",
    "dat/nested_types",
    "dat/no_replay",
    "dat/timestamp_ntz",
    "dat/with_schema_change",
    "delta-kernel/basic-dv-with-checkpoint",
    "delta-kernel/column-mapping-id",
    "delta-kernel/kernel-pagination-multi-part-checkpoints",
    "delta-kernel/kernel-pagination-v2-checkpoint-json",
    "delta-kernel/kernel-pagination-v2-checkpoint-parquet",
)


@pytest.mark.parametrize("table_id", TABLES)
def test_golden_table(hdfs_spark: SparkSession, golden: Path, upload: Callable[[Path], str], table_id: str) -> None:
    (table,) = (one for one in golden_tables() if one.id == table_id)
    frame = hdfs_spark.read.format("delta").load(upload(table.path))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "FileScan" in plan or "LocalTableScan" in plan, plan
    assert "MapInArrow" not in plan
    assert_content(frame.toArrow(), table.expected)
