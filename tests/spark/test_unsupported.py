"""SQL statements and streams that pyspark-delta does not do: one error of ours that says what works instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.managed import Warehouse

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.table import Table

NAMING_A_TABLE = {
    "SELECT * FROM {t}": "createOrReplaceTempView",
    "/* all */ WITH a AS (SELECT * FROM {t}) SELECT * FROM a": "createOrReplaceTempView",
    "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM {t}": "createOrReplaceTempView",
    "INSERT INTO {t} SELECT 1L": 'mode("append")',
    "-- replaces\nINSERT OVERWRITE {t} SELECT 1L": 'mode("append")',
    "DELETE FROM {t}": "delete(condition)",
    "UPDATE {t} SET id = 1": "update(condition, set)",
    "MERGE INTO {t} a USING (SELECT 1 x) s ON a.id = s.x WHEN MATCHED THEN DELETE": "merge(source, condition)",
    "TRUNCATE TABLE {t}": "delete()",
    "ALTER TABLE {t} ADD COLUMNS (x INT)": "alter()",
    "CREATE TABLE {t} (id BIGINT) USING delta": "DeltaTable.create(spark)",
    "DROP TABLE {t}": "directory",
    "SHOW TBLPROPERTIES {t}": "createOrReplaceTempView",
}
OF_DELTA = {
    "OPTIMIZE {t}": "OPTIMIZE",
    " vacuum {t} RETAIN 200 HOURS": "VACUUM",
    "RESTORE TABLE {t} TO VERSION AS OF 0": "RESTORE",
    "REORG TABLE {t} APPLY (PURGE)": "REORG",
    "GENERATE symlink_format_manifest FOR TABLE {t}": "GENERATE",
    "CONVERT  TO DELTA parquet.`/files`": "CONVERT TO DELTA",
    "DESCRIBE HISTORY {t}": "DESCRIBE HISTORY",
    "desc detail {t}": "DESCRIBE DETAIL",
    "CREATE TABLE copy SHALLOW CLONE {t}": "CLONE",
    "CREATE TABLE copy CLONE {t}": "CLONE",
}
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

    naming: ClassVar[dict[str, str]] = NAMING_A_TABLE
    of_delta: ClassVar[dict[str, str]] = OF_DELTA

    def test_statements_are_refused_by_name(self, session: SparkSession, tmp_path: Path) -> None:
        path, warehouse = tmp_path / "t", Warehouse(tmp_path)
        session.range(3).write.format("delta").save(str(path))
        session.range(3).writeTo(warehouse.full("t")).create()
        for table, opened in ((f"delta.`{path}`", "forPath"), (warehouse.full("t"), "forName")):
            for statement, advice in self.naming.items():
                with pytest.raises(InvalidOperationError) as raised:
                    session.sql(statement.format(t=table))
                assert raised.value.error_class == "DELTA_OPERATION_NOT_ALLOWED", statement
                assert advice.replace("(", "") in raised.value.message.replace("(", ""), statement
                assert isinstance(raised.value.__cause__, PySparkException)
                assert ("DeltaTable.for" not in raised.value.message) or opened in raised.value.message
            for statement, name in self.of_delta.items():
                with pytest.raises(InvalidOperationError, match=f"the SQL statement {name}\\."):
                    session.sql(statement.format(t=table))
        assert [Table.open(str(path)).version, warehouse.snapshot().version] == [0, 0]

    def test_other_failures_and_successes_stay(self, session: SparkSession) -> None:
        for statement in OF_SPARK:
            with pytest.raises((AnalysisException, ParseException)):
                session.sql(statement).collect()
        assert session.sql("SELECT :a + :b AS c", args={"a": 1, "b": 2}).first() == (3,)
        assert session.sql("SELECT id FROM {t}", t=session.range(1)).first() == (0,)
        session.range(2).createOrReplaceTempView("history")
        assert session.sql("DESCRIBE history").count() == 1
        session.catalog.dropTempView("history")

    def test_streams_are_refused_when_they_are_made(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "t")
        session.range(3).write.format("delta").save(path)
        reads: tuple[Callable[[], object], ...] = (
            lambda: session.readStream.format("delta").load(path),
            lambda: session.readStream.load(path, format="DELTA"),
            lambda: session.readStream.table(f"delta.`{path}`"),
        )
        for read in reads:
            with pytest.raises(InvalidOperationError, match=r"spark\.read"):
                read()
        stream = session.readStream.format("rate").load().selectExpr("value AS id")
        writes: tuple[Callable[[], object], ...] = (
            lambda: stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).start(path),
            lambda: stream.writeStream.start(path, format="delta"),
            lambda: stream.writeStream.toTable(f"delta.`{path}`"),
            lambda: stream.writeStream.format("delta").toTable("a_table"),
        )
        for write in writes:
            with pytest.raises(InvalidOperationError, match="foreachBatch"):
                write()
        assert Table.open(path).version == 0
        assert not (tmp_path / "c").exists()

    def test_other_streams_stay(self, session: SparkSession, tmp_path: Path) -> None:
        source, target = str(tmp_path / "source"), str(tmp_path / "target")
        session.range(3).write.parquet(source)
        stream = session.readStream.schema("id LONG").format("parquet").load(source)
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.trigger(availableNow=True).start(target)
        assert query.awaitTermination(120)
        assert session.read.parquet(target).count() == 3


class TestClassic(Unsupported):
    naming: ClassVar[dict[str, str]] = {}  # Spark finds the tables
    of_delta: ClassVar[dict[str, str]] = {}  # and the parser knows the statements

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Unsupported):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


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
