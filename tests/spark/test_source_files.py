"""Sources of merges that are Parquet files: read without Spark, they have the rows that Spark reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from pyspark_delta import DeltaTable, Table
from pyspark_delta.engines.cost import CostModel
from pyspark_delta.errors import DataFileError
from pyspark_delta.spark.conf.temporary import temporary_conf
from pyspark_delta.spark.engine.dml import merge_source
from pyspark_delta.spark.engine.dml.merge_source import collect, collected, source_files
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.engine.write.save import save

ROWS = """
    select id, cast(id as int) n, cast(id as smallint) small, cast(id as tinyint) tiny, id % 2 = 0 flag,
        case when id % 5 <> 0 then concat('v', id % 3) end v, cast(id * 1.25 as decimal(12, 2)) amount,
        cast(id as decimal(30, 4)) large, case id % 4 when 0 then double('NaN') when 1 then -0.0D else id / 3 end d,
        cast(id / 7 as float) f, date_add(date'1500-01-01', cast(id * 9999 as int)) day,
        cast(cast(id as string) as binary) bytes,
        timestamp_seconds(id * 1000000000 - 15000000000) + interval 1 microsecond at,
        timestamp_ntz'1000-01-01 00:00:00' + make_interval(0, cast(id as int)) local,
        named_struct('x', nullif(id, 3)) st
    from range(0, 60, 1, 3)
"""
Frame = Callable[[SparkSession, Path], DataFrame]


def found_in(frame: DataFrame, names: list[str]) -> pa.Table | None:
    """What is read of a frame without Spark."""
    schema = frame_schema(frame.select(*names))
    plan = frame._jdf.queryExecution().optimizedPlan()  # type: ignore[operator]
    files = source_files(frame.sparkSession, plan, schema, 16)
    return None if files is None else files.read()


def lines(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
@pytest.mark.parametrize("calendar", ["CORRECTED", "LEGACY"])
def test_rows_are_those_that_spark_reads(
    delta_spark: SparkSession, tmp_path: Path, timestamps: str, calendar: str
) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": timestamps,
        "spark.sql.parquet.datetimeRebaseModeInWrite": calendar,
        "spark.sql.parquet.int96RebaseModeInWrite": calendar,
    }
    for name, value in settings.items():
        delta_spark.conf.set(name, value)
    try:
        delta_spark.sql(ROWS).write.parquet(str(tmp_path / "a b%20c"))
    finally:
        for name in settings:
            delta_spark.conf.unset(name)
    frame = delta_spark.read.parquet(str(tmp_path / "a b%20c"))
    names = [name for name in frame.columns if name != "st"]
    found = found_in(frame, names)
    assert found is not None
    assert found.num_rows == 60
    expected = collect(frame, frame_schema(frame.select(*names))).cast(found.schema)
    assert lines(found) == lines(expected)
    assert found_in(frame.alias("s").select("v", "id"), ["id"]) == found.select(["id"])


def test_files_of_other_writers_are_read_as_spark_reads_them(delta_spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([0, -(10**15), None], pa.int64())
    written = pa.table(
        {
            "u": pa.array([1, 2**32 - 1, None], pa.uint32()),
            "l": pa.array(["a", None, "c"], pa.large_string()),
            "k": pa.array(["a", "b", "a"]).dictionary_encode(),
            "at": times.cast(pa.timestamp("us", "UTC")),
            "local": times.cast(pa.timestamp("us")),
            "b": pa.array([b"ab", b"cd", None], pa.binary(2)),
        }
    )
    pq.write_table(written, tmp_path / "x.parquet", row_group_size=2)
    frame = delta_spark.read.parquet(str(tmp_path))
    found = found_in(frame, frame.columns)
    assert found is not None
    assert lines(found) == lines(collect(frame, frame_schema(frame)).cast(found.schema))


def saved(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    spark.sql("select id, cast(id as int) n, 'x' v from range(10)").write.mode("append").parquet(str(path), **options)
    return spark.read.parquet(str(path))


def widened(spark: SparkSession, path: Path) -> DataFrame:
    saved(spark, path)
    return spark.read.schema("id bigint, n bigint, v string").parquet(str(path))


def in_another_format(spark: SparkSession, path: Path) -> DataFrame:
    saved(spark, path / "parquet").write.orc(str(path / "orc"))
    return spark.read.orc(str(path / "orc"))


def with_an_option(spark: SparkSession, path: Path) -> DataFrame:
    saved(spark, path)
    return spark.read.parquet(str(path), datetimeRebaseMode="LEGACY")


def many(spark: SparkSession, path: Path) -> DataFrame:
    for number in range(17):
        saved(spark, path / f"source-{number}")
    return spark.read.parquet(*(str(folder) for folder in path.iterdir()))


def lacking(spark: SparkSession, path: Path) -> DataFrame:
    saved(spark, path)
    spark.range(3).write.mode("append").parquet(str(path))
    return spark.read.schema("id bigint, n int, v string").parquet(str(path))


def with_a_setting(name: str, value: str) -> Frame:
    def frame(spark: SparkSession, path: Path) -> DataFrame:
        found = saved(spark, path)
        spark.conf.set(name, value)
        return found

    return frame


def of_spark_2(spark: SparkSession, path: Path) -> DataFrame:
    found = saved(spark, path)
    for file in path.glob("*.parquet"):
        rows = pq.read_table(file)
        version = {b"org.apache.spark.version": b"2.4.8"}
        pq.write_table(rows.replace_schema_metadata({**rows.schema.metadata, **version}), file)
        file.with_name(f".{file.name}.crc").unlink()
    return found


def damaged(spark: SparkSession, path: Path) -> DataFrame:
    found = saved(spark, path)
    for file in path.glob("*.parquet"):
        file.write_bytes(b"PAR1")
    return found


def a_table(**options: Any) -> Frame:
    def frame(spark: SparkSession, path: Path) -> DataFrame:
        save(spark.sql("select id, cast(id as int) n, 'x' v from range(0, 10, 1, 2)"), str(path), **options)
        return spark.read.format("delta").load(str(path))

    return frame


def a_table_with_vectors(spark: SparkSession, path: Path) -> DataFrame:
    found = a_table(options={"delta.enableDeletionVectors": "true"})(spark, path)
    DeltaTable.forPath(spark, str(path)).delete("id = 3")
    return found.sparkSession.read.format("delta").load(str(path))


def a_table_with_more_columns(spark: SparkSession, path: Path) -> DataFrame:
    save(spark.range(3).toDF("id"), str(path))
    save(
        spark.sql("select id, cast(id as int) n, 'x' v from range(9)"),
        str(path),
        "append",
        options={"mergeSchema": "true"},
    )
    return spark.read.format("delta").load(str(path))


def of_a_database(spark: SparkSession, path: Path) -> DataFrame:
    rows = "(select 1 as id, 2 as n, 'x' as v from sysibm.sysdummy1) t"
    return spark.read.jdbc(f"jdbc:derby:memory:{path.parent.name};create=true", rows)


def in_a_partition(spark: SparkSession, path: Path) -> DataFrame:
    saved(spark, path / "v=y")  # which Spark takes for the value, rather than that of the file
    return spark.read.parquet(str(path))


OTHERS: dict[str, Frame] = {
    "partitions": lambda spark, path: saved(spark, path, partitionBy="v"),
    "a partition": in_a_partition,
    "a table with vectors": a_table_with_vectors,
    "a table in partitions": a_table(partition_by=["v"]),
    "a table with other names": a_table(options={"delta.columnMapping.mode": "name"}),
    "a table with row ids": a_table(options={"delta.enableRowTracking": "true"}),
    "a table with more columns": a_table_with_more_columns,
    "a database": of_a_database,
    "a condition": lambda spark, path: saved(spark, path).where("id > 3"),
    "a value": lambda spark, path: saved(spark, path).withColumn("n", F.col("n") + 1),
    "another name": lambda spark, path: saved(spark, path).select("id", F.col("v").alias("n"), F.col("n").alias("v")),
    "a limit": lambda spark, path: saved(spark, path).limit(5),
    "a cached frame": lambda spark, path: saved(spark, path).cache(),
    "no files": lambda spark, path: spark.range(10).selectExpr("id", "cast(id as int) n", "'x' v"),
    "many files": many,
    "rows in other partitions": lambda spark, path: saved(spark, path).repartition(2),
    "another format": in_another_format,
    "a wider type": widened,
    "no such column": lacking,
    "an option": with_an_option,
    "rebased dates": with_a_setting("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
    "rebased times": with_a_setting("spark.sql.parquet.int96RebaseModeInRead", "EXCEPTION"),
    "times of another zone": with_a_setting("spark.sql.parquet.int96TimestampConversion", "true"),
    "columns by id": with_a_setting("spark.sql.parquet.fieldId.read.enabled", "true"),
    "a file of Spark 2": of_spark_2,
    "a damaged file": damaged,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_sources_are_left_to_spark(
    delta_spark: SparkSession, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    for name in (
        "spark.sql.parquet.datetimeRebaseModeInRead",
        "spark.sql.parquet.int96RebaseModeInRead",
        "spark.sql.parquet.int96TimestampConversion",
        "spark.sql.parquet.fieldId.read.enabled",
    ):
        request.addfinalizer(lambda name=name: delta_spark.conf.unset(name))
    frame = OTHERS[kind](delta_spark, tmp_path / "source")
    try:
        assert found_in(frame, ["id", "n", "v"]) is None
    finally:
        frame.unpersist()


def test_other_sources_have_files_that_are_read(delta_spark: SparkSession, tmp_path: Path) -> None:
    found = found_in(saved(delta_spark, tmp_path), ["id", "n", "v"])
    assert found is not None
    assert found.num_rows == 10


def test_files_of_a_table_are_read_at_its_version(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a b%20c"
    options = {"delta.enableDeletionVectors": "true"}
    frame = a_table(options=options)(delta_spark, path)
    DeltaTable.forPath(delta_spark, str(path)).delete("id = 3")
    found = found_in(frame, ["id", "v"])
    assert found is not None
    assert sorted(found["id"].to_pylist()) == list(range(10))
    assert found_in(delta_spark.read.format("delta").load(str(path)), ["id", "v"]) is None


def test_damaged_pages_are_told_by_spark(delta_spark: SparkSession, tmp_path: Path) -> None:
    frame = saved(delta_spark, tmp_path)
    for file in tmp_path.glob("*.parquet"):
        content = file.read_bytes()
        file.write_bytes(content[:4] + bytes(40) + content[44:])
        file.with_name(f".{file.name}.crc").unlink()
    with pytest.raises(DataFileError):
        found_in(frame, ["id"])
    with pytest.raises(Py4JJavaError, match=r"FAILED_READ_FILE|Encountered error while reading file"):
        collected(frame, frame_schema(frame.select("id")), CostModel(source_bytes=1 << 20, source_rows=100))


def test_parts_of_structs_are_left_to_spark(delta_spark: SparkSession, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for kind in ("datetime", "int96"):  # PySpark 3.5 refuses dates of the Middle Ages
            stack.enter_context(temporary_conf(delta_spark, f"spark.sql.parquet.{kind}RebaseModeInWrite", "CORRECTED"))
        delta_spark.sql(ROWS).write.parquet(str(tmp_path / "source"))
    frame = delta_spark.read.parquet(str(tmp_path / "source"))
    assert found_in(frame, ["id", "st"]) is None
    assert found_in(frame, ["id"]) is not None


def test_a_merge_of_files_runs_no_job_for_them(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_source, "collect", None)
    save(delta_spark.sql("select id, 0 n, 'old' v from range(0, 20, 1, 4)"), str(tmp_path / "table"))
    source = saved(delta_spark, tmp_path / "source").alias("s")
    table = DeltaTable.forPath(delta_spark, str(tmp_path / "table")).alias("t")
    merge = table.merge(source, "t.id = s.id and t.v <> s.v").whenMatchedUpdateAll()
    assert merge.execute().collect() == [(10, 10, 0, 0)]
    [newest] = Table.open(str(tmp_path / "table")).history(1)
    assert newest["operationMetrics"]["numSourceRows"] == "10"
    rows = Table.open(str(tmp_path / "table")).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["n"], row["v"]) for row in rows) == [
        (i, i if i < 10 else 0, "x" if i < 10 else "old") for i in range(20)
    ]


def test_a_source_of_more_rows_is_not_read(delta_spark: SparkSession, tmp_path: Path) -> None:
    frame = saved(delta_spark, tmp_path)
    columns = frame_schema(frame)
    assert collected(frame, columns, CostModel(source_bytes=1 << 20, source_rows=9)) is None
    found = collected(frame, columns, CostModel(source_bytes=1 << 20, source_rows=10))
    assert found is not None
    assert found.num_rows == 10
    assert collected(frame, columns, CostModel(source_bytes=10, source_rows=10)) is None
