"""Texts of char(n) columns in sessions: padded in reads, writes and comparisons, as in tables of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from tests.char_tables import DECLARED, KINDS, char_table

from pyspark_delta import DeltaTable
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.spark.engine.write.save import save

ROWS = [(1, "x  ", "x    "), (2, "yy ", "yy   "), (3, None, None)]


@pytest.fixture
def own_session(delta_spark: SparkSession) -> SparkSession:
    """A session whose settings the test may change."""
    return delta_spark.newSession()


def content(session: SparkSession, path: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in session.read.format("delta").load(str(path)).select("id", "c", "d").collect())


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_padded_in_reads_and_comparisons(delta_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    char_table(tmp_path / "t", kind)
    frame = delta_spark.read.format("delta").load(str(tmp_path / "t"))
    assert content(delta_spark, tmp_path / "t") == ROWS
    found = {
        text: sorted(row.id for row in frame.where(text).collect())
        for text in ("c = 'x'", "c = 'x   '", "c IN ('x', 'yy ')", "c > 'x'", "c = d", "s.c = 'x'", "c LIKE 'x'")
    }
    assert found == dict(zip(found, ([1], [1], [1, 2], [2], [1, 2], [1], []), strict=True))
    assert [row.id for row in delta_spark.sql(f"SELECT id FROM delta.`{tmp_path}/t` WHERE c = 'x'").collect()] == [1]


def test_settings_of_spark_turn_padding_off(own_session: SparkSession, tmp_path: Path) -> None:
    char_table(tmp_path / "t")
    own_session.conf.set("spark.sql.readSideCharPadding", "false")
    assert content(own_session, tmp_path / "t")[0] == (1, "x", "x")
    assert own_session.read.format("delta").load(str(tmp_path / "t")).where("c = 'x '").count() == 1
    own_session.conf.set("spark.sql.readSideCharPadding", "true")
    own_session.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    assert content(own_session, tmp_path / "t")[0] == (1, "x", "x")


@pytest.mark.parametrize("kind", KINDS)
def test_statements_find_the_rows_that_queries_find(delta_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    char_table(tmp_path / "t", kind, **{"delta.constraints.known": "c IS NULL OR c IN ('x', 'yy', 'new')"})
    table = DeltaTable.forPath(delta_spark, str(tmp_path / "t"))
    assert table.update(F.col("c") == "x", {"d": F.lit("n")}).collect() == [(1,)]
    assert table.update("c = 'yy' AND d = 'yy'", {"c": "'new'"}).collect() == [(1,)]
    source = delta_spark.read.format("delta").load(str(tmp_path / "t")).alias("s")
    merge = table.alias("t").merge(source, "t.c = s.c AND s.c = 'new'")
    assert merge.whenMatchedUpdate(set={"d": "s.c"}).execute().collect() == [(1, 1, 0, 0)]
    assert table.delete("c IS NULL").collect() == [(1,)]
    assert content(delta_spark, tmp_path / "t") == [(1, "x  ", "n    "), (2, "new", "new  ")]
    with pytest.raises(ConstraintViolationError, match="known"):
        table.update("c = 'x'", {"c": "'z'"})
    assert table.delete(F.col("c") == "x").collect() == [(1,)]


def test_new_rows_are_padded_before_they_are_checked(delta_spark: SparkSession, tmp_path: Path) -> None:
    table, path = f"delta.`{tmp_path}/t`", str(tmp_path / "t")
    columns = "id BIGINT, `c.c` CHAR(3), d STRING GENERATED ALWAYS AS (concat(`c.c`, '!'))"
    delta_spark.sql(f"CREATE TABLE {table} ({columns}) USING delta")
    delta_spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT known CHECK (`c.c` = 'x' AND length(`c.c`) = 3)")
    save(delta_spark.sql("SELECT 1L id, 'x' `c.c`"), path, "append")
    save(delta_spark.sql("SELECT 2L id, 'x' `c.c`, 'x  !' d"), path, "append")
    delta_spark.sql(f"INSERT INTO {table} REPLACE WHERE `c.c` = 'x' AND id = 2 SELECT 2, 'x', 'x  !'")
    stored = delta_spark.read.parquet(*map(str, (tmp_path / "t").glob("*.parquet"))).select("`c.c`", "d").distinct()
    assert stored.collect() == [("x  ", "x  !")]
    with pytest.raises(ConstraintViolationError, match="'d' is generated"):
        save(delta_spark.sql("SELECT 3L id, 'x' `c.c`, 'x!' d"), path, "append")


def test_copies_of_a_table_declare_the_same_types(delta_spark: SparkSession, tmp_path: Path) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    declared = "c CHAR(3), v VARCHAR(4), s STRUCT<a: CHAR(2)>"
    delta_spark.sql(f"CREATE TABLE delta.`{path}` ({declared}) USING delta")
    delta_spark.sql(f"CREATE TABLE delta.`{copy}` USING delta AS SELECT * FROM delta.`{path}`")
    types = [f.metadata[DECLARED] for f in delta_spark.read.format("delta").load(copy).schema]
    assert types == ["char(3)", "varchar(4)", "struct<a:char(2)>"]


def test_streams_pad_and_compare(delta_spark: SparkSession, tmp_path: Path) -> None:
    char_table(tmp_path / "t")
    found: list[tuple[object, ...]] = []
    stream = delta_spark.readStream.format("delta").load(str(tmp_path / "t")).where("c = 'x'").select("id", "c")
    writer = stream.writeStream.foreachBatch(lambda batch, _: found.extend(map(tuple, batch.collect())))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert found == [(1, "x  ")]


def test_connect_reads_and_writes_padded_texts(plain_connect: SparkSession, tmp_path: Path) -> None:
    char_table(tmp_path / "t")
    table = DeltaTable.forPath(plain_connect, str(tmp_path / "t"))
    assert [tuple(row) for row in table.toDF().where("c = 'x'").select("id", "c").collect()] == [(1, "x  ")]
    table.update(F.col("c") == "x", {"d": F.lit("n")})
    save(plain_connect.sql("SELECT 4L id, 'v' c"), str(tmp_path / "t"), "append")
    found = sorted(tuple(row) for row in table.toDF().select("id", "c", "d").collect())
    assert found == [(1, "x  ", "n    "), *ROWS[1:], (4, "v  ", None)]
