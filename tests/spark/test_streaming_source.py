"""Streams of enabled classic sessions: batches, restarts, limits, filters, kinds of tables and shapes of queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.made_tables import DataFile, make_table
from tests.spark.stream_runs import offsets, position, rewind, run, schema_log, started

from pyspark_delta import DeltaTable, StreamSchemaError, Table
from pyspark_delta.spark.streaming.relation import StreamFileIndex
from pyspark_delta.streaming.checkpoint import read_checkpoint, reset_offset
from pyspark_delta.streaming.offset import Offset


@pytest.fixture
def numbers(delta_spark: SparkSession, tmp_path: Path) -> Path:
    """A table of two commits: 0 to 5 in three files, 6 to 9 in two."""
    path = tmp_path / "numbers"
    append(delta_spark, path, 0, 6, 3)
    append(delta_spark, path, 6, 10, 2)
    return path


def append(spark: SparkSession, path: Path, first: int, end: int, files: int = 1) -> None:
    """Append numbers in some files."""
    frame = spark.range(first, end, 1, files)
    frame.write.format("delta").mode("append").save(str(path))


def stream(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    """The stream of a table."""
    return spark.readStream.format("delta").options(**options).load(str(path))  # type: ignore[arg-type]


@pytest.mark.smoke
def test_a_query_goes_on_from_its_checkpoint(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    checkpoint, frame = tmp_path / "c", stream(delta_spark, numbers, maxFilesPerTrigger=2)
    first = run(frame, checkpoint)
    assert (first.ids, list(first.batches)) == (list(range(10)), [0, 1, 2])
    described = [progress["sources"][0] for progress in first.progress]
    assert {one["description"] for one in described} == {f"DeltaSource[file:{numbers}]"}
    assert [one["metrics"]["numFilesOutstanding"] for one in described] == ["3", "1", "0"]
    assert [one["metrics"]["versionsBehind"] for one in described] == ["1", "1", "0"]
    assert sum(progress["numInputRows"] for progress in first.progress) == 10

    assert run(frame, checkpoint).batches == {}
    append(delta_spark, numbers, 10, 13, 3)
    again = run(stream(delta_spark, numbers, maxFilesPerTrigger=2), checkpoint)
    assert (again.ids, list(again.batches)) == ([10, 11, 12], [3, 4])
    ends = [(1, 1, True), (1, 3, True), (2, -1, False), (2, 1, False), (3, -1, False)]
    assert [position(line) for [line] in offsets(checkpoint)] == ends


@pytest.mark.smoke
def test_a_planned_batch_is_repeated_with_the_same_files(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "c"
    batches = run(stream(delta_spark, numbers, maxFilesPerTrigger=2), checkpoint).batches
    for repeated in (2, 1):
        rewind(checkpoint, repeated)
        append(delta_spark, numbers, 100, 101)
        again = run(stream(delta_spark, numbers, maxFilesPerTrigger=2), checkpoint)
        assert sorted(again.batches[repeated]) == sorted(batches[repeated])


def test_limits(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    def batch_sizes(name: str, trigger: dict[str, Any], **options: object) -> list[int]:
        found = run(stream(delta_spark, numbers, **options), tmp_path / name, **trigger)
        assert found.ids == list(range(10))
        return [len(batch) for batch in found.batches.values()]

    assert batch_sizes("default", {}) == [10]
    assert batch_sizes("bytes", {}, maxBytesPerTrigger="1b") == [2, 2, 2, 2, 2]
    assert batch_sizes("both", {}, maxFilesPerTrigger=3, maxBytesPerTrigger="1g") == [6, 4]
    assert batch_sizes("smaller", {}, maxFilesPerTrigger=3, maxBytesPerTrigger="1b") == [2, 2, 2, 2, 2]
    assert batch_sizes("once", {"once": True}, maxFilesPerTrigger=1) == [10]


def test_available_now_ends_with_what_there_is_at_the_start(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    found: list[int] = []

    def grow(batch: DataFrame, number: int) -> None:
        found.extend(row.id for row in batch.collect())
        append(delta_spark, numbers, 100 + number, 101 + number)

    writer = stream(delta_spark, numbers, maxFilesPerTrigger=3).writeStream.foreachBatch(grow)
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    assert writer.start().awaitTermination(120)
    assert sorted(found) == list(range(10))
    assert Table.open(str(numbers)).version == 3


@pytest.mark.smoke
def test_a_running_query_follows_the_table_and_stops_while_idle(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    batches: dict[int, list[tuple[Any, ...]]] = {}
    query = started(stream(delta_spark, numbers), tmp_path / "c", batches)
    try:
        query.processAllAvailable()
        for more in range(3):
            append(delta_spark, numbers, 10 + more, 11 + more)
            query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert sorted(row[0] for batch in batches.values() for row in batch) == list(range(13))


def test_where_a_stream_begins(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    from_one = run(stream(delta_spark, numbers, startingVersion=1), tmp_path / "one")
    assert from_one.ids == [6, 7, 8, 9]
    latest, checkpoint = stream(delta_spark, numbers, startingVersion="latest"), tmp_path / "latest"
    assert run(latest, checkpoint).ids == []
    append(delta_spark, numbers, 20, 21)
    assert run(latest, checkpoint).ids == [20]
    since = stream(delta_spark, numbers, startingTimestamp="2001-01-01")
    assert run(since, tmp_path / "since").ids == [*range(10), 20]
    excluded = stream(delta_spark, numbers, excludeRegex="part-00000")
    assert 0 < len(run(excluded, tmp_path / "excluded").ids) < 11


def test_filters_of_the_query_reach_the_listing(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    rows = delta_spark.range(20).selectExpr("id", "cast(id % 5 as int) as p")
    rows.write.format("delta").partitionBy("p").save(str(path))
    listed: list[int] = []
    original = StreamFileIndex._list

    def counting(self: StreamFileIndex, *filters: Any) -> Any:
        found = original(self, *filters)
        listed.append(sum(directory.files().size() for directory in (found.apply(i) for i in range(found.size()))))
        return found

    monkeypatch.setattr(StreamFileIndex, "_list", counting)
    found = run(stream(delta_spark, path).where("p = 3 AND id > 5"), tmp_path / "c")
    assert found.rows == [(8, 3), (13, 3), (18, 3)]
    assert listed == [1]

    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (100, 3), (200, 4)")
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (300, 3)")
    listed.clear()
    found = run(stream(delta_spark, path).where("id BETWEEN 150 AND 250"), tmp_path / "c")
    assert found.rows == [(200, 4)]
    assert listed == [1]  # by statistics


def test_columns_of_partitions_and_files(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    delta_spark.sql(
        "SELECT * FROM VALUES (1, 'a b', DATE '2024-01-01'), (2, 'c=d%', NULL), (3, NULL, DATE '1969-02-03') "
        "AS t(id, p, day)"
    ).write.format("delta").partitionBy("p", "day").save(str(path))
    expected = sorted(tuple(row) for row in delta_spark.read.format("delta").load(str(path)).collect())
    assert run(stream(delta_spark, path), tmp_path / "c").rows == expected
    names = stream(delta_spark, path).select("id", "_metadata.file_name", "_metadata.row_index")
    found = run(names, tmp_path / "names").rows
    assert [(row[0], row[1].endswith(".parquet"), row[2]) for row in found] == [
        (1, True, 0),
        (2, True, 0),
        (3, True, 0),
    ]


def test_deletion_vectors_of_the_initial_snapshot(delta_spark: SparkSession, tmp_path: Path) -> None:
    files = [
        DataFile(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}), deleted=deleted)
        for start, deleted in ((0, (1, 2)), (10, ()), (20, (0,)), (30, ()))
    ]
    path, checkpoint = Path(make_table(tmp_path / "t", files)), tmp_path / "c"
    expected = sorted(set(range(40)) - {1, 2, 20})
    found = run(stream(delta_spark, path, maxFilesPerTrigger=3), checkpoint)
    assert (found.ids, len(found.batches)) == (expected, 2)
    rewind(checkpoint, 1)  # its files are found again without what the first run had kept
    assert run(stream(delta_spark, path, maxFilesPerTrigger=3), checkpoint).batches[1] == found.batches[1]


def test_column_mapping_and_row_tracking(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
    builder = DeltaTable.create(delta_spark).location(str(path)).addColumn("id", "LONG").addColumn("s", "STRING")
    for name, value in properties.items():
        builder = builder.property(name, value)
    builder.partitionedBy("s").execute()
    rows = delta_spark.range(4).selectExpr("id", "concat('s', id % 2) AS s").coalesce(1)
    rows.write.format("delta").mode("append").save(str(path))
    DeltaTable.forPath(delta_spark, str(path)).alter().renameColumn("id", "n")
    rows.withColumnRenamed("id", "n").write.format("delta").mode("append").save(str(path))
    frame = stream(delta_spark, path).select("n", "s", "_metadata.row_id", "_metadata.row_commit_version")
    batch = delta_spark.read.format("delta").load(str(path))
    expected = sorted(
        tuple(row) for row in batch.select("n", "s", "_metadata.row_id", "_metadata.row_commit_version").collect()
    )
    assert len(expected) == 8
    assert run(frame, tmp_path / "c").rows == expected


@pytest.mark.since("4.0")  # 3.5 reads no wider types
def test_types_that_became_wider(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    builder = DeltaTable.create(delta_spark).location(str(path)).addColumn("n", "INT")
    builder.property("delta.enableTypeWidening", "true").execute()
    delta_spark.sql("SELECT 1 AS n").write.format("delta").mode("append").save(str(path))
    wide = delta_spark.sql("SELECT 5000000000 AS n").write.format("delta").mode("append")
    wide.option("mergeSchema", "true").save(str(path))
    frame = stream(delta_spark, path)
    assert frame.schema.simpleString() == "struct<n:bigint>"
    assert run(frame, tmp_path / "c").ids == [1, 5000000000]


def in_memory(frame: DataFrame, name: str) -> list[tuple[Any, ...]]:
    """The rows of a query with a memory sink."""
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return sorted(tuple(row) for row in frame.sparkSession.table(name).collect())


def shapes(spark: SparkSession, numbers: Path) -> dict[str, Callable[[], DataFrame]]:
    """Queries over streams of a table, by name."""

    def self_union() -> DataFrame:
        frame = stream(spark, numbers)
        return frame.union(frame)

    def view() -> DataFrame:
        stream(spark, numbers).createOrReplaceTempView("streamed")
        return spark.sql("SELECT id * 2 AS id FROM streamed WHERE id < 3")

    def static_join() -> DataFrame:
        return stream(spark, numbers).join(spark.read.format("delta").load(str(numbers)).where("id > 7"), "id")

    return {
        "self_union": self_union,
        "two_loads": lambda: stream(spark, numbers, maxFilesPerTrigger=1).union(stream(spark, numbers)),
        "temporary_view": view,
        "static_join": static_join,
    }


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("self_union", sorted([*range(10)] * 2)),
        ("two_loads", sorted([*range(10)] * 2)),
        ("temporary_view", [0, 2, 4]),
        ("static_join", [8, 9]),
    ],
)
def test_shapes_of_queries(delta_spark: SparkSession, numbers: Path, shape: str, expected: list[int]) -> None:
    frame = shapes(delta_spark, numbers)[shape]()
    assert frame.isStreaming
    assert [row[0] for row in in_memory(frame, f"shape_{shape}")] == expected


def test_one_frame_serves_two_queries_at_once(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    frame = stream(delta_spark, numbers, maxFilesPerTrigger=1)
    one: dict[int, list[tuple[Any, ...]]] = {}
    other: dict[int, list[tuple[Any, ...]]] = {}
    queries = [started(frame, tmp_path / "c1", one), started(frame.where("id > 4"), tmp_path / "c2", other)]
    try:
        for query in queries:
            query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    assert sorted(row[0] for batch in one.values() for row in batch) == list(range(10))
    assert sorted(row[0] for batch in other.values() for row in batch) == list(range(5, 10))


def test_tables_with_names(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    by_path = delta_spark.readStream.option("maxFilesPerTrigger", 2).table(f"delta.`{numbers}`")
    assert [len(batch) for batch in run(by_path, tmp_path / "c1").batches.values()] == [4, 4, 2]
    delta_spark.sql(f"CREATE TABLE streamed_numbers USING delta LOCATION '{numbers}'")
    try:
        assert run(delta_spark.readStream.table("streamed_numbers"), tmp_path / "c2").ids == list(range(10))
    finally:
        delta_spark.sql("DROP TABLE streamed_numbers")
    by_option = delta_spark.readStream.format("delta").option("path", str(numbers)).load()
    assert run(by_option, tmp_path / "c3").ids == list(range(10))


# ------------------------------------------------------------------------------------------- changes and conditions
CHANGES = ["id", "_change_type", "_commit_version"]


def test_a_change_feed(delta_spark: SparkSession, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    builder = DeltaTable.create(delta_spark).location(str(path)).addColumn("id", "LONG")
    builder.property("delta.enableChangeDataFeed", "true").property("delta.enableDeletionVectors", "true").execute()
    append(delta_spark, path, 0, 10, 2)
    table = DeltaTable.forPath(delta_spark, str(path))
    table.delete("id = 2")
    feed = stream(delta_spark, path, readChangeFeed=True, startingVersion=0, maxFilesPerTrigger=1).select(*CHANGES)
    first = run(feed, checkpoint)
    table.update("id = 3", {"id": "30"})
    table.delete("id >= 5")
    second = run(feed, checkpoint)
    assert (len(first.batches) >= 3, len(second.batches)) == (True, 3)
    batch = delta_spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    expected = sorted(tuple(row) for row in batch.load(str(path)).select(*CHANGES).collect())
    assert sorted(first.rows + second.rows) == expected

    snapshot = run(stream(delta_spark, path, readChangeFeed=True).select(*CHANGES), tmp_path / "snapshot")
    version = Table.open(str(path)).version
    assert snapshot.rows == [(id_, "insert", version) for id_ in (0, 1, 4)]


def test_conditions_on_rows_and_commits(delta_spark: SparkSession, numbers: Path, tmp_path: Path) -> None:
    some = stream(delta_spark, numbers, where="id IN (1, 8)", maxFilesPerTrigger=1)
    found = run(some, tmp_path / "c1")
    assert (found.ids, len([batch for batch in found.batches.values() if batch])) == ([1, 8], 2)
    skipping = stream(delta_spark, numbers, startingVersion=0, skipCommitsWhere="version = 0")
    assert run(skipping, tmp_path / "c2").ids == [6, 7, 8, 9]


def test_schema_tracking(delta_spark: SparkSession, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    builder = DeltaTable.create(delta_spark).location(str(path)).addColumn("id", "LONG")
    builder.property("delta.columnMapping.mode", "name").execute()
    append(delta_spark, path, 0, 2)
    options: dict[str, object] = {"schemaTrackingLocation": str(checkpoint / "schema")}
    with pytest.raises(StreamingQueryException, match="NOT_UNDER_CHECKPOINT"):
        run(stream(delta_spark, path, schemaTrackingLocation=str(tmp_path / "elsewhere")), checkpoint)
    assert run(stream(delta_spark, path, **options), checkpoint).ids == [0, 1]
    # delta-spark refuses a log whose source is not the text that Spark itself has for it.
    assert schema_log(checkpoint / "schema")[0]["sourceMetadataPath"] == f"file:{checkpoint}/sources/0"
    DeltaTable.forPath(delta_spark, str(path)).alter().renameColumn("id", "n")
    delta_spark.sql("SELECT 5L AS n").write.format("delta").mode("append").save(str(path))
    with pytest.raises(StreamingQueryException, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        run(stream(delta_spark, path, **options), checkpoint)
    with pytest.raises(StreamSchemaError, match="allowSourceColumnRename"):
        stream(delta_spark, path, **options)
    allowed = stream(delta_spark, path, allowSourceColumnRename="always", **options)
    assert allowed.columns == ["n"]
    assert run(allowed, checkpoint).ids == [5]


def test_different_positions_of_one_source_are_refused(
    delta_spark: SparkSession, numbers: Path, tmp_path: Path
) -> None:
    checkpoint, one = tmp_path / "c", stream(delta_spark, numbers, maxFilesPerTrigger=1)
    run(one.union(stream(delta_spark, numbers)), checkpoint)
    rewind(checkpoint, 0)
    with pytest.raises(StreamingQueryException, match="different positions"):
        run(one.union(one), checkpoint)
    assert run(one.union(stream(delta_spark, numbers)), checkpoint).ids == sorted([*range(10)] * 2)


@pytest.mark.since("4.1")  # older parsers take names alone after STREAM
def test_streams_in_sql(delta_spark: SparkSession, numbers: Path) -> None:
    delta_spark.sql(f"CREATE TEMPORARY VIEW small AS SELECT id + 1 AS id FROM STREAM delta.`{numbers}` WHERE id < 2")
    try:
        assert in_memory(delta_spark.sql("SELECT id FROM small"), "from_view") == [(1,), (2,)]
    finally:
        delta_spark.catalog.dropTempView("small")
    named = f"WITH low AS (SELECT id FROM STREAM delta.`{numbers}` WHERE id < 2), other AS (SELECT id FROM low)"
    assert in_memory(delta_spark.sql(f"{named} SELECT id + 5 AS id FROM other"), "from_named") == [(5,), (6,)]
    limited = delta_spark.sql(f"SELECT * FROM STREAM(delta.`{numbers}`) WITH ('startingVersion' = 1)")
    assert [row[0] for row in in_memory(limited, "from_sql")] == [6, 7, 8, 9]


# --------------------------------------------------------------------------------------------------- checkpoints
@pytest.mark.parametrize("version", [1, 2])
def test_a_checkpoint_is_reset(delta_spark: SparkSession, numbers: Path, tmp_path: Path, version: int) -> None:
    """Spark accepts the file of offsets, in both of its formats."""
    checkpoint, frame = tmp_path / "c", stream(delta_spark, numbers)
    delta_spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", version)
    try:
        assert run(frame, checkpoint).ids == list(range(10))
        found = read_checkpoint(str(checkpoint))
        [source] = found.latest.offsets
        assert (found.latest.is_complete, found.latest.offsets[source].version) == (True, 2)
        reset_offset(found, source, Offset(found.latest.offsets[source].table_id, 1))
        assert run(frame, checkpoint).ids == list(range(6, 10))
    finally:
        delta_spark.conf.unset("spark.sql.streaming.offsetLog.formatVersion")
