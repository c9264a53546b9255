"""Which rows can be changed on which PySpark, and how.

The first line of each docstring is a row of docs/spark-versions.md; `since` says where a test needs a newer PySpark.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.spark.versions.frames import deletion_vectors, load

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.spark.conf.temporary import temporary_conf

pytestmark = pytest.mark.versions


def test_time_zones(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: timestamps in sessions of another time zone"""
    place, before = str(tmp_path / "times"), delta_spark.conf.get("spark.sql.session.timeZone")
    rows = "(1, TIMESTAMP'2024-07-01 12:00:00', TIMESTAMP'2024-07-01 06:00:00')"
    try:
        for zone, hour in (("Europe/Berlin", 10), ("+05:00", 7)):
            delta_spark.conf.set("spark.sql.session.timeZone", zone)
            frame = delta_spark.sql(f"SELECT * FROM VALUES {rows} AS (id, at, p)")
            frame.write.format("delta").mode("overwrite").partitionBy("p").save(place)
            DeltaTable.forPath(delta_spark, place).update("p = '2024-07-01 06:00:00'", {"at": "at + INTERVAL 1 HOUR"})
            assert load(delta_spark, place).selectExpr("unix_seconds(at) AS s").head() == (
                1_719_792_000 + (hour + 1) * 3600,
            )
    finally:
        delta_spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_widened_types_in_merges(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: a merge with schema evolution that adds columns and widens types"""
    place = str(tmp_path / "t")
    delta_spark.sql("SELECT 1 AS id, 'a' AS s").write.format("delta").save(place)
    table = DeltaTable.forPath(delta_spark, place)
    table.alter().setProperties({"delta.enableTypeWidening": "true"})
    source = delta_spark.sql("SELECT * FROM VALUES (1L, 'b', true), (1099511627776L, 'c', false) AS (id, s, new)")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert sorted(map(tuple, table.toDF().collect())) == [(1, "b", True), (2**40, "c", False)]


def test_row_changes(delta_spark: SparkSession, path: str) -> None:
    """Row changes: `DeltaTable` deletes, updates and merges"""
    table = DeltaTable.forPath(delta_spark, path)
    table.delete(F.col("id") < 2)
    table.update(F.expr("id = 2"), {"s": F.lit("two"), "k": "9"})
    source = delta_spark.sql("SELECT id, 'merged' AS s FROM range(8, 12)")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate("t.id = 9", {"s": "s.s"}).whenMatchedDelete()
    merge.whenNotMatchedInsert(values={"id": "s.id", "k": F.lit(0), "s": F.col("s.s")}).execute()
    found = {row.id: (row.k, row.s) for row in table.toDF().collect()}
    assert sorted(found) == [2, 3, 4, 5, 6, 7, 9, 10, 11]
    assert (found[2], found[9], found[11]) == ((9, "two"), (0, "merged"), (0, "merged"))


def test_row_changes_as_spark_jobs(delta_spark: SparkSession, path: str) -> None:
    """Row changes: as Spark jobs, with functions that only Spark computes"""
    table = DeltaTable.forPath(delta_spark, path)
    lower = F.udf(lambda text: f"<{text}>")
    table.update(F.col("k") == 1, {"s": lower("s")})
    source = delta_spark.range(5, 15).withColumn("key", F.hash("id"))
    merge = table.alias("t").merge(source.alias("s"), "hash(t.id) = s.key AND t.id > 6")
    merge.whenMatchedUpdate(set={"s": "sha2(CAST(s.id AS STRING), 256)"}).whenNotMatchedInsert(
        values={"id": "s.id", "k": "7", "s": "uuid()"}
    ).execute()
    found = {(row.id, row.k): row.s for row in table.toDF().collect()}
    assert (found[1, 1], len(found[7, 1]), len(found)) == ("<1>", 64, 17)


def test_merges_with_schema_evolution(delta_spark: SparkSession, path: str) -> None:
    """Row changes: a merge with schema evolution through `DeltaTable`"""
    table = DeltaTable.forPath(delta_spark, path)
    source = delta_spark.sql("SELECT 4L AS id, 1 AS k, 'new' AS s, 7 AS more")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().execute()
    assert table.toDF().where("more = 7").select("id", "s").collect() == [Row(id=4, s="new")]


def test_ambiguous_merges(delta_spark: SparkSession, path: str) -> None:
    """Row changes: a merge in which several source rows match one row is refused"""
    table = DeltaTable.forPath(delta_spark, path)
    source = delta_spark.sql("SELECT * FROM VALUES (1L, 'a'), (1L, 'b') AS (id, s)")
    with pytest.raises(PySparkException, match="Several rows of the source match one row"):
        table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"s": "s.s"}).execute()
    assert table.history(1).head().version == 1


def test_row_changes_with_deletion_vectors(delta_spark: SparkSession, path: str) -> None:
    """Row changes: deletion vectors in updates and merges, and the purge that removes them"""
    table = DeltaTable.forPath(delta_spark, path)
    table.alter().setProperties({"delta.enableDeletionVectors": "true"})
    table.update("id = 4", {"s": "'four'"})
    source = delta_spark.sql("SELECT 7L AS id")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    assert deletion_vectors(path) == 1
    table.reorg().purge()
    assert deletion_vectors(path) == 0
    assert {row.id: row.s for row in table.toDF().where("k = 1").collect()} == {1: "1", 4: "four"}


def test_row_tracking(delta_spark: SparkSession, path: str) -> None:
    """Row changes: row ids stay when a row is changed, and when files are compacted"""
    table = DeltaTable.forPath(delta_spark, path)
    delta_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    row_ids = {row.id: row.row_id for row in load(delta_spark, path).select("id", "_metadata.row_id").collect()}
    assert len(set(row_ids.values())) == 10
    table.update("id = 4", {"s": "'four'"})
    table.optimize().executeZOrderBy("s")
    assert {row.id: row.row_id for row in load(delta_spark, path).select("id", "_metadata.row_id").collect()} == row_ids


def test_errors_of_spark(delta_spark: SparkSession, path: str) -> None:
    """Row changes: what Spark cannot parse or resolve is an error of Spark's own, and changes nothing"""
    table = DeltaTable.forPath(delta_spark, path)
    with pytest.raises(AnalysisException, match="no_such_function"):
        table.delete("no_such_function(id)")
    with pytest.raises(ParseException, match="end of input"):
        table.update("id +", {"s": "'x'"})
    with pytest.raises(PySparkException, match="'a text' does not fit into the column 'id'"):
        delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES ('a text', 1, 's')")
    assert Table.open(path).version == 1


def test_sessions_with_other_settings(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: with the settings of the session of the table, whichever session is the active one"""
    place = str(tmp_path / "t")
    delta_spark.sql("SELECT 1 AS id, 2147483647 AS n").write.format("delta").save(place)
    strict, lenient = delta_spark.newSession(), delta_spark.newSession()
    strict.conf.set("spark.sql.ansi.enabled", "true")
    lenient.conf.set("spark.sql.ansi.enabled", "false")
    lenient.sql("SELECT 1").collect()
    with pytest.raises(Exception, match=r"(?i)overflow"):
        DeltaTable.forPath(strict, place).update("id = 1", {"n": "n + 1"})
    strict.sql("SELECT 1").collect()
    DeltaTable.forPath(lenient, place).update("id = 1", {"n": "n + 1"})
    assert load(lenient, place).collect() == [(1, -(2**31))]


def test_strings(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: string literals as the session reads them, by its release and its settings"""
    condition = r"""s = 'it''s' OR s = 'a\d' OR "s" = 'ad'"""
    settings: list[tuple[str, ...]] = [
        (),
        ("parser.escapedStringLiterals",),
        ("legacy.consecutiveStringLiterals.enabled",),
        ("ansi.enabled", "ansi.doubleQuotedIdentifiers"),
    ]
    for number, names in enumerate(settings):
        place = str(tmp_path / str(number))
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(temporary_conf(delta_spark, f"spark.sql.{name}", "true"))
            rows = delta_spark.createDataFrame([("its",), ("it's",), ("a\\d",), ("ad",), ("x",)], "s string")
            rows.coalesce(1).write.format("delta").save(place)
            replaced = rows.where(condition).write.format("delta").mode("overwrite")
            replaced.option("replaceWhere", condition).save(place)
            assert texts(load(delta_spark, place)) == texts(rows)

            table = DeltaTable.forPath(delta_spark, place)
            merge = table.alias("t").merge(delta_spark.range(1).alias("u"), "u.id = 0 AND t.s < 'it''s'")
            merge.whenMatchedUpdate(set={"s": "concat(t.s, 'it''s')"}).execute()
            rows = rows.selectExpr("if(s < 'it''s', concat(s, 'it''s'), s) AS s")
            assert texts(table.toDF()) == texts(rows)
            table.delete(condition)
            assert texts(table.toDF()) == texts(rows.where(f"NOT ({condition})"))


def test_strings_of_tables(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Row changes: doubled quotes in the strings of defaults, generated columns and constraints are quotes"""
    place, computed = str(tmp_path / "t"), "concat(d, '''')"
    builder = DeltaTable.create(delta_spark).location(place).addColumn("id", "BIGINT")
    builder = builder.addColumn("d", "STRING", default="'it''s'").addColumn("g", "STRING", generatedAlwaysAs=computed)
    table = builder.execute()
    table.alter().addConstraint("quoted", "d <> 'n''t'")
    delta_spark.range(1).write.format("delta").mode("append").save(place)
    delta_spark.sql(f"INSERT INTO delta.`{place}` (id, d) VALUES (1, DEFAULT)")
    for number, engines in ((2, "true"), (3, "soundex(t.d) IS NOT NULL")):
        source = delta_spark.range(number, number + 1).alias("s")
        merge = table.alias("t").merge(source, f"t.id = s.id AND {engines}")
        merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()
        table.update(f"id = 1 AND {engines.replace('t.', '')}", {"id": "1"})
        with pytest.raises(ConstraintViolationError, match="quoted"):
            table.update(f"id = 1 AND {engines.replace('t.', '')}", {"d": '"n\'t"'})
    assert sorted(map(tuple, table.toDF().collect())) == [(n, "it's", "it's'") for n in range(4)]
    with pytest.raises(ConstraintViolationError, match="other"):
        table.alter().addConstraint("other", "d <> 'it''s'")


def texts(frame: DataFrame) -> list[str]:
    return sorted(row.s for row in frame.collect())
