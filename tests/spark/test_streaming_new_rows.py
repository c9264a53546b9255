"""Streams of new rows in Spark: what `Table.stream` returns, by the native source and by the Python Data Source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.stream_runs import rewind, run

from pyspark_delta import Table

pytestmark = pytest.mark.spark  # by the name of a session that a parameter gives

TRACKED = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"}
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A table whose commits tell in each way which of their rows are new: row tracking, vectors, change data files, and
    vectors that lost marks."""
    path = tmp_path / "changed"
    Table.create(str(path), "id BIGINT, value STRING, p STRING", partition_by=["p"], properties=TRACKED)

    def table() -> Table:
        return Table.open(str(path))

    def merge(first: int, value: str) -> None:
        ids = [first, first + 1, first + 100]
        rows = pa.table({"id": ids, "value": [value] * 3, "p": ["a"] * 3})
        merged = table().merge(rows, "target.id = source.id").when_matched_update({"value": "source.value"})
        merged.when_not_matched_insert_all().execute()

    table().append({"id": list(range(20)), "value": ["first"] * 20, "p": ["a", "b"] * 10})
    merge(0, "tracked")
    table().alter().set_properties(VECTORS)
    merge(3, "by vectors")
    table().delete("id IN (10, 11)")
    table().restore(version=table().version - 1)
    table().alter().set_properties(FEED)
    merge(6, "recorded")
    return path


@pytest.mark.parametrize("kind", ["inserts", "upserts"])
@pytest.mark.parametrize("is_enabled", [True, pytest.param(False, marks=pytest.mark.since("4.2"))])
def test_new_rows_are_those_of_a_stream_without_spark(
    request: pytest.FixtureRequest, changed: Path, tmp_path: Path, kind: str, is_enabled: bool
) -> None:
    session: SparkSession = request.getfixturevalue("delta_spark" if is_enabled else "plain_spark")
    stream = Table.open(str(changed)).stream(changes=kind, starting_version=1, where="id <> 2")
    expected = sorted(tuple(row.values()) for batch in stream for row in batch.to_arrow().to_pylist())
    inserted = [row[0] for row in expected if row[0] >= 100]
    assert inserted == [100, 103, 106]
    assert [row[0] for row in expected].count(10) == 2  # it came back

    options: dict[str, Any] = {"changes": kind, "startingVersion": 1, "where": "id <> 2", "maxFilesPerTrigger": 2}
    frame = session.readStream.format("delta").options(**options).load(str(changed))
    first = run(frame, tmp_path / "c")
    assert first.rows == expected
    assert len(first.batches) > 2

    rewind(tmp_path / "c", 1)  # a batch is repeated after a restart
    again = run(frame, tmp_path / "c")
    assert sorted(again.rows + first.batches[0]) == expected


@pytest.mark.parametrize("is_enabled", [True, pytest.param(False, marks=pytest.mark.since("4.2"))])
def test_a_query_that_log_clean_up_has_overtaken_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, is_enabled: bool
) -> None:
    session: SparkSession = request.getfixturevalue("delta_spark" if is_enabled else "plain_spark")
    path = str(tmp_path / "t")
    Table.create(path, "id BIGINT, value STRING", properties=TRACKED)
    Table.open(path).append({"id": [0, 1, 2, 3], "value": ["a"] * 4})
    options = {"changes": "upserts", "onDataLoss": "snapshotDiff"}
    frame = session.readStream.format("delta").options(**options).load(path)
    assert run(frame, tmp_path / "c").ids == [0, 1, 2, 3]

    Table.open(path).update({"value": "'b'"}, where="id = 2")
    Table.open(path).append({"id": [4, 5], "value": ["c", "c"]})
    Table.open(path).delete("id = 4")
    Table.open(path).checkpoint()
    for version in range(4):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    assert run(frame, tmp_path / "c").rows == [(2, "b"), (5, "c")]
    rewind(tmp_path / "c", 1)
    assert run(frame, tmp_path / "c").rows == [(2, "b"), (5, "c")]
