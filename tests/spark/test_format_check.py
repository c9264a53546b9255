"""Writes in other file formats into the directory of a Delta table: refused, and the table stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.made_tables import DataFile, make_table

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.session.format_check import SETTING

Write = Callable[[DataFrame, str], object]

WRITES: dict[str, Write] = {
    "parquet append": lambda df, p: df.write.mode("append").parquet(p),
    "parquet overwrite": lambda df, p: df.write.parquet(p, mode="overwrite"),
    "orc": lambda df, p: df.write.orc(p, "overwrite"),
    "csv": lambda df, p: df.write.csv(p, mode="append"),
    "json": lambda df, p: df.write.json(p, mode="overwrite"),
    "xml": lambda df, p: df.write.mode("overwrite").xml(p, rowTag="r"),
    "text": lambda df, p: df.selectExpr("'a' value").write.mode("overwrite").text(p),
    "save": lambda df, p: df.write.format("parquet").mode("overwrite").save(p),
    "save with everything": lambda df, p: df.write.save(p, "PARQUET", "overwrite", "id"),
    "option": lambda df, p: df.write.format("json").mode("append").option("Path", p).save(),
    "default format": lambda df, p: df.write.mode("overwrite").save(p),
    "by its class": lambda df, p: df.write.mode("append").save(
        p, "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
    ),
    "uri": lambda df, p: df.write.mode("overwrite").parquet(f"file://{p}"),
    "partition": lambda df, p: df.write.mode("overwrite").parquet(f"{p}/id=1"),
    "log": lambda df, p: df.write.mode("overwrite").text(f"{p}/_delta_log"),
    "saveAsTable": lambda df, p: df.write.format("parquet").option("path", p).mode("overwrite").saveAsTable("foreign"),
    "saveAsTable, mode": lambda df, p: df.write.saveAsTable("foreign", "parquet", "append", path=p),
}
STATEMENTS = (
    "INSERT OVERWRITE DIRECTORY '{p}' USING parquet SELECT 1L",
    'insert /* all */ overwrite -- now\n local directory "{p}" USING json SELECT 1L',
    "INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '{p}') SELECT 1L",
    "INSERT OVERWRITE DIRECTORY USING parquet OPTIONS ('path' = r'{p}', compression 'none') SELECT 1L",
    "WITH a AS (SELECT 'x' id) INSERT OVERWRITE DIRECTORY '{p}/more' USING parquet SELECT * FROM a",
    "FROM (SELECT 1L id) INSERT OVERWRITE DIRECTORY '{p}' USING parquet SELECT *",
    "CREATE TABLE foreign USING parquet LOCATION '{p}'",
    "CREATE EXTERNAL TABLE IF NOT EXISTS foreign (location STRING COMMENT 'x') USING `csv` LOCATION '{p}/more'",
    "CREATE TABLE foreign (id BIGINT) USING json OPTIONS (path '{p}')",
    "CREATE TABLE foreign LOCATION '{p}' AS SELECT 1L id",
)
# The table `foreign` of Spark's catalog is made of the files of the Delta table.
INTO_TABLE: dict[str, Callable[[SparkSession], object]] = {
    "INSERT INTO": lambda s: s.sql("INSERT INTO foreign SELECT 7L"),
    "INSERT OVERWRITE": lambda s: s.sql("INSERT OVERWRITE TABLE default.`foreign` SELECT 7L"),
    "several": lambda s: s.sql(
        "FROM range(1) INSERT INTO other SELECT id INSERT INTO spark_catalog.default.foreign SELECT id"
    ),
    "insertInto": lambda s: s.range(1).write.insertInto("foreign"),
    "insertInto overwrite": lambda s: s.range(1).write.insertInto("foreign", overwrite=True),
    "saveAsTable": lambda s: s.range(1).write.mode("append").saveAsTable("foreign"),
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "a table"
    make_table(path, [DataFile(pa.table({"id": [1, 2]}))])
    return str(path)


def content(path: str) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in Path(path).rglob("*") if file.is_file()}


def check_refused(path: str, write: Callable[[], object]) -> None:
    before = content(path)
    with pytest.raises(InvalidOperationError, match="Delta table") as raised:
        write()
    assert raised.value.error_class == "DELTA_INVALID_FORMAT"
    assert content(path) == before


class Refused:
    """The tests; a session of each kind runs them all."""

    @pytest.mark.parametrize(
        "name", [pytest.param(n, marks=pytest.mark.since("4.0")) if n == "xml" else n for n in WRITES]
    )
    def test_frames(self, session: SparkSession, table: str, name: str) -> None:
        check_refused(table, lambda: WRITES[name](session.range(1), table))

    @pytest.mark.parametrize("statement", STATEMENTS)
    def test_insert_overwrite_directory(self, session: SparkSession, table: str, statement: str) -> None:
        check_refused(table, lambda: session.sql(statement.format(p=table)))

    def test_what_writes_nowhere_near_a_table_is_left_to_spark(
        self, session: SparkSession, table: str, tmp_path: Path
    ) -> None:
        before, elsewhere = content(table), str(tmp_path / "files")
        session.range(1).write.parquet(elsewhere)
        session.range(1).write.mode("append").parquet(elsewhere)
        session.sql(
            f"INSERT OVERWRITE DIRECTORY '{elsewhere}' USING parquet SELECT 'INSERT OVERWRITE DIRECTORY {table}'"
        )
        session.range(1).write.mode("ignore").parquet(table)
        with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
            session.range(1).write.parquet(table)
        session.sql(f"CREATE TABLE files USING parquet LOCATION '{elsewhere}'")
        session.sql("DROP TABLE files")
        session.range(1).write.format("noop").mode("overwrite").save()
        assert session.read.parquet(table).count() == 2  # as delta-spark, which does not check reads either
        assert content(table) == before

    def test_a_setting_turns_the_check_off(self, session: SparkSession, table: str) -> None:
        session.conf.set(SETTING, "false")
        try:
            session.range(1).write.mode("append").csv(table)
        finally:
            session.conf.unset(SETTING)
        assert list(Path(table).glob("*.csv"))


class TestClassic(Refused):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark

    @pytest.mark.parametrize("name", INTO_TABLE)
    def test_tables_and_views_of_the_files(self, session: SparkSession, table: str, tmp_path: Path, name: str) -> None:
        session.sql(f"CREATE TABLE other (id BIGINT) USING parquet LOCATION '{tmp_path / 'other'}'")
        session.conf.set(SETTING, "false")
        session.sql(f"CREATE TABLE foreign (id BIGINT) USING parquet LOCATION '{table}'")
        session.conf.unset(SETTING)
        try:
            check_refused(table, lambda: INTO_TABLE[name](session))
        finally:
            session.sql("DROP TABLE foreign")
        session.read.parquet(table).createOrReplaceTempView("foreign")
        try:
            if name in ("INSERT INTO", "insertInto", "insertInto overwrite"):
                check_refused(table, lambda: INTO_TABLE[name](session))
        finally:
            session.catalog.dropTempView("foreign")
            session.sql("INSERT INTO other VALUES (1)")
            session.sql("DROP TABLE other")

    def test_streams(self, session: SparkSession, table: str, tmp_path: Path) -> None:
        stream = session.readStream.format("rate").load().writeStream.option("checkpointLocation", str(tmp_path / "c"))
        check_refused(table, lambda: stream.format("parquet").start(table))
        check_refused(table, lambda: stream.format("json").option("path", f"{table}/more").start())

    def test_a_check_that_fails_stops_nobody(self, session: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(Exception, match=r"(?i)scheme|FileSystem"):
            session.range(1).write.mode("overwrite").parquet("unknown-scheme://host/files")

    def test_storage_that_only_the_jvm_knows(self, session: SparkSession, table: str) -> None:
        hadoop = session.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
        hadoop.set("fs.viewfs.mounttable.mounts.link./data", Path(table).parent.as_uri())
        there = "viewfs://mounts/data/" + Path(table).name
        try:
            check_refused(table, lambda: session.range(1).write.mode("overwrite").parquet(there))
            check_refused(table, lambda: session.range(1).write.mode("append").parquet(there + "/a/b"))
            session.range(1).write.mode("overwrite").parquet(there + "2")
        finally:
            hadoop.unset("fs.viewfs.mounttable.mounts.link./data")

    def test_no_job_runs_for_it(
        self, session: SparkSession, table: str, tmp_path: Path, count_jobs: Callable[[Callable[[], object]], int]
    ) -> None:
        assert count_jobs(lambda: check_refused(table, lambda: session.range(1).write.csv(table, "append"))) == 0
        assert count_jobs(lambda: session.range(1, numPartitions=1).write.csv(str(tmp_path / "f"), "append")) == 1


class TestConnect(Refused):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
