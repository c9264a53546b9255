"""Every golden table through Spark: Catalyst scan, DataFrame scan and Python Data Source give equal rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.golden.catalogue import GoldenTable, assert_content, golden_tables, parametrize, unreadable

from pyspark_delta.errors import DeltaError

# One version of each table is travelled to through Spark; Table.scan reads them all.
TRAVELLED = [t for t in golden_tables() if any(not unreadable(v) for v in t.expected.get("versions", {}).values())]


@parametrize("table")
def test_catalyst_scan(delta_spark: SparkSession, table: GoldenTable) -> None:
    rows = delta_spark.read.format("delta").load(str(table.path)).toArrow()
    assert_content(rows, table.expected)


@parametrize("table")
def test_python_data_source(plain_spark: SparkSession, table: GoldenTable) -> None:
    rows = plain_spark.read.format("delta").load(str(table.path)).toArrow()
    assert_content(rows, table.expected)


@pytest.mark.parametrize("table", TRAVELLED, ids=lambda t: t.id)
def test_catalyst_scan_travels(delta_spark: SparkSession, table: GoldenTable) -> None:
    version, expected = next((v, e) for v, e in table.expected["versions"].items() if not unreadable(e))
    rows = delta_spark.read.format("delta").option("versionAsOf", version).load(str(table.path)).toArrow()
    assert_content(rows, expected)


@parametrize("error")
def test_catalyst_scan_refuses_what_must_fail(delta_spark: SparkSession, table: GoldenTable) -> None:
    with pytest.raises(DeltaError):
        delta_spark.read.format("delta").load(str(table.path)).toArrow()
