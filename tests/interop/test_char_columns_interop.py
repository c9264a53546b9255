"""Queries on char(n) columns return the same rows as those of delta-spark, which left short and padded texts."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer

TESTS = "c = 'x' a, c = 'x    ' b, c IN ('x', 'yy') e, c > 'x' f, c = d g, c LIKE 'x' h, length(c) i"


def test_queries_find_the_same_rows(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    table = f"delta.`{tmp_path}/t`"
    delta_spark_server.sql(
        f"CREATE TABLE {table} (id INT, c CHAR(3), d CHAR(5), n INT) USING delta",
        f"INSERT INTO {table} VALUES (1, 'x', 'x', 0), (2, 'yy', 'y', 0), (3, NULL, NULL, 0), (4, 'x', 'z', 0)",
        f"UPDATE {table} SET n = 1 WHERE id = 1",  # the rows of this file are padded now
        f"INSERT INTO {table} VALUES (5, 'x', 'x', 0), (6, 'x  ', 'x', 0)",
    )
    assert our_spark.sql(f"UPDATE {table} SET n = 2 WHERE c = 'x' AND id < 6").collect() == [(3,)]
    our_spark.sql(f"INSERT INTO {table} VALUES (7, 'x', 'yy', 0)")
    everything = f"SELECT *, {TESTS} FROM {table} ORDER BY id"
    ours, theirs = our_spark.sql(everything).collect(), delta_spark_server.query(everything).to_pylist()
    assert [tuple(row) for row in ours] == [tuple(row.values()) for row in theirs]
    found = f"SELECT id FROM {table} WHERE c = 'x' ORDER BY id"
    assert [row.id for row in our_spark.sql(found).collect()] == [1, 4, 5, 6, 7]
    assert delta_spark_server.query(found)["id"].to_pylist() == [1, 4, 5, 6, 7]
