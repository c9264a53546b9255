"""Streams that cannot go on or do not start: errors of commits, schemas and options, as users read them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.spark.stream_runs import rewind, run, started
from tests.spark.test_streaming_source import append, numbers, stream

from pyspark_delta import DeltaTable
from pyspark_delta.errors import DeltaError, InvalidOptionError, SchemaMismatchError, TableNotFoundError
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts

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


def test_another_table_in_the_same_place(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    run(stream(delta_spark, numbers), checkpoint)
    shutil.rmtree(numbers)
    append(delta_spark, numbers, 0, 3)
    _, error = failure(stream(delta_spark, numbers), checkpoint)
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


def test_commits_are_read_once_and_idle_triggers_only_look_for_the_next(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    counts = Counts()
    with intercepted(lambda inner: CountingStore(inner, counts)):
        query = started(stream(delta_spark, numbers), tmp_path / "c")
        try:
            query.processAllAvailable()
            append(delta_spark, numbers, 10, 11)
            counts.reset()
            query.processAllAvailable()
            log = re.compile(r"_delta_log/\d+\.json$")
            reads = [path for kind, path in counts.log if kind == "read" and log.search(path)]
            assert [path[-25:] for path in reads] == [f"{2:020d}.json"]
            query.processAllAvailable()
            counts.reset()
            query.processAllAvailable()
            assert {kind for kind, _ in counts.log} == {"status"}
        finally:
            query.stop()
