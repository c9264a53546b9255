"""Queries in SQL over Delta tables by path, on classic sessions: every position, time travel, views, plans."""

from __future__ import annotations

import gc
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import DeltaTable
from pyspark_delta.errors import InvalidOptionError, TableNotFoundError, TimestampOutOfRangeError, VersionNotFoundError
from pyspark_delta.spark.session.enable import disable
from pyspark_delta.table import Table


@pytest.fixture(scope="module")
def path(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of two versions, partitioned by `k`: ids 0 to 3, then 0 to 5 with one deletion vector."""
    path = str(tmp_path_factory.mktemp("sql") / "a table, ü.v1")
    frame = delta_spark.range(4).selectExpr("id", "id % 2 AS k").coalesce(1)
    frame.write.format("delta").partitionBy("k").option("delta.enableDeletionVectors", True).save(path)
    more = delta_spark.range(4, 7).selectExpr("id", "id % 2 AS k").coalesce(1)
    more.write.format("delta").mode("append").save(path)
    DeltaTable.forPath(delta_spark, path).delete("id = 6")
    return path


@pytest.fixture
def name(path: str) -> str:
    return f"delta.`{path}`"


def values(frame: DataFrame) -> list[object]:
    """The values of the first column, in order."""
    return sorted(row[0] for row in frame.collect())


@pytest.mark.smoke
def test_a_path_is_a_table_in_every_position(delta_spark: SparkSession, name: str) -> None:
    sql = delta_spark.sql
    assert values(sql(f"SELECT id FROM {name} WHERE k = 1")) == [1, 3, 5]
    assert values(sql(f"WITH a AS (SELECT * FROM {name}) SELECT a.id FROM a JOIN {name} b ON a.id = b.id + 4")) == [
        4,
        5,
    ]
    assert values(sql(f"SELECT id FROM range(9) WHERE id IN (SELECT id + 3 FROM {name})")) == [3, 4, 5, 6, 7, 8]
    assert values(sql(f"SELECT (SELECT max(id) FROM {name})")) == [5]
    assert values(sql(f"SELECT l.id FROM range(2) r, LATERAL (SELECT id FROM {name} WHERE k = r.id AND id > 3) l")) == [
        4,
        5,
    ]
    assert sql(f"SELECT * FROM {name} PIVOT (count(id) FOR k IN (0, 1))").first() == (3, 3)
    assert sql(f"TABLE {name}").count() == 6
    assert values(DataFrame(delta_spark._jsparkSession.table(name), delta_spark)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.since("4.1")
@pytest.mark.smoke
def test_a_path_is_a_table_in_a_script(delta_spark: SparkSession, name: str) -> None:
    sql = delta_spark.sql
    assert values(sql(f"EXECUTE IMMEDIATE 'SELECT id FROM {name} WHERE id = ?' USING 2")) == [2]
    script = f"BEGIN DECLARE n BIGINT; SET n = (SELECT count(*) FROM {name}); SELECT n; END"
    assert values(sql(script)) == [6]


@pytest.mark.since("4.2")
@pytest.mark.smoke
def test_a_path_is_a_parameter(delta_spark: SparkSession, name: str) -> None:
    found = delta_spark.sql("SELECT id FROM IDENTIFIER(:t) WHERE id > :x", args={"t": name, "x": 4})
    assert values(found) == [5]


@pytest.mark.smoke
def test_time_travel(delta_spark: SparkSession, path: str, name: str) -> None:
    first = Table.open(path, version=0).detail()["lastModified"].strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    compact = re.sub(r"\D", "", first)
    for table in (
        f"{name} VERSION AS OF 0",
        f"{name} FOR SYSTEM_VERSION AS OF '0'",
        f"delta.`{path}@v0`",
        f"{name} TIMESTAMP AS OF '{first}'",
        f"{name} FOR SYSTEM_TIME AS OF timestamp'{first}'",
        f"delta.`{path}@{compact}`",
        f"delta.path.`{path}` TIMESTAMP AS OF timestamp'{first}' + INTERVAL 0 SECONDS",
    ):
        assert values(delta_spark.sql(f"SELECT id FROM {table}")) == [0, 1, 2, 3], table
    both = f"SELECT n.id FROM {name} n LEFT ANTI JOIN {name} VERSION AS OF 0 o ON n.id = o.id"
    assert values(delta_spark.sql(both)) == [4, 5]


@pytest.mark.since("4.2")
def test_time_travel_to_an_expression(delta_spark: SparkSession, path: str, name: str) -> None:
    """Spark resolves the time after it has looked for files of the name."""
    first = Table.open(path, version=0).detail()["lastModified"]
    second = Table.open(path, version=1).detail()["lastModified"]
    delta_spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW times AS SELECT timestamp'{first}' AS first")
    seconds = int((second - first).total_seconds() * 1_000_000)
    ago = f"timestamp'{second}' - make_dt_interval(0, 0, 0, {seconds} / 1000000)"
    for query, found in (
        (f"SELECT id FROM {name} TIMESTAMP AS OF {ago}", [0, 1, 2, 3]),
        (f"SELECT id FROM {name} timestamp /* */ as of least(now(), {ago})", [0, 1, 2, 3]),
        (f"SELECT delta.`{path}`.id FROM DELTA.`{path}` FOR SYSTEM_TIME AS OF {ago}", [0, 1, 2, 3]),
        (f"SELECT id FROM {name} TIMESTAMP AS OF (SELECT first FROM times)", [0, 1, 2, 3]),
        (f"SELECT n.id FROM {name} n LEFT ANTI JOIN {name} TIMESTAMP AS OF {ago} o ON n.id = o.id", [4, 5]),
        (f"SELECT id FROM range(9) WHERE id IN (SELECT id + 3 FROM {name} TIMESTAMP AS OF {ago})", [3, 4, 5, 6]),
        (f"WITH old AS (SELECT id FROM {name} TIMESTAMP AS OF {ago}) SELECT max(id) FROM old", [3]),
        (f"SELECT id FROM Delta.`{path}` WHERE id > (SELECT max(id) FROM `DELTA`.`{path}@v0`)", [4, 5]),
        (f"BEGIN SELECT id FROM {name} TIMESTAMP AS OF {ago}; END", [0, 1, 2, 3]),
    ):
        assert values(delta_spark.sql(query)) == found, query
    for time in ("VERSION AS OF 0", f"TIMESTAMP AS OF {ago}"):
        query = f"SELECT id FROM IDENTIFIER(:kind || '.`' || :path || '`') {time}"
        assert values(delta_spark.sql(query, args={"kind": "delta", "path": path})) == [0, 1, 2, 3], query
    for kind in ("TEMPORARY VIEW", "VIEW"):
        delta_spark.sql(f"CREATE {kind} old_rows AS SELECT id FROM DELTA.`{path}` TIMESTAMP AS OF {ago}")
        try:
            assert values(delta_spark.sql("SELECT * FROM old_rows")) == [0, 1, 2, 3]
        finally:
            delta_spark.sql("DROP VIEW old_rows")
    delta_spark.catalog.dropTempView("times")
    with pytest.raises(TimestampOutOfRangeError):
        delta_spark.sql(f"SELECT * FROM {name} TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY")


def test_what_does_not_exist_is_an_error_of_this_package(delta_spark: SparkSession, path: str, name: str) -> None:
    errors: tuple[tuple[str, type[Exception]], ...] = (
        (f"delta.`{path}/nothing`", TableNotFoundError),
        (f"{name} VERSION AS OF 9", VersionNotFoundError),
        (f"{name} VERSION AS OF 'x'", InvalidOptionError),
        (f"{name} TIMESTAMP AS OF '2000-01-01'", TimestampOutOfRangeError),
    )
    for table, error in errors:
        with pytest.raises(error):
            delta_spark.sql(f"SELECT * FROM {table}")
    with pytest.raises(AnalysisException, match=r"`idd` cannot be resolved.*`id`"):
        delta_spark.sql(f"SELECT idd FROM {name}")


@pytest.mark.since("4.2")
def test_hidden_columns_and_qualified_columns(delta_spark: SparkSession, path: str, name: str) -> None:
    row = delta_spark.sql(f"SELECT _metadata.row_index, delta.`{path}`.id FROM {name} WHERE id = 5").first()
    assert row is not None
    assert row["id"] == 5
    assert delta_spark.sql(f"SELECT _metadata.file_name FROM {name} VERSION AS OF 0 WHERE id = 1").count() == 1


def test_views_see_later_commits(delta_spark: SparkSession, tmp_path: Path) -> None:
    path, other = str(tmp_path / "t"), delta_spark.newSession()
    delta_spark.range(1).write.format("delta").save(path)
    delta_spark.sql(f"CREATE VIEW permanent_of_path AS SELECT id AS n FROM delta.`{path}`")
    delta_spark.sql(f"CREATE TEMPORARY VIEW temporary_of_path AS SELECT id AS n FROM delta.`{path}`")
    try:
        delta_spark.range(1, 3).write.format("delta").mode("append").save(path)
        assert values(delta_spark.sql("SELECT n FROM permanent_of_path")) == [0, 1, 2]
        assert values(other.sql("SELECT n FROM permanent_of_path")) == [0, 1, 2]
        assert values(delta_spark.sql("SELECT n FROM permanent_of_path")) == [0, 1, 2]
        assert values(delta_spark.sql("SELECT n FROM temporary_of_path")) == [0, 1, 2]
    finally:
        disable(other)
        delta_spark.sql("DROP VIEW permanent_of_path")
        delta_spark.sql("DROP VIEW temporary_of_path")


def test_plans_are_those_of_frames(delta_spark: SparkSession, path: str, name: str) -> None:
    """Partition filters, data filters, columns, and pruning by the other side of a join, as for `spark.table`."""
    delta_spark.createDataFrame([(1, 2)], "k long, x long").createOrReplaceTempView("dimension")
    query = "SELECT t.id FROM {} t JOIN dimension d ON t.k = d.k WHERE t.id > 1 AND d.x = 2"
    delta_spark.table(name).createOrReplaceTempView("frame")
    ours, theirs = (executed_plan(delta_spark, query.format(table)) for table in (name, "frame"))
    assert ours == theirs
    assert "dynamicpruning" in ours
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,1)]" in ours
    delta_spark.catalog.dropTempView("frame")
    delta_spark.catalog.dropTempView("dimension")


def executed_plan(spark: SparkSession, query: str) -> str:
    """The physical plan of a query, without the numbers of expressions and proxies."""
    plan = spark._jsparkSession.sql(query).queryExecution().executedPlan().toString()
    return re.sub(r"#\d+L?|\$Proxy\d+|plan_id=\d+|\[id=#?\d*\]", "", plan)


def test_statements_leave_no_proxies(delta_spark: SparkSession, path: str, name: str, tmp_path: Path) -> None:
    """Py4j keeps Python objects for as long as the JVM does: what a statement made is collected afterwards."""
    pool = delta_spark.sparkContext._gateway.gateway_property.pool

    def run() -> None:
        delta_spark.sql(f"CREATE OR REPLACE TABLE delta.`{tmp_path}/t` USING delta AS SELECT 1 AS a FROM {name}")
        delta_spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF 0").collect()

    def size() -> int:
        gc.collect()
        delta_spark._jvm.System.gc()  # type: ignore[union-attr]
        return len(pool)

    run()
    before = size()
    for _ in range(5):
        run()
    assert any(size() <= before + 3 for _ in range(50))  # the JVM tells Python in a thread of its own


def test_threads_query_at_once(delta_spark: SparkSession, name: str) -> None:
    def count(number: int) -> int:
        query = " UNION ALL ".join([f"SELECT id FROM {name} WHERE id >= {number}"] * 3)
        return delta_spark.sql(query).count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(6))) == [18, 15, 12, 9, 6, 3]
    with pytest.raises(TableNotFoundError), ThreadPoolExecutor(1) as pool:
        pool.submit(delta_spark.sql, "SELECT * FROM delta.`/nothing/here`").result()


def test_a_batch_of_a_stream_has_sql(delta_spark: SparkSession, name: str, tmp_path: Path) -> None:
    found: list[object] = []
    delta_spark.range(3).write.parquet(str(tmp_path / "source"))

    def use(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        found.extend(values(batch.sparkSession.sql(f"SELECT b.id FROM batch b JOIN {name} t ON b.id = t.id")))

    stream = delta_spark.readStream.schema("id LONG").format("parquet").load(str(tmp_path / "source"))
    query = stream.writeStream.foreachBatch(use).option("checkpointLocation", str(tmp_path / "c"))
    assert query.trigger(availableNow=True).start().awaitTermination(120)
    assert found == [0, 1, 2]


def test_a_schema_named_delta_keeps_its_tables(delta_spark: SparkSession, tmp_path: Path) -> None:
    delta_spark.sql("CREATE SCHEMA spark_catalog.delta")
    try:
        delta_spark.sql("CREATE TABLE spark_catalog.delta.t USING parquet AS SELECT 5 AS a")
        assert values(delta_spark.sql("SELECT a FROM delta.t")) == [5]
    finally:
        delta_spark.sql("DROP SCHEMA spark_catalog.delta CASCADE")
