"""One streaming query whose runs are those of delta-spark and of this package by turns, on one checkpoint and table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.spark.streams import Source, ids, run, transactions, writer

from pyspark_delta import Table
from pyspark_delta.snapshot.cache import clear_cache

SAME = ("operation", "operationParameters", "isolationLevel", "isBlindAppend")


def commits(path: Path) -> list[dict[str, Any]]:
    """The commit information of all versions, without what differs from commit to commit."""
    found = []
    for file in sorted((path / "_delta_log").glob("*.json")):
        info = next(one["commitInfo"] for one in map(json.loads, file.read_text().splitlines()) if "commitInfo" in one)
        parameters = {**info["operationParameters"], "epochId": "?"}
        counted = sorted(info["operationMetrics"])
        found.append({**{name: info.get(name) for name in SAME}, "operationParameters": parameters, "counted": counted})
    return found


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_a_query_changes_hands(
    delta_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, mode: str
) -> None:
    source, path, checkpoint = Source(delta_spark, tmp_path), tmp_path / "t", tmp_path / "c"

    def theirs() -> None:
        where = {"source": source.path, "path": str(path), "checkpoint": str(checkpoint)}
        delta_spark_server.ask("stream", mode=mode, **where)

    def ours() -> None:
        rows = source.stream() if mode == "append" else source.stream().groupBy("id").count()
        run(writer(rows, checkpoint).outputMode(mode).start(str(path)))

    for turn in (theirs, ours, theirs, ours):
        turn()
        clear_cache(str(path))
        assert ids(path) == source.ids
        assert list(transactions(path).values()) == [source.files - 1]
        source.add()
    assert len(transactions(path)) == 1
    assert Table.open(path).version == source.files - 2
    found = commits(path)
    assert all(one == found[0] for one in found)
