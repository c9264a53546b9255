"""SQL statements and streams that pyspark-delta does not do: one error of ours that says what works instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from tests.managed import Warehouse
from tests.spark.streams import LIMIT, Source, ids, transactions

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.table import Table

ONLY_ON_CLASSIC_SESSIONS = (
    "CREATE VIEW v AS SELECT * FROM {t}",
    "EXECUTE IMMEDIATE 'DELETE FROM {t}'",
    "BEGIN DELETE FROM {t}; END",
)
# What Spark itself says is not touched: the statement fails for another reason.
OF_SPARK = (
    "SELECT * FROM nowhere WHERE 'delta.`/p`' = 'x'",
    "SELECT * FROM nowhere.s.t",
    "SELECT nothing FROM range(3)",
    "SELEC 1",
    "DESCRIBE nowhere",
    "DELETE FROM nowhere",
)


class Unsupported:
    """The tests; a session of each kind runs them all."""

    def test_other_failures_and_successes_stay(self, session: SparkSession) -> None:
        for statement in OF_SPARK:
            with pytest.raises((AnalysisException, ParseException)):
                session.sql(statement).collect()
        assert session.sql("SELECT :a + :b AS c", args={"a": 1, "b": 2}).first() == (3,)
        assert session.sql("SELECT id FROM {t}", t=session.range(1)).first() == (0,)
        session.range(2).createOrReplaceTempView("history")
        assert session.sql("DESCRIBE history").count() == 1
        session.catalog.dropTempView("history")

    def test_other_streams_stay(self, session: SparkSession, tmp_path: Path) -> None:
        source, target = str(tmp_path / "source"), str(tmp_path / "target")
        session.range(3).write.parquet(source)
        stream = session.readStream.schema("id LONG").format("parquet").load(source)
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.trigger(availableNow=True).start(target)
        assert query.awaitTermination(120)
        assert session.read.parquet(target).count() == 3


class TestClassic(Unsupported):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Unsupported):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect

    def test_streams_to_tables_in_catalogs_are_refused(self, session: SparkSession, tmp_path: Path) -> None:
        warehouse = Warehouse(tmp_path)
        session.range(3).writeTo(warehouse.full("t")).create()
        stream = session.readStream.format("rate").load().selectExpr("value AS id")
        with pytest.raises(InvalidOperationError, match="foreachBatch"):
            stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).toTable(warehouse.full("t"))
        assert warehouse.snapshot().version == 0

    def test_streams_are_written(self, session: SparkSession, tmp_path: Path) -> None:
        path, source = str(tmp_path / "t"), Source(session, tmp_path)
        writer = source.stream("id", "id % 2 AS part").writeStream.format("delta").partitionBy("part")
        writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        with pytest.raises(InvalidOperationError, match="DELTA_UNSUPPORTED_OUTPUT_MODE"):
            writer.outputMode("update").start(path)
        query = writer.outputMode("append").start(path)
        assert query.awaitTermination(LIMIT)
        assert ids(path) == source.ids
        assert transactions(path) == {query.id: 1}
        assert Table.open(path).detail()["partitionColumns"] == ["part"]

    @pytest.mark.parametrize("statement", ONLY_ON_CLASSIC_SESSIONS)
    def test_statements_that_only_the_server_could_run_are_refused(
        self, session: SparkSession, tmp_path: Path, statement: str
    ) -> None:
        path, warehouse = tmp_path / "t", Warehouse(tmp_path)
        session.range(3).write.format("delta").save(str(path))
        session.range(3).writeTo(warehouse.full("t")).create()
        for table in (f"delta.`{path}`", warehouse.full("t")):
            with pytest.raises(InvalidOperationError, match="Nothing was c") as raised:
                session.sql(statement.format(t=table)).collect()
            assert raised.value.error_class == "DELTA_OPERATION_NOT_ALLOWED"
        assert [Table.open(str(path)).version, warehouse.snapshot().version] == [0, 0]


def test_batches_of_a_stream_are_written_once(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "t")
    delta_spark.range(3).write.parquet(source)

    def write(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            writer = batch.write.format("delta").mode("append")
            writer.option("txnAppId", "app").option("txnVersion", number).save(path)

    stream = delta_spark.readStream.schema("id LONG").format("parquet").load(source)
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    assert query.trigger(availableNow=True).start().awaitTermination(120)
    assert sorted(Table.open(path).scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
