"""Queries on char(n) columns give the same rows here and in delta-spark, whoever wrote or rewrote the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer

CONDITIONS = [
    "c = 'x'",
    "c = 'x    '",
    "c IN ('x', 'yy')",
    "c > 'x'",
    "c = d",
    "c LIKE 'x'",
    "length(c) = 3",
    "c IS NULL",
]


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (c)"])
def test_queries_find_the_same_rows(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, partitioned: str
) -> None:
    table = f"delta.`{tmp_path}/t`"
    delta_spark_server.sql(
        f"CREATE TABLE {table} (id INT, c CHAR(3), d CHAR(5), n INT) USING delta {partitioned}",
        f"INSERT INTO {table} VALUES (1, 'x', 'x', 0), (2, 'yy', 'y', 0), (3, NULL, NULL, 0), (4, 'x', 'z', 0)",
        f"UPDATE {table} SET n = 1 WHERE id = 1",  # the rows of this file are padded now
        f"INSERT INTO {table} VALUES (5, 'x', 'x', 0), (6, 'x  ', 'x', 0)",
    )
    check_queries(our_spark, delta_spark_server, table)
    assert our_spark.sql(f"UPDATE {table} SET n = 2 WHERE c = 'x'").collect() == [(4,)]
    our_spark.sql(f"INSERT INTO {table} VALUES (7, 'x', 'yy', 0)")
    check_queries(our_spark, delta_spark_server, table)


def check_queries(ours: SparkSession, theirs: DeltaSparkServer, table: str) -> None:
    """Compare the answers to the conditions; the first one is met by rows."""
    for condition in CONDITIONS:
        query = f"SELECT id, c, d, n FROM {table} WHERE {condition} ORDER BY id"
        found = [tuple(row) for row in ours.sql(query).collect()]
        assert found == [tuple(row.values()) for row in theirs.query(query).to_pylist()], condition
        assert found or condition != CONDITIONS[0]
