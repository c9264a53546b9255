"""The smoke tests: what must work on every supported PySpark; CI runs them on the oldest too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.golden.catalogue import assert_content, golden_tables

pytestmark = pytest.mark.smoke

# One table per way of reading: plain, partitioned, deletion vectors, column mapping, checkpoint with sidecars.
TABLES = [
    "delta-golden/basic-with-vacuum-protocol-check-feature",
    "dat/multi_partitioned",
    "dat/deletion_vectors",
    "delta-kernel/column-mapping-id",
    "delta-golden/v2-checkpoint-parquet",
]


def expected(table_id: str) -> dict[str, object]:
    """The expectation of a golden table."""
    return next(t.expected for t in golden_tables() if t.id == table_id)


@pytest.mark.parametrize("table_id", TABLES)
def test_enabled_session_reads(delta_spark: SparkSession, golden_table: Callable[[str], Path], table_id: str) -> None:
    rows = delta_spark.read.format("delta").load(str(golden_table(table_id))).toArrow()
    assert_content(rows, expected(table_id))


@pytest.mark.since("4.0")
@pytest.mark.parametrize("table_id", TABLES)
def test_plain_session_reads(plain_spark: SparkSession, golden_table: Callable[[str], Path], table_id: str) -> None:
    rows = plain_spark.read.format("delta").load(str(golden_table(table_id))).toArrow()
    assert_content(rows, expected(table_id))


def test_enabled_session_creates_and_appends(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    delta_spark.range(10).write.format("delta").save(path)
    delta_spark.range(10, 15).write.format("delta").mode("append").save(path)
    read = delta_spark.read.format("delta")
    assert sorted(row.id for row in read.load(path).collect()) == list(range(15))
    assert delta_spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 10
