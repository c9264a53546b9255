"""The session's settings for S3, with Hadoop's names, reach the stores of the driver and of tasks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.costs import TASKS, SetCost

from pyspark_delta import DeltaTable
from pyspark_delta.spark.hadoop import cloud_settings
from pyspark_delta.spark.hadoop.tasks import changed_settings
from pyspark_delta.storage import store_for


@pytest.fixture
def s3_spark(delta_spark: SparkSession, s3_endpoint: str) -> Iterator[SparkSession]:
    """A session with settings for the S3 server."""
    settings = {
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        "fs.s3a.endpoint": s3_endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }
    hadoop: Any = delta_spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in settings.items():
        hadoop.set(name, value)
    cloud_settings._settings.cache_clear()  # they are kept for a second
    yield delta_spark
    for name in settings:
        hadoop.unset(name)
    cloud_settings._settings.cache_clear()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_table_on_s3_without_storage_options(s3_spark: SparkSession, scheme: str, cost: SetCost) -> None:
    cost(s3_spark, **TASKS)
    path = f"{scheme}://contract/{uuid.uuid4().hex}"
    s3_spark.range(0, 10, 1, 2).write.format("delta").save(path)
    DeltaTable.forPath(s3_spark, path).delete("id < 3")
    assert sorted(row["id"] for row in s3_spark.read.format("delta").load(path).collect()) == list(range(3, 10))


def test_storage_options_replace_the_settings(s3_spark: SparkSession) -> None:
    taken, given = store_for("s3://contract/t"), store_for("s3://contract/t", {"aws_region": "eu-west-1"})
    assert taken.__reduce__()[1][2].keys() >= {"fs.s3a.endpoint", "fs.s3a.secret.key"}  # type: ignore[index]
    assert given.__reduce__()[1][2] == {"aws_region": "eu-west-1"}  # type: ignore[index]


def test_settings_for_a_jvm_of_a_task() -> None:
    xml = """<configuration>
    <property><name>dfs.nameservices</name><value>ns</value><source>hdfs-site.xml</source></property>
    <property><name>dfs.replication</name><value>3</value><source>hdfs-default.xml</source></property>
    <property><name>fs.defaultFS</name><value>hdfs://ns</value><source>Set by Spark</source></property>
    <property><name>fs.s3a.secret.key</name><value>secret</value><source>Set by Spark</source></property>
    <property><name>mapreduce.job.name</name><value>x</value><source>job.xml</source></property>
    </configuration>"""
    assert changed_settings(xml) == {"dfs.nameservices": "ns", "fs.defaultFS": "hdfs://ns"}
