"""Counting the rows of a whole table on Spark: from the log, so that data files need not even be there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.made_tables import DataFile, make_table

from pyspark_delta import DeltaTable


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Ten rows in two files, three of them deleted; a second version without the first file."""
    files = [
        DataFile(pa.table({"id": list(range(6))}), deleted=[1, 2, 5]),
        DataFile(pa.table({"id": list(range(6, 10))})),
    ]
    location = make_table(tmp_path / "t", files)
    add = next(json.loads(line)["add"] for line in first_commit(location).read_text().splitlines() if '"add"' in line)
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "deletionVector": add["deletionVector"]}
    (first_commit(location).parent / f"{1:020}.json").write_text(json.dumps({"remove": remove}))
    return location


def first_commit(location: str) -> Path:
    return Path(location) / "_delta_log" / f"{0:020}.json"


def test_classic_without_data_files(
    delta_spark: SparkSession, path: str, count_jobs: Callable[[Callable[[], object]], int]
) -> None:
    table = DeltaTable.forPath(delta_spark, path)
    read = delta_spark.read.format("delta")
    before = read.option("versionAsOf", 0).load(path)
    latest = delta_spark.read.format("delta").load(path)
    assert (before.where("true").count(), latest.select("id").count()) == (7, 4)  # counted by Spark
    cached = delta_spark.read.format("delta").load(path).cache()
    assert count_jobs(lambda: cached.count()) > 0  # fills the cache, as people expect
    cached.unpersist()
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    assert count_jobs(lambda: (before.count(), latest.count(), table.count(), table.alias("t").toDF().count())) == 0
    assert (before.count(), latest.count(), table.count(), table.toDF(version=0).count()) == (7, 4, 4, 7)
    assert delta_spark.table(f"delta.`{path}`").count() == 4
    assert delta_spark.read.format("delta").load(path, columns="id").count() == 4
    for derived in (latest.where("id > 0"), latest.select("id"), latest.limit(2), latest.union(latest)):
        with pytest.raises(Exception, match="parquet"):  # they are other objects, and read
            derived.count()
    with pytest.raises(Exception, match="parquet"):
        table.toDF(where="id > 6").count()


def test_a_frame_stays_at_its_version(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta_spark.range(3).write.format("delta").save(path)
    frame = delta_spark.read.format("delta").load(path)
    delta_spark.range(2).write.format("delta").mode("append").save(path)
    assert (frame.count(), len(frame.collect()), DeltaTable.forPath(delta_spark, path).count()) == (3, 3, 5)


def test_files_without_a_number_are_counted_by_spark(delta_spark: SparkSession, path: str) -> None:
    commit = first_commit(path)
    commit.write_text(commit.read_text().replace("numRecords", "rows"))
    assert delta_spark.read.format("delta").load(path).count() == 4
    assert DeltaTable.forPath(delta_spark, path).toDF(version=0).count() == 7


def test_connect_without_data_files(delta_connect: SparkSession, path: str) -> None:
    frame = delta_connect.read.format("delta").load(path)
    derived = frame.where("id > 6")
    assert (frame.count(), derived.count()) == (4, 3)
    assert frame.cache().count() == 4
    frame.unpersist()
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    assert frame.count() == DeltaTable.forPath(delta_connect, path).count() == 4
    with pytest.raises(Exception, match=r"(?i)parquet|file"):
        derived.count()
