"""Streams that cannot go on or do not start: errors of commits, schemas and options, as users read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.spark.stream_runs import rewind, run, started
from tests.spark.test_streaming_source import append, numbers, stream

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import DeltaError, InvalidOptionError, SchemaMismatchError, TableNotFoundError
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.streaming.rows import RowContents

__all__ = ["numbers"]


def failure(frame: Any, checkpoint: Path) -> tuple[str, DeltaError]:
    """The text of the exception with which a query ends, and the error behind it."""
    query = started(frame, checkpoint, availableNow=True)
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(120)
    found = raised.value.__cause__
    assert isinstance(found, DeltaError)
    assert "Traceback" not in str(raised.value)
    assert found.message.splitlines()[0] in str(raised.value)
    return str(raised.value), found


@pytest.mark.smoke
def test_changed_rows_end_the_query(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    run(stream(delta_spark, numbers), checkpoint)
    DeltaTable.forPath(delta_spark, str(numbers)).update("id = 3", {"id": "30"})
    text, error = failure(stream(delta_spark, numbers), checkpoint)
    assert error.error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    assert "[STREAM_FAILED]" in text
    append(delta_spark, numbers, 40, 41)
    assert run(stream(delta_spark, numbers, skipChangeCommits=True), checkpoint).ids == [40]


def test_deleted_rows_end_the_query(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    run(stream(delta_spark, numbers), checkpoint)
    DeltaTable.forPath(delta_spark, str(numbers)).delete()
    assert failure(stream(delta_spark, numbers), checkpoint)[1].error_class == "DELTA_SOURCE_IGNORE_DELETE"
    assert run(stream(delta_spark, numbers, ignoreDeletes=True), checkpoint).ids == []


def test_a_new_column(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint, frame = tmp_path / "c", stream(delta_spark, numbers)
    batches: dict[int, list[tuple[Any, ...]]] = {}
    query = started(frame, checkpoint, batches)
    try:
        query.processAllAvailable()
        more = delta_spark.sql("SELECT 10L AS id, 'new' AS s").write.format("delta").mode("append")
        more.option("mergeSchema", "true").save(str(numbers))
        with pytest.raises(StreamingQueryException, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
            query.processAllAvailable()
    finally:
        query.stop()
    _, error = failure(frame, checkpoint)
    assert error.error_class == "DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART"
    assert "spark.readStream" in str(error)
    assert run(stream(delta_spark, numbers), checkpoint).rows == [(10, "new")]


@pytest.mark.parametrize("is_replaced", [False, True], ids=["made again", "replaced"])
def test_another_table_in_the_same_place(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path, is_replaced: bool
) -> None:
    checkpoint = tmp_path / "c"
    run(stream(delta_spark, numbers), checkpoint)
    if is_replaced:
        delta_spark.sql(f"CREATE OR REPLACE TABLE delta.`{numbers}` USING delta AS SELECT id FROM range(3)")
    else:
        shutil.rmtree(numbers)
        append(delta_spark, numbers, 0, 3)
    _, error = failure(stream(delta_spark, numbers, skipChangeCommits=True), checkpoint)
    assert error.error_class == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_repeated_batch_whose_commits_are_gone(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    run(stream(delta_spark, numbers, startingVersion=0, maxFilesPerTrigger=1), checkpoint)
    rewind(checkpoint, 4)
    (numbers / "_delta_log" / f"{1:020d}.json").rename(tmp_path / "kept.json")
    text, error = failure(stream(delta_spark, numbers, startingVersion=0), checkpoint)
    assert "Traceback" not in text
    assert isinstance(error, DeltaError)
    (tmp_path / "kept.json").rename(numbers / "_delta_log" / f"{1:020d}.json")
    assert len(run(stream(delta_spark, numbers, startingVersion=0), checkpoint).ids) == 2


MISTAKES: list[tuple[dict[str, object], str]] = [
    ({"maxFilesPerTriger": 1}, r"did you mean 'maxFilesPerTrigger'"),
    ({"nonsense": 1}, r"no option 'nonsense'; the options are .*maxBytesPerTrigger"),
    ({"versionAsOf": 0}, r"versionAsOf.*startingVersion"),
    ({"timestampAsOf": "2024-01-01"}, r"timestampAsOf.*startingVersion"),
    ({"columns": "id"}, r"select\('id'\)"),
    ({"checkpointLocation": "/c"}, r"writeStream"),
    ({"endingVersion": 3}, r"no end"),
    ({"withEventTimeOrder": "true"}, r"withEventTimeOrder"),
    ({"maxFilesPerTrigger": 0}, r"positive"),
    ({"startingVersion": 1, "startingTimestamp": "2024-01-01"}, r"either"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_in_options(
    delta_spark: SparkSession, numbers: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        stream(delta_spark, numbers, **options)


def test_other_mistakes(delta_spark: SparkSession, numbers: Path) -> None:
    read = delta_spark.readStream.format("delta")
    wrong: list[tuple[Callable[[], object], type[DeltaError], str]] = [
        (lambda: read.load(f"{numbers}@v0"), InvalidOptionError, "startingVersion"),
        (lambda: delta_spark.readStream.table(f"delta.`{numbers}@v0`"), InvalidOptionError, "startingVersion"),
        (lambda: read.load(), InvalidOptionError, r"readStream\.format"),
        (lambda: read.load(f"{numbers}-none"), TableNotFoundError, "none"),
        (lambda: read.schema("id STRING").load(str(numbers)), SchemaMismatchError, "bigint, not string"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()
    same = delta_spark.readStream.format("delta").schema("id LONG").load(str(numbers))
    assert same.columns == ["id"]


def test_what_a_restart_does_not_need_may_be_gone(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    run(stream(delta_spark, numbers, startingVersion=0, maxFilesPerTrigger=1), checkpoint)
    append(delta_spark, numbers, 20, 21)
    DeltaTable.forPath(delta_spark, str(numbers)).checkpoint()
    for version in (0, 1):
        (numbers / "_delta_log" / f"{version:020d}.json").unlink()
    # Spark asks for the last batch again, though it is complete.
    assert run(stream(delta_spark, numbers, startingVersion=0), checkpoint).ids == [20]


@pytest.mark.parametrize(
    ("vectors", "error"), [("true", "DELTA_DELETION_VECTOR_INVALID"), ("false", "DELTA_FILE_NOT_FOUND_DETAILED")]
)
def test_files_of_a_complete_batch_of_changes_may_be_vacuumed(
    delta_spark: SparkSession, tmp_path: Path, vectors: str, error: str
) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    table = Table.create(path, "id BIGINT", properties=properties)
    table.append({"id": [0, 1, 2, 3]})
    table.delete("id = 1")
    table.delete("id = 2")
    run(stream(delta_spark, path, readChangeFeed=True, startingVersion=3), checkpoint)
    table.purge()
    table.vacuum(0, enforce_retention_duration=False)
    table.append({"id": [4]})
    feed = stream(delta_spark, path, readChangeFeed=True, startingVersion=3)
    assert run(feed, checkpoint).ids == [4]

    # A batch that is planned and not complete needs them.
    rewind(checkpoint, 0)
    with pytest.raises(StreamingQueryException, match=error):
        run(feed, checkpoint)


def test_work_of_a_query(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits are read once, a batch has the jobs of the query, and an idle trigger only looks for the next commit."""
    read: list[int] = []
    original = RowContents.load

    def recording(self: RowContents, store: Any, files: Any) -> Any:
        read.extend(file.version for file in files)
        return original(self, store, files)

    monkeypatch.setattr(RowContents, "load", recording)
    counts = Counts()
    batches: dict[int, list[tuple[Any, ...]]] = {}
    with intercepted(lambda inner: CountingStore(inner, counts)):
        query = started(stream(delta_spark, numbers, startingVersion=0, maxFilesPerTrigger=2), tmp_path / "c", batches)
        try:
            query.processAllAvailable()
            append(delta_spark, numbers, 10, 11)
            query.processAllAvailable()
            assert read == [0, 1, 2]
            tracker = delta_spark.sparkContext.statusTracker()
            assert (len(batches), len(tracker.getJobIdsForGroup(str(query.runId)))) == (4, 4)
            counts.reset()
            query.processAllAvailable()
            assert {kind for kind, _ in counts.log} == {"status"}
        finally:
            query.stop()
