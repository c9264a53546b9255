"""Streams in output mode `update` with a key: each batch updates rows and inserts others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.streams import Source, run, transactions, writer

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.table import Table


def counts(path: str) -> dict[object, int]:
    return {row["key"]: row["count"] for row in Table.open(path).scan().to_arrow().to_pylist()}


def test_batches_are_upserted_once(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, path, checkpoint = Source(delta_spark, tmp_path), str(tmp_path / "t"), tmp_path / "c"
    totals = source.stream("nullif(id % 3, 2) AS key").groupBy("key").count()
    query = run(writer(totals, checkpoint, keys="key").outputMode("update").start(path))
    assert counts(path) == {0: 7, 1: 7, None: 6}
    assert transactions(path) == {query.id: 1}
    assert [commit["operation"] for commit in Table.open(path).history()] == ["MERGE", "MERGE", "CREATE TABLE"]

    for name in ("1", ".1.crc"):  # as if the driver had stopped before Spark's commit
        (checkpoint / "commits" / name).unlink()
    source.add()
    run(writer(totals, checkpoint, keys="key").outputMode("update").start(path))
    assert counts(path) == {0: 10, 1: 10, None: 10}
    assert Table.open(path).version == 3


@pytest.mark.parametrize(
    ("mode", "options", "error", "message"),
    [
        ("update", {}, InvalidOperationError, "without a key"),
        ("update", {"keys": "kay"}, InvalidOperationError, "kay"),
        ("append", {"keys": "id"}, InvalidOptionError, "outputMode"),
    ],
)
def test_keys_are_checked_before_the_query_starts(
    delta_spark: SparkSession,
    tmp_path: Path,
    mode: str,
    options: dict[str, str],
    error: type[Exception],
    message: str,
) -> None:
    source = Source(delta_spark, tmp_path, files=1)
    with pytest.raises(error, match=message):
        writer(source.stream(), tmp_path / "c", **options).outputMode(mode).start(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
