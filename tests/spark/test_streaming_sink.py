"""`df.writeStream.format("delta")` of classic sessions: what a query commits, and what is refused before it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession
from tests.managed import Warehouse
from tests.spark.streams import Source, ids, numbers, run, transactions, writer

from pyspark_delta import DeltaTable, DeltaWarning, Table
from pyspark_delta.errors import (
    AppendOnlyTableError,
    ConcurrentTransactionError,
    ConstraintViolationError,
    DeltaError,
    InvalidOperationError,
    InvalidOptionError,
)
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.streaming import query as queries
from pyspark_delta.spark.streaming.sink import BatchRows, StreamWrite


def history(path: object) -> list[dict[str, Any]]:
    return Table.open(str(path)).history()


@pytest.fixture
def source(delta_spark: SparkSession, tmp_path: Path) -> Source:
    return Source(delta_spark, tmp_path)


@pytest.fixture
def rate(delta_spark: SparkSession) -> Any:
    """A stream without a batch: for queries that do not start."""
    return delta_spark.readStream.format("rate").load().selectExpr("value AS id")


# ------------------------------------------------------------------------------------------------------ what is written
@pytest.mark.smoke
def test_each_batch_is_one_commit_which_names_it(source: Source, tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    query = run(writer(source.stream(), checkpoint, userMetadata="of a stream").queryName("orders").start(str(path)))
    assert (query.name, query.lastProgress["sink"]["description"]) == ("orders", f"DeltaSink[{path}]")
    assert query.id == json.loads((checkpoint / "metadata").read_text())["id"]
    assert ids(path) == source.ids
    jobs = source.spark.sparkContext.statusTracker().getJobIdsForGroup(query.runId)
    assert len(jobs) == source.files  # one for each batch
    first = history(path)[-1]
    assert first["operation"] == "STREAMING UPDATE"
    assert first["operationParameters"] == {"outputMode": "Append", "queryId": query.id, "epochId": "0"}
    metrics = {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "10", "numOutputBytes": "?"}
    assert {**first["operationMetrics"], "numOutputBytes": "?"} == metrics
    assert (first["userMetadata"], first["isBlindAppend"]) == ("of a stream", True)
    assert transactions(path) == {query.id: 1}

    source.add()
    run(writer(source.stream(), checkpoint).start(path=str(path)))
    assert ids(path) == source.ids
    assert (Table.open(path).version, transactions(path)) == (2, {query.id: 2})


@pytest.mark.smoke
def test_c180_a_committed_batch_is_not_computed_again(source: Source, tmp_path: Path) -> None:
    """Spark repeats a batch that is not in its commit log, as after a crash between the table's commit and Spark's."""
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    run(writer(source.stream(), checkpoint).start(str(path)))
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    before = set(path.rglob("*"))
    run(writer(source.stream("CAST(raise_error('computed') AS LONG) AS id"), checkpoint).start(str(path)))
    assert set(path.rglob("*")) == before
    assert numbers(checkpoint / "commits") == [0, 1]


def test_complete_mode_replaces_all_rows(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"

    def counts(*columns: str) -> Any:
        return source.stream().groupBy("id").count().selectExpr(*columns)

    delta_spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")  # concerns batch writes only
    try:
        run(writer(counts("id", "count"), tmp_path / "c").outputMode("complete").partitionBy("count").start(str(path)))
    finally:
        delta_spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert ids(path) == source.ids
    last = history(path)[0]
    assert (last["operationParameters"]["outputMode"], last["isBlindAppend"]) == ("Complete", False)
    assert (last["operationMetrics"]["numOutputRows"], last["operationMetrics"]["numRemovedFiles"]) == ("20", "2")

    other = writer(counts("id", "cast(count as string) as n"), tmp_path / "d", overwriteSchema=True)
    run(other.outputMode("complete").start(str(path)))
    assert Table.open(path).schema.names == ("id", "n")
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(AppendOnlyTableError):
        writer(counts("id", "cast(count as string) as n"), tmp_path / "e").outputMode("complete").start(str(path))


def test_the_first_batch_creates_the_table_and_later_queries_agree(source: Source, tmp_path: Path) -> None:
    path, columns = tmp_path / "t", ("id", "id % 2 AS p")
    options = {"delta.enableDeletionVectors": "true", "maxRecordsPerFile": 2, "optimizeWrite": "true"}
    run(writer(source.stream(*columns), tmp_path / "c", **options).partitionBy("p").start(str(path)))
    assert Table.open(path).metadata.partition_columns == ("p",)
    assert Table.open(path).metadata.configuration["delta.enableDeletionVectors"] == "true"
    assert Table.open(path).detail()["numFiles"] == 12
    for refused, error_class in (
        (writer(source.stream(*columns), tmp_path / "d").partitionBy("id"), "DELTA_PARTITION_COLUMNS_MISMATCH"),
        (writer(source.stream(*columns), tmp_path / "d").clusterBy("id"), "DELTA_CLUSTERING_COLUMNS_MISMATCH"),
        (writer(source.stream(*columns, "1 AS x"), tmp_path / "d"), "DELTA_FAILED_TO_MERGE_FIELDS"),
    ):
        with pytest.raises(DeltaError) as raised:
            refused.start(str(path))
        assert raised.value.error_class == error_class
    run(writer(source.stream(*columns, "1 AS x"), tmp_path / "d", mergeSchema=True).start(str(path)))
    assert Table.open(path).schema.names == ("id", "p", "x")
    run(writer(source.stream(), tmp_path / "e").clusterBy("id").start(str(tmp_path / "clustered")))
    assert Table.open(tmp_path / "clustered").detail()["clusteringColumns"] == ["id"]


def test_small_files_of_batches_are_compacted(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    for name, value in (("enabled", "true"), ("minNumFiles", "2")):
        delta_spark.conf.set(f"spark.databricks.delta.autoCompact.{name}", value)
    try:
        run(writer(source.stream(), tmp_path / "c").start(str(tmp_path / "t")))
    finally:
        for name in ("enabled", "minNumFiles"):
            delta_spark.conf.unset(f"spark.databricks.delta.autoCompact.{name}")
    assert [one["operation"] for one in history(tmp_path / "t")] == ["OPTIMIZE", "STREAMING UPDATE", "STREAMING UPDATE"]
    assert ids(tmp_path / "t") == source.ids


@pytest.mark.smoke
def test_tables_by_name(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    def start(name: str, checkpoint: str, **options: object) -> None:
        made = source.stream().writeStream.trigger(availableNow=True).options(**options)  # type: ignore[arg-type]
        run(made.option("checkpointLocation", str(tmp_path / checkpoint)).toTable(name, format="delta"))

    warehouse, outside = Warehouse(tmp_path), str(tmp_path / "outside")
    delta_spark.sql("CREATE SCHEMA streamed")
    try:
        start("streamed.inside", "a")
        start("streamed.inside", "b")
        start("streamed.outside", "c", path=outside)
        assert delta_spark.table("streamed.inside").count() == 2 * len(source.ids)
        assert ids(outside) == source.ids
        assert delta_spark.sql("DESCRIBE DETAIL streamed.inside").first()["format"] == "delta"
    finally:
        delta_spark.sql("DROP SCHEMA streamed CASCADE")
    start(f"delta.`{tmp_path / 'by_path'}`", "d")
    assert ids(tmp_path / "by_path") == source.ids
    for checkpoint in ("e", "f"):
        start(warehouse.full("orders"), checkpoint)
    assert delta_spark.table(warehouse.full("orders")).count() == 2 * len(source.ids)
    operations = delta_spark.sql(f"DESCRIBE HISTORY {warehouse.full('orders')}").collect()
    assert [one.operation for one in operations] == [*["STREAMING UPDATE"] * 4, "CREATE TABLE"]
    with pytest.raises(InvalidOptionError, match="is at"):
        start(warehouse.full("orders"), "g", path=outside)


def test_values_are_cast_to_the_types_of_the_table(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    delta_spark.sql(f"CREATE TABLE delta.`{path}` (id LONG, day DATE, s STRUCT<x: INT>)")
    texts = source.stream("CAST(id AS STRING) AS id", "'2024-01-02' AS day", "named_struct('x', '7') AS s")
    run(writer(texts, tmp_path / "c").start(str(path)))
    assert ids(path) == source.ids
    stored = delta_spark.read.format("delta").load(str(path)).selectExpr("CAST(day AS STRING)", "s.x").distinct()
    assert stored.collect() == [("2024-01-02", 7)]
    query = writer(source.stream("'x' AS id"), tmp_path / "c2").start(str(path))
    with pytest.raises(StreamingQueryException, match=r"'x' does not fit into the column 'id' of type long"):
        query.awaitTermination()


def test_a_table_is_opened_once_for_each_batch(
    source: Source, delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether values are cast to its types or not; and once when the query starts."""
    opened: list[str] = []
    load = Snapshot.load

    def counted(location: str, *args: Any, **more: Any) -> Snapshot:
        opened.append(location)
        return load(location, *args, **more)

    monkeypatch.setattr(Snapshot, "load", counted)
    for name, column in (("same", "id"), ("cast", "CAST(id AS STRING) AS id")):
        path = str(tmp_path / name)
        delta_spark.sql(f"CREATE TABLE delta.`{path}` (id LONG)")
        opened.clear()
        run(writer(source.stream(column), tmp_path / f"{name}-checkpoint").start(path))
        assert opened == [path] * (1 + source.files)
        assert ids(path) == source.ids


# ------------------------------------------------------------------------------------- what is refused before it starts
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "update": (lambda w: w.outputMode("update"), "foreachBatch"),
    "continuous": (lambda w: w.trigger(continuous="1 second"), "availableNow"),
    "unknown": (lambda w: w.option("mergeShema", "true"), "Did you mean 'mergeSchema'"),
    "of the source": (lambda w: w.option("maxFilesPerTrigger", 1), "readStream"),
    "of transactions": (lambda w: w.option("txnAppId", "app"), "number of the batch"),
    "of overwrites": (lambda w: w.option("replaceWhere", "id = 1"), "appends rows"),
    "overwriteSchema": (lambda w: w.option("overwriteSchema", True), "complete"),
    "both layouts": (lambda w: w.partitionBy("id").option("clusterBy", "id"), "not both"),
    "an unknown column": (lambda w: w.partitionBy("x"), "'x'"),
    "an illegal value": (lambda w: w.option("maxRecordsPerFile", "many"), "whole number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_query_that_cannot_be_written_does_not_start(
    rate: Any, delta_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    change, text = REFUSED[name]
    made = change(rate.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")))
    with pytest.raises(DeltaError, match=text):
        made.start(str(tmp_path / "t"))
    assert delta_spark.streams.active == []
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_view_is_no_table_for_a_stream(rate: Any, delta_spark: SparkSession, tmp_path: Path) -> None:
    delta_spark.range(1).createOrReplaceTempView("streamed_view")
    made = rate.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(InvalidOperationError, match="'streamed_view' as a Delta table: it is a view"):
        made.toTable("streamed_view")
    delta_spark.catalog.dropTempView("streamed_view")
    assert not delta_spark.catalog.tableExists("streamed_view")


def test_what_a_query_needs(rate: Any, delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with pytest.raises(AnalysisException, match="checkpointLocation must be specified"):
        rate.writeStream.format("delta").start(path)
    with pytest.raises(InvalidOptionError, match="needs a path"):
        rate.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).start()
    void = rate.selectExpr("id", "array(named_struct('a', null)) AS v")
    with pytest.raises(InvalidOperationError, match="'v'") as raised:
        void.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).start(path)
    assert raised.value.error_class == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
    assert delta_spark.streams.active == []


# --------------------------------------------------------------------------------------------------- while a query runs
@pytest.mark.smoke
def test_an_error_of_a_batch_is_the_cause_of_the_exception(
    source: Source, delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark.sql(f"CREATE TABLE delta.`{path}` (id LONG)")
    delta_spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 5)")
    query = writer(source.stream(), tmp_path / "c").start(str(path))
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    assert isinstance(raised.value.__cause__, ConstraintViolationError)
    assert "terminated with exception: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] The CHECK" in str(raised.value)
    assert "Traceback" not in str(raised.value)
    with pytest.raises(StreamingQueryException) as other:
        query.processAllAvailable()
    found = query.exception()
    assert found is not None
    assert raised.value.__cause__ is other.value.__cause__ is found.__cause__
    assert ids(path) == []


def test_errors_that_are_not_of_delta_keep_their_text(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = writer(source.stream("CAST(raise_error('by the user') AS LONG) AS id"), tmp_path / "c").start(
        str(tmp_path / "t")
    )
    with pytest.raises(StreamingQueryException, match="by the user") as raised:
        query.awaitTermination()
    assert "Python Proxy" not in str(raised.value)

    def fail(self: StreamWrite, *_: object) -> None:
        raise ZeroDivisionError("in Python")

    monkeypatch.setattr(StreamWrite, "write", fail)
    query = writer(source.stream(), tmp_path / "d").start(str(tmp_path / "t"))
    with pytest.raises(StreamingQueryException, match="exception: ZeroDivisionError: in Python") as raised:
        query.awaitTermination()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_two_runs_of_one_query_do_not_both_commit_a_batch(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = str(tmp_path / "t"), BatchRows.rows
    run(writer(source.stream(), tmp_path / "c").start(path))
    (query,) = transactions(path)

    def other_run_is_faster(self: BatchRows) -> Any:
        Table.open(path).append([{"id": 100}], txn=(query, 2))
        return before(self)

    source.add()
    monkeypatch.setattr(BatchRows, "rows", other_run_is_faster)
    with pytest.raises(StreamingQueryException) as raised:
        writer(source.stream(), tmp_path / "c").start(path).awaitTermination()
    assert isinstance(raised.value.__cause__, ConcurrentTransactionError)
    assert ids(path) == [*range(20), 100]


def test_a_query_that_reads_its_table_depends_on_it(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta_spark.range(5).write.format("delta").save(path)
    known = delta_spark.read.format("delta").load(path)
    run(writer(source.stream().join(known, "id", "left_anti"), tmp_path / "c").start(path))
    assert ids(path) == source.ids
    assert [one["isBlindAppend"] for one in history(path)] == [False, False, True]


def test_without_the_internals_of_spark_foreach_batch_writes(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    monkeypatch.setattr(queries, "_try_internals", lambda gateway: "startQuery takes 14 arguments")
    with pytest.warns(DeltaWarning, match="14 arguments"):
        query = writer(source.stream(), tmp_path / "c").start(str(path))
    run(query)
    assert ids(path) == source.ids
    assert history(path)[0]["operationParameters"] == {"outputMode": "Append", "queryId": query.id, "epochId": "1"}
    assert transactions(path) == {query.id: 1}


def test_triggers(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    made = source.stream().writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c"))
    run(made.trigger(once=True).start(path))
    assert (ids(path), Table.open(path).version) == (source.ids, 0)
    source.add()
    query = made.trigger(processingTime="0 seconds").start(path)
    query.processAllAvailable()
    source.add()
    query.processAllAvailable()
    assert ids(path) == source.ids
    query.stop()
    assert query.exception() is None
    assert DeltaTable.isDeltaTable(delta_spark, path)
