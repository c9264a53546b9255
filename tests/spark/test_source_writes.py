"""Writing through the plain Python Data Source, without `enable`: append and overwrite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    InvalidOptionError,
    SchemaMismatchError,
    translate,
)
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table


def values(location: str, *columns: str) -> list[Any]:
    found = Table.open(location).scan().to_arrow().select(columns).to_pylist()
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.since("4.0")
def test_append_and_overwrite_without_enable(plain_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    base = plain_spark.sql("select id, id % 2 p, named_struct('a', id, 'b', array('x', null)) s from range(0, 6, 1, 2)")
    base.write.format("delta").mode("append").option("partitionBy", "p").save(path)
    assert Table.open(path).detail()["partitionColumns"] == ["p"]
    more = plain_spark.sql("select named_struct('B', array('y'), 'A', 7) S, 10 ID, 1Y p, 'n' n")
    with pytest.raises(SchemaMismatchError, match="mergeSchema"), translate():
        more.write.format("delta").mode("append").save(path)
    more.write.format("delta").mode("append").option("mergeSchema", "true").option("userMetadata", "u").save(path)
    assert values(path, "id", "n")[-1] == (10, "n")
    assert Table.open(path).scan(where="id = 10").to_arrow()["s"].to_pylist() == [{"a": 7, "b": ["y"]}]
    assert Table.open(path).history()[0]["userMetadata"] == "u"

    replace = plain_spark.sql("select 20L id, 0L p").write.format("delta").mode("overwrite")
    with pytest.raises(ConstraintViolationError, match="replaceWhere"), translate():
        replace.option("replaceWhere", "id < 3").save(path)
    replace.option("replaceWhere", "id < 4 or id = 20").save(path)
    assert values(path, "id") == [(4,), (5,), (10,), (20,)]
    metrics = Table.open(path).history()[0]["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numOutputRows"]) == ("4", "2")
    by_text = str(tmp_path / "by_text")
    empty = plain_spark.sql("select '' p, '' v").write.format("delta").option("partitionBy", "p")
    empty.mode("append").save(by_text)
    with pytest.raises(ConstraintViolationError, match="replaceWhere"), translate():  # an empty text is null (C416)
        empty.mode("overwrite").option("replaceWhere", "p = ''").save(by_text)
    empty.option("replaceWhere", "p is null").save(by_text)
    assert values(by_text, "p", "v") == [(None, "")]
    once = plain_spark.sql("select 30L id, 1L p").write.format("delta").mode("overwrite")
    for _ in range(2):
        once.option("partitionOverwriteMode", "dynamic").option("txnAppId", "a").option("txnVersion", 1).save(path)
    assert values(path, "id") == [(4,), (20,), (30,)]
    version = Table.open(path).version
    with pytest.raises(InvalidOperationError, match="enable"), translate():
        once.option("replaceUsing", "id").option("partitionOverwriteMode", "static").save(path)
    with pytest.raises(InvalidOptionError), translate():
        base.write.format("delta").mode("append").option("maxRecordsPerFile", "many").save(path)
    with pytest.raises(InvalidOperationError, match="would be lost"), translate():
        base.write.format("delta").mode("append").saveAsTable("some_table")
    assert Table.open(path).version == version
    assert json.loads(Table.open(path).history()[0]["operationParameters"]["partitionBy"]) == []


@pytest.mark.since("4.0")
def test_a_write_without_enable_is_compacted_if_the_table_says_so(plain_spark: SparkSession, tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT", properties={"delta.autoOptimize.autoCompact": "true"})
    table.append({"id": list(range(48))}, max_records_per_file=1)
    for number in range(2):
        once = plain_spark.range(100 + number, 101 + number).write.format("delta").mode("append")
        for _ in range(2):
            once.option("txnAppId", "a").option("txnVersion", number).save(str(tmp_path / "t"))
    commits = [commit["operation"] for commit in table.refresh().history()]
    assert commits == ["OPTIMIZE", "WRITE", "WRITE", "WRITE", "CREATE TABLE"]
    assert table.history(1)[0]["engineInfo"].endswith(" PySpark")
    assert (table.snapshot.num_files(), table.count()) == (1, 50)


@pytest.mark.since("4.0")  # for the Python Data Source
def test_times_without_a_zone_are_those_of_the_session_or_of_an_option(
    plain_spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    session = plain_spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    rows = "select timestamp'2024-01-01 00:30:00+00:00' + make_interval(0, 0, 0, 0, id) t, int(id) id from range(3)"
    session.sql(rows).coalesce(1).write.format("delta").mode("append").save(path)
    second = f"{rows} where id = 1"  # at 01:30 in UTC
    condition = "t >= '2024-01-01 {0}:00:00' and t < '2024-01-01 {0}:59:59'"

    def replace(condition: str, session: SparkSession = session, select: str = second, **options: str) -> None:
        writer = session.sql(select).write.format("delta").mode("overwrite").option("replaceWhere", condition)
        writer.options(**options).save(path)

    replace(condition.format("10"))
    with pytest.raises(ConstraintViolationError, match="replaceWhere"), translate():
        replace(condition.format("01"))
    replace(condition.format("01"), timeZone="UTC")
    replace(condition.format("20"), timeZone="America/New_York", select=f"{rows} where id = 9")
    assert Table.open(path).version == 2  # the last one replaced nothing
    replace("t between '2024-01-01 01:00:00Z' and '2024-01-01 02:00:00Z'")
    assert values(path, "id") == [(0,), (1,), (2,)]
    deleted = [commit["operationMetrics"]["numDeletedRows"] for commit in Table.open(path).history(3)]
    assert deleted == ["1", "1", "1"]

    unset = plain_spark.newSession()
    unset.conf.unset("spark.sql.session.timeZone")
    for asked in (condition.format("01"), "hour(t) = 1"):
        with pytest.raises(InvalidOptionError, match="timeZone"), translate():
            replace(asked, unset)
    with pytest.raises(InvalidOptionError, match="not a time zone"), translate():
        replace(condition.format("01"), timeZone="Middle/Earth")
    assert Table.open(path).version == 3


@pytest.mark.since("4.0")  # for the Python Data Source
def test_partitions_by_times_that_the_log_gives_without_a_zone(plain_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    session = plain_spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    rows = session.sql("select timestamp'2024-01-01 00:30:00+00:00' t, 1 id")
    rows.write.format("delta").mode("append").option("partitionBy", "t").save(str(path))
    commit = path / "_delta_log" / f"{0:020d}.json"
    text = commit.read_text()
    assert '"t":"2024-01-01T00:30:00.000000Z"' in text
    commit.write_text(text.replace('"t":"2024-01-01T00:30:00.000000Z"', '"t":"2024-01-01 09:30:00"'))
    dynamic = rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic")
    dynamic.save(str(path))
    assert Table.open(path).history(1)[0]["operationMetrics"]["numRemovedFiles"] == "1"
    assert values(str(path), "id") == [(1,)]


@pytest.mark.since("4.0")  # for the Python Data Source
def test_rows_that_a_condition_keeps_keep_their_ids_and_changes_are_written(
    plain_spark: SparkSession, tmp_path: Path
) -> None:
    properties = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
    table = Table.create(tmp_path, "id BIGINT, n INT", properties=properties)
    table.append({"id": list(range(6)), "n": [0] * 6})
    before = row_ids(table)
    replace = plain_spark.sql("select 3L id, 1 n").write.format("delta").mode("overwrite")
    replace.option("replaceWhere", "id > 2").save(str(tmp_path))
    after = row_ids(table.refresh())
    assert {i: before[i] for i in range(3)} == {i: after[i] for i in range(3)}
    found = table.changes(starting_version=table.version).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in found) == [
        ("delete", 3),
        ("delete", 4),
        ("delete", 5),
        ("insert", 3),
    ]


def row_ids(table: Table) -> dict[int, int]:
    plan = plan_scan(table.snapshot, ["id"], row_ids=True)
    return {row["id"]: row["_row_id"] for row in read_plan(plan).read_all().to_pylist()}
