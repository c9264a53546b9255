"""`foreachBatch` in enabled sessions: the session of a batch is enabled, and `streaming_batch` repeats nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.streams import LIMIT, Source, ids, transactions

from pyspark_delta import DeltaTable, Table, disable, enable, streaming_batch
from pyspark_delta.errors import ConstraintViolationError, DeltaError, InvalidOperationError, InvalidOptionError
from pyspark_delta.spark.conf import batches
from pyspark_delta.spark.conf.sessions import enabled, is_enabled
from pyspark_delta.spark.sql import session as sql


@pytest.fixture
def source(delta_spark: SparkSession, tmp_path: Path) -> Source:
    return Source(delta_spark, tmp_path)


def each_batch(source: Source, checkpoint: Path, function: Callable[[DataFrame, int], None]) -> str:
    """Run a function for each batch, and return the id of the query."""
    made = source.stream().writeStream.foreachBatch(function).option("checkpointLocation", str(checkpoint))
    query = made.trigger(availableNow=True).start()
    assert query.awaitTermination(LIMIT)
    return str(query.id)


@pytest.mark.smoke
def test_the_session_of_a_batch_is_enabled(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    path, written, found = str(tmp_path / "t"), str(tmp_path / "written"), []
    delta_spark.range(5).selectExpr("id", "0L AS n").write.format("delta").save(path)
    before = set(enabled), set(sql._installed), dict(batches._of_sessions)

    def change(batch: DataFrame, number: int) -> None:
        spark = batch.sparkSession
        found.append((is_enabled(spark), spark is delta_spark, set(enabled) == before[0]))
        enable(spark)  # as code for earlier versions does: it changes nothing
        batch.write.format("delta").mode("append").save(written)
        table = DeltaTable.forPath(spark, path).alias("t")
        table.merge(batch.alias("b"), "t.id = b.id").whenMatchedUpdate(set={"n": "t.n + 1"}).execute()
        batch.createOrReplaceTempView("new_rows")
        merge = f"MERGE INTO delta.`{path}` t USING new_rows b ON t.id = b.id"
        spark.sql(
            f"{merge} WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, 9)"
        )

    each_batch(source, tmp_path / "c", change)
    assert found == [(True, False, True)] * 2
    assert ids(written) == source.ids
    rows = Table.open(path).scan().to_arrow().to_pylist()
    assert {(row["id"] < 5, row["n"]) for row in rows} == {(True, 2), (False, 9)}
    assert (set(enabled), set(sql._installed), dict(batches._of_sessions)) == before


def test_disable_is_inherited_too(spark: SparkSession, tmp_path: Path) -> None:
    session = enable(spark.newSession())
    source, found = Source(session, tmp_path), []

    def look(batch: DataFrame, number: int) -> None:
        found.append(is_enabled(batch.sparkSession))
        if not number:
            disable(session)

    each_batch(source, tmp_path / "c", look)
    assert found == [True, False]
    assert not is_enabled(session)


@pytest.mark.smoke
def test_c180_a_repeated_batch_changes_nothing(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    """The block writes two tables, one of them three times, with the batch's session, another one, and threads."""
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    for path in (first, second):
        delta_spark.range(0).selectExpr("id", "0L AS n").write.format("delta").save(path)
    seen: list[object] = []

    def change(batch: DataFrame, number: int) -> None:
        with streaming_batch(batch, number) as options:
            seen.append(options["txnVersion"])
            batch.selectExpr("id", "1L AS n").write.format("delta").mode("append").save(first)
            table = DeltaTable.forPath(delta_spark, first).alias("t")
            table.merge(batch.alias("b"), "t.id = b.id").whenMatchedUpdate(set={"n": "t.n + 1"}).execute()
            batch.sparkSession.sql(f"UPDATE delta.`{first}` SET n = n * 10 WHERE id >= {10 * number} OR true")
            with ThreadPoolExecutor(1) as pool:
                rows = batch.selectExpr("id", "1L AS n").write.format("delta").mode("append")
                pool.submit(rows.save, second).result()

    def twice(batch: DataFrame, number: int) -> None:
        batch.persist()
        change(batch, number)
        before = [Table.open(path).version for path in (first, second)]
        change(batch, number)
        assert [Table.open(path).version for path in (first, second)] == before

    query = each_batch(source, tmp_path / "c", twice)
    assert seen == [0, 0, 1, 1]
    assert sorted(row["n"] for row in Table.open(first).scan().to_arrow().to_pylist()) == [20] * 10 + [200] * 10
    assert ids(second) == source.ids
    assert transactions(first) == {query: 1, f"{query}/2": 1, f"{query}/3": 1}
    assert transactions(second) == {query: 1}


def test_c180_a_repeated_statement_does_not_change_the_rows_of_a_later_one(
    source: Source, delta_spark: SparkSession, tmp_path: Path
) -> None:
    """The UPDATE finds nothing at first, and would find the rows of the INSERT when the batch is repeated."""
    path = str(tmp_path / "t")
    delta_spark.range(0).selectExpr("id", "true AS current").write.format("delta").save(path)

    def change(batch: DataFrame, number: int) -> None:
        batch.createOrReplaceTempView("new_rows")
        for _ in range(2):
            with streaming_batch(batch, number):
                new = "id IN (SELECT id FROM new_rows)"
                batch.sparkSession.sql(f"UPDATE delta.`{path}` SET current = false WHERE {new}")
                batch.sparkSession.sql(f"INSERT INTO delta.`{path}` SELECT id, true FROM new_rows")

    query = each_batch(source, tmp_path / "c", change)
    assert sorted(Table.open(path).scan(where="current").to_arrow()["id"].to_pylist()) == source.ids
    assert transactions(path) == {query: 1, f"{query}/2": 1}


def _update(spark: SparkSession, path: str) -> None:
    spark.sql(f"UPDATE delta.`{path}` SET n = n + 100")


def _append(spark: SparkSession, path: str) -> None:
    spark.sql("SELECT 100L AS n").write.format("delta").mode("append").save(path)


def _commit(spark: SparkSession, path: str) -> None:
    with DeltaTable.forPath(spark, path).transaction() as changes:
        changes.update({"n": "n + 100"})


@pytest.mark.parametrize("change", [_update, _append, _commit])
def test_c180_a_change_that_is_tried_again_is_made_once(
    delta_spark: SparkSession, tmp_path: Path, change: Callable[[SparkSession, str], None]
) -> None:
    """It fails at first, and a later attempt in the block succeeds. In the repeated batch, the first one would."""
    source, path = Source(delta_spark, tmp_path, files=1), str(tmp_path / "t")
    delta_spark.sql("SELECT 0L AS n").write.format("delta").save(path)

    def write(batch: DataFrame, number: int) -> None:
        with streaming_batch(batch, number):
            Table.open(path).alter().add_constraint("few", "n < 100")
            with pytest.raises(ConstraintViolationError):
                change(batch.sparkSession, path)
            Table.open(path).alter().drop_constraint("few")
            change(batch.sparkSession, path)
            batch.selectExpr("0L AS n").write.format("delta").mode("append").save(path)
        with streaming_batch(batch, number):
            change(batch.sparkSession, path)
            batch.selectExpr("0L AS n").write.format("delta").mode("append").save(path)

    query = each_batch(source, tmp_path / "c", write)
    assert sum(Table.open(path).scan().to_arrow()["n"].to_pylist()) == 100
    assert transactions(path) == {query: 0, f"{query}/2": 0}


def test_c180_another_transaction_is_no_attempt_at_one_that_failed(delta_spark: SparkSession, tmp_path: Path) -> None:
    """It would be skipped in the repeated batch, in which the first one succeeds and has its name."""
    source, path = Source(delta_spark, tmp_path, files=1), str(tmp_path / "t")
    delta_spark.sql("SELECT 0L AS n").write.format("delta").save(path)

    def write(batch: DataFrame, number: int) -> None:
        for fails in (True, False):
            with streaming_batch(batch, number):
                with suppress(ZeroDivisionError), DeltaTable.forPath(batch.sparkSession, path).transaction() as first:
                    first.append(batch.sparkSession.sql("SELECT 1L AS n"))
                    if fails:
                        raise ZeroDivisionError
                with DeltaTable.forPath(batch.sparkSession, path).transaction() as second:
                    second.append(batch.sparkSession.sql("SELECT 10L AS n"))

    each_batch(source, tmp_path / "c", write)
    assert sorted(Table.open(path).scan().to_arrow()["n"].to_pylist()) == [0, 1, 10]


def test_a_transaction_in_a_batch_is_one_write(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta_spark.range(0).write.format("delta").save(path)

    def change(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            with streaming_batch(batch, number), DeltaTable.forPath(batch.sparkSession, path).transaction() as changes:
                changes.append(batch)
                changes.append(batch)

    query = each_batch(source, tmp_path / "c", change)
    assert ids(path) == sorted(source.ids * 2)
    assert transactions(path) == {query: 1}


def test_the_query_must_be_known(source: Source, delta_spark: SparkSession, tmp_path: Path) -> None:
    frame = delta_spark.range(1)
    with pytest.raises(InvalidOperationError, match="checkpoint="), streaming_batch(frame, 0):
        pass
    checkpoint = tmp_path / "c"
    query = each_batch(source, checkpoint, lambda batch, number: None)
    for number in (0, 0):
        with streaming_batch(frame, number, checkpoint=str(checkpoint)):
            frame.write.format("delta").mode("append").save(str(tmp_path / "t"))
    assert (ids(tmp_path / "t"), transactions(tmp_path / "t")) == ([0], {query: 0})
    (tmp_path / "metadata").write_text("[]")
    with pytest.raises(InvalidOptionError, match="checkpointLocation"):
        streaming_batch(frame, 0, checkpoint=str(tmp_path)).__enter__()


def test_errors_of_functions_reach_the_caller(source: Source, tmp_path: Path) -> None:
    def fail(batch: DataFrame, number: int) -> None:
        with streaming_batch(batch, number):
            raise ValueError("in the function")

    with pytest.raises(StreamingQueryException, match="in the function"):
        each_batch(source, tmp_path / "c", fail)
    assert batches._of_sessions == {}

    def miss(batch: DataFrame, number: int) -> None:
        DeltaTable.forPath(batch.sparkSession, str(tmp_path / "nothing"))

    with pytest.raises(StreamingQueryException, match=r"\[DELTA_") as raised:
        each_batch(source, tmp_path / "d", miss)
    assert isinstance(raised.value.__cause__, DeltaError)
    assert "Traceback" not in str(raised.value)


def test_a_batch_on_spark_connect_is_written_once(delta_connect: SparkSession, tmp_path: Path) -> None:
    """The function runs in a process of the server, which knows the query only from its checkpoint."""
    path, checkpoint, source = str(tmp_path / "t"), str(tmp_path / "c"), str(tmp_path / "source")
    delta_connect.range(10).write.parquet(source)

    def write(batch: DataFrame, number: int) -> None:
        from pyspark_delta import streaming_batch

        for _ in range(2):
            with streaming_batch(batch, number, checkpoint=checkpoint) as options:
                batch.write.format("delta").options(**options).mode("append").save(path)

    stream = delta_connect.readStream.schema("id LONG").parquet(source)
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    started = query.start()
    assert started.awaitTermination(LIMIT)
    assert ids(path) == list(range(10))
    assert transactions(path) == {str(started.id): 0}
