"""Streams through the Python Data Source: without `enable`, and on Spark Connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.made_tables import DataFile, make_table
from tests.spark.stream_runs import offsets, position, rewind, run, schema_log

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import DeltaWarning
from pyspark_delta.spark.streaming import reading


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A table of four files; rows of two of them are deleted."""
    files = [
        DataFile(pa.table({"id": pa.array(range(start, start + 3), pa.int64())}), deleted=deleted)
        for start, deleted in ((0, (1,)), (3, ()), (6, ()), (9, (0, 2)))
    ]
    return Path(make_table(tmp_path / "numbers", files))


IDS = [0, 2, 3, 4, 5, 6, 7, 8, 10]


def stream(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(str(path))  # type: ignore[arg-type]


def append(spark: SparkSession, path: Path, first: int, end: int) -> None:
    spark.range(first, end, 1, 1).write.format("delta").mode("append").save(str(path))


@pytest.mark.since("4.2")
@pytest.mark.smoke
def test_a_checkpoint_changes_hands(
    plain_spark: SparkSession, delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    checkpoint, found = tmp_path / "c", []
    for turn, session in enumerate((plain_spark, delta_spark, plain_spark, delta_spark)):
        frame = stream(session, numbers, maxFilesPerTrigger=1)
        if turn == 1:
            rewind(checkpoint, 2)  # a batch within the initial snapshot is repeated by the other reader
            found = [row for row in found if row < 6]
        found += run(frame, checkpoint).ids
        append(delta_spark, numbers, 20 + turn, 21 + turn)
    assert sorted(found) == [*IDS, 20, 21, 22]
    assert run(stream(plain_spark, numbers), checkpoint).ids == [23]
    assert run(stream(delta_spark, numbers), checkpoint).batches == {}  # the texts of offsets differ in blanks
    lines = [position(line) for [line] in offsets(checkpoint)]
    assert lines[:4] == [(0, 0, True), (0, 1, True), (0, 2, True), (1, -1, False)]
    assert [line[0] for line in lines[4:]] == [2, 3, 4, 5]


@pytest.mark.since("4.2")
def test_limits_and_beginnings(
    plain_spark: SparkSession, delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    sizes = [
        len(batch)
        for batch in run(stream(plain_spark, numbers, maxFilesPerTrigger=3), tmp_path / "c1").batches.values()
    ]
    assert sizes == [8, 1]
    by_size = stream(plain_spark, numbers, maxBytesPerTrigger="1b", maxFilesPerTrigger=100)
    assert len(run(by_size, tmp_path / "c2").batches) == 4
    latest, checkpoint = stream(plain_spark, numbers, startingVersion="latest"), tmp_path / "c3"
    assert run(latest, checkpoint).ids == []
    append(delta_spark, numbers, 20, 22)
    assert run(latest, checkpoint).ids == [20, 21]
    assert run(stream(plain_spark, numbers, startingVersion=1), tmp_path / "c4").ids == [20, 21]
    assert run(stream(plain_spark, numbers, where="id > 6"), tmp_path / "c5").ids == [7, 8, 10, 20, 21]


@pytest.mark.since("4.2")
def test_a_change_feed(plain_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "feed"
    properties = {"delta.enableChangeDataFeed": True, "delta.enableDeletionVectors": True}
    Table.create(str(path), "id BIGINT", properties=properties).append({"id": list(range(4))})
    Table.open(str(path)).delete("id = 2")
    Table.open(str(path)).update({"id": "30"}, where="id = 3")
    feed = stream(plain_spark, path, readChangeFeed=True, startingVersion=0, maxFilesPerTrigger=1)
    columns = ["id", "_change_type", "_commit_version"]
    found = run(feed.select(*columns), tmp_path / "c")
    expected = Table.open(str(path)).changes(0, columns=columns).to_arrow().to_pylist()
    assert found.rows == sorted(tuple(row.values()) for row in expected)
    assert len(found.batches) == 3


@pytest.mark.since("4.2")
def test_schema_tracking(plain_spark: SparkSession, delta_spark: SparkSession, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    Table.create(str(path), "id BIGINT, s STRING", properties={"delta.columnMapping.mode": "name"})
    Table.open(str(path)).append({"id": [1], "s": ["a"]})
    options: dict[str, object] = {"schemaTrackingLocation": str(checkpoint / "schema")}
    with pytest.raises(StreamingQueryException, match="NOT_UNDER_CHECKPOINT"):
        run(stream(plain_spark, path, schemaTrackingLocation=str(tmp_path / "elsewhere")), checkpoint)
    assert run(stream(plain_spark, path, **options), checkpoint).rows == [(1, "a")]
    Table.open(str(path)).alter().rename_column("s", "r")
    Table.open(str(path)).append({"id": [2], "r": ["b"]})

    with pytest.raises(StreamingQueryException, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        run(stream(plain_spark, path, **options), checkpoint)
    with pytest.raises(AnalysisException, match="allowSourceColumnRename"):
        stream(plain_spark, path, **options)
    options["allowSourceColumnRename"] = "always"
    assert run(stream(plain_spark, path, **options), checkpoint).rows == [(2, "b")]
    Table.open(str(path)).append({"id": [3], "r": ["c"]})
    native = stream(delta_spark, path, **options)
    assert (native.columns, run(native, checkpoint).rows) == (["id", "r"], [(3, "c")])
    found = [entry["sourceMetadataPath"] for entry in schema_log(checkpoint / "schema")]
    assert found == [f"file:{checkpoint}/sources/0"] * 2


@pytest.mark.since("4.2")
def test_errors(plain_spark: SparkSession, delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    run(stream(plain_spark, numbers), checkpoint)
    DeltaTable.forPath(delta_spark, str(numbers)).update("id = 3", {"id": "30"})
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        run(stream(plain_spark, numbers), checkpoint)
    mistakes = {"maxFilesPerTriger": "did you mean 'maxFilesPerTrigger'", "versionAsOf": "startingVersion"}
    for option, message in mistakes.items():
        with pytest.raises(StreamingQueryException, match=message):
            run(stream(plain_spark, numbers, **{option: 0}), tmp_path / option)


@pytest.mark.since("4.2")
def test_internals_that_differ_are_replaced_with_a_warning(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "unavailable", lambda _: "a reason")
    with pytest.warns(DeltaWarning, match="a reason"):
        frame = stream(delta_spark, numbers, maxFilesPerTrigger=2)
    found = run(frame, tmp_path / "c")
    assert (found.ids, len(found.batches)) == (IDS, 2)


def test_connect(delta_connect: SparkSession, numbers: Path, tmp_path: Path) -> None:
    def ids(frame: DataFrame, name: str) -> list[Any]:
        target = str(tmp_path / name)
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / f"{name}-c"))
        query = writer.trigger(availableNow=True).start(target)
        assert query.awaitTermination(120)
        return sorted(row.id for row in delta_connect.read.parquet(target).collect())

    assert ids(stream(delta_connect, numbers, maxFilesPerTrigger=2), "rows") == IDS
    tracked = stream(delta_connect, numbers, schemaTrackingLocation=str(tmp_path / "tracked-c" / "schema"))
    assert (ids(tracked, "tracked"), len(schema_log(tmp_path / "tracked-c" / "schema"))) == (IDS, 1)
    assert ids(delta_connect.readStream.table(f"delta.`{numbers}`").where("id > 5"), "some") == [6, 7, 8, 10]
