"""Writing through the plain Python Data Source, without `enable`: append and overwrite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    InvalidOptionError,
    SchemaMismatchError,
    translate,
)
from pyspark_delta.table import Table


def values(location: str, *columns: str) -> list[Any]:
    found = Table.open(location).scan().to_arrow().select(columns).to_pylist()
    return sorted(tuple(row.values()) for row in found)


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
