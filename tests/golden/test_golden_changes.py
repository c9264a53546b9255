"""The change data feed of every golden table that has one: through Table.changes and through the doors of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tests.golden.catalogue import GoldenTable, assert_content, parametrize

from pyspark_delta.table import Table


def has_changes(table: GoldenTable) -> bool:
    """Whether its changes are known; those that no second reader agreed on are left out."""
    return "digest" in table.expected.get("cdf", {}) and not table.expected["cdf"]["weak"]


def rows_of(frame: DataFrame) -> pa.Table:
    """The rows without the time of the commit, which is that of a copied file."""
    return frame.drop("_commit_timestamp").toArrow()


def feed_of(spark: SparkSession, table: GoldenTable) -> DataFrame:
    """The changes from the first version that has the feed to the last one that is known."""
    expected = table.expected["cdf"]
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", expected["start"])
    return reader.option("endingVersion", expected["end"]).load(str(table.path))


@parametrize("table", only=has_changes)
def test_changes_without_spark(table: GoldenTable) -> None:
    expected = table.expected["cdf"]
    found = Table.open(table.path).changes(expected["start"], ending_version=expected["end"]).to_arrow()
    assert found.schema.names[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    assert found.schema.types[-3:] == [pa.string(), pa.int64(), pa.timestamp("us", "UTC")]
    assert found["_commit_timestamp"].null_count == 0
    assert_content(found.drop_columns(["_commit_timestamp"]), expected)


@parametrize("table", only=has_changes)
def test_changes_through_an_enabled_session(delta_spark: SparkSession, table: GoldenTable) -> None:
    assert_content(rows_of(feed_of(delta_spark, table)), table.expected["cdf"])


@parametrize("table", only=has_changes)
def test_changes_through_the_python_data_source(plain_spark: SparkSession, table: GoldenTable) -> None:
    assert_content(rows_of(feed_of(plain_spark, table)), table.expected["cdf"])


@parametrize("table", only=has_changes)
def test_changes_through_spark_connect(delta_connect: SparkSession, table: GoldenTable) -> None:
    assert_content(rows_of(feed_of(delta_connect, table)), table.expected["cdf"])
