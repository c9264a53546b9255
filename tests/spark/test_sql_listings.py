"""SHOW TABLE EXTENDED: what it says about Delta tables is what the log says, beside tables of other formats."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.managed import Warehouse

from pyspark_delta import Table
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import InvalidOperationError

FACTS = ("Catalog", "Database", "Table", "Type", "Comment", "Provider")


@pytest.fixture
def sql(delta_spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """The session, with a table `listed` partitioned by k, at `tmp_path / t`."""
    delta_spark.sql(
        f"CREATE TABLE listed (id INT, k INT) USING delta PARTITIONED BY (k) COMMENT 'about' LOCATION '{tmp_path}/t' "
        "TBLPROPERTIES ('my.url' = 'hidden')"
    )
    yield delta_spark
    delta_spark.sql("DROP TABLE IF EXISTS listed")


def information(spark: SparkSession, of: str) -> dict[str, str]:
    """What SHOW TABLE EXTENDED says about each table of a namespace or a pattern, by name."""
    return {row.tableName: row.information for row in spark.sql(f"SHOW TABLE EXTENDED {of}").collect()}


def facts(text: str) -> dict[str, str]:
    """The lines of an information before the columns."""
    lines = text.partition("Schema: root")[0].splitlines()
    return {key: value for key, _, value in (line.partition(": ") for line in lines)}


def described(spark: SparkSession, name: str) -> dict[str, str]:
    """The rows of DESCRIBE EXTENDED."""
    return {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()}


@pytest.mark.smoke
def test_information_is_what_describe_extended_shows(sql: SparkSession, tmp_path: Path) -> None:
    """After another program has changed the table, and Spark's copy of the definition is old."""
    other = Table.open(str(tmp_path / "t")).alter()
    other.add_column("more", "string")
    other.set_properties({"mine": "yes"})
    text, expected = information(sql, "LIKE 'listed'")["listed"], described(sql, "listed")
    found = facts(text)
    assert [found.get(fact) for fact in FACTS] == [expected.get(fact) for fact in FACTS]
    assert found["Table Properties"].replace(", ", ",") == expected["Table Properties"]
    assert "mine=yes" in found["Table Properties"]
    assert "hidden" not in text
    assert (found["Location"], found["Partition Columns"]) == (expected["Location"], "[`k`]")
    columns = ("id: integer", "k: integer", "more: string")
    assert text.endswith("Schema: root\n" + "".join(f" |-- {one} (nullable = true)\n" for one in columns) + "\n")


def test_other_rows_are_those_of_spark(sql: SparkSession, plain_spark: SparkSession) -> None:
    sql.sql("CREATE TABLE listed_parquet USING parquet AS SELECT 1 AS x")
    sql.sql("CREATE VIEW listed_view AS SELECT 1 AS x")
    sql.sql("CREATE TEMPORARY VIEW listed_temporary AS SELECT 1 AS x")
    try:
        found, expected = (one.sql("SHOW TABLE EXTENDED LIKE 'listed*'") for one in (sql, plain_spark))
        assert found.schema == expected.schema
        rows, others = found.collect(), expected.collect()
        assert rows[-1].tableName == "listed_temporary"  # the other SparkSession does not have it
        assert rows[-1].information.startswith("Table: listed_temporary\n")
        del rows[-1]
        assert [row[:3] for row in rows] == [row[:3] for row in others]
        assert [row.information == other.information for row, other in zip(rows, others, strict=True)] == [
            row.tableName != "listed" for row in others
        ]
        assert sql.sql("SHOW TABLE EXTENDED LIKE 'no_such*'").collect() == []
    finally:
        sql.sql("DROP TABLE listed_parquet")
        sql.sql("DROP VIEW listed_view")
        sql.catalog.dropTempView("listed_temporary")


def test_a_table_that_cannot_be_opened_hides_no_others(sql: SparkSession, tmp_path: Path) -> None:
    sql.sql("CREATE TABLE listed_too (x INT) USING delta")
    shutil.rmtree(tmp_path / "t")
    try:
        found = information(sql, "LIKE 'listed*'")
    finally:
        sql.sql("DROP TABLE listed_too")
    assert "delta.minReaderVersion" not in found["listed"]
    assert facts(found["listed"])["Provider"] == "delta"
    assert "delta.minReaderVersion" in found["listed_too"]


def test_a_transaction_sees_what_it_has_changed(sql: SparkSession) -> None:
    sql.sql("BEGIN TRANSACTION")
    try:
        sql.sql("ALTER TABLE listed ADD COLUMN more STRING")
        assert "more: string" in information(sql, "LIKE 'listed'")["listed"]
    finally:
        sql.sql("ROLLBACK")
    assert "more: string" not in information(sql, "LIKE 'listed'")["listed"]


@pytest.mark.since("4.0")  # Spark 3.5 refuses the statement for catalogs that are not its own
def test_tables_of_a_connected_catalog(sql: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w")
    try:
        sql.sql(f"CREATE TABLE {warehouse.full('t')} (id BIGINT, k INT) PARTITIONED BY (k) COMMENT 'about'")
        text = information(sql, f"IN {warehouse.name}.s LIKE '*'")["t"]
        found, expected = facts(text), described(sql, warehouse.full("t"))
        sql.sql(f"USE {warehouse.name}.s")
        assert information(sql, "LIKE 't|u'") == {"t": text}
    finally:
        sql.sql("USE spark_catalog.default")
        disconnect_catalog(warehouse.name)
    assert [found.get(fact) for fact in FACTS] == [expected.get(fact) for fact in FACTS]
    assert found["Table Properties"].replace(", ", ",") == expected["Table Properties"]
    assert found["Partition Columns"] == "[`k`]"


def test_partitions_of_delta_tables_are_refused(sql: SparkSession) -> None:
    for name in ("listed", "default LIKE 'listed'"):
        like = f"LIKE '{name}'" if name == "listed" else f"IN {name}"
        with pytest.raises(InvalidOperationError, match="Use SHOW PARTITIONS") as refused:
            sql.sql(f"SHOW TABLE EXTENDED {like} PARTITION (k = 1)")
        assert "spark_catalog.default.listed" in str(refused.value)
    for mode in ("", "EXTENDED"):
        with pytest.raises(InvalidOperationError, match="Use SHOW PARTITIONS, or DESCRIBE TABLE without PARTITION"):
            sql.sql(f"DESCRIBE {mode} listed PARTITION (k = 1)")
    with pytest.raises(AnalysisException, match="no_such"):
        sql.sql("SHOW TABLE EXTENDED LIKE 'no_such' PARTITION (k = 1)")
    sql.sql("CREATE TABLE listed_parquet (x INT, k INT) USING parquet PARTITIONED BY (k)")
    try:
        sql.sql("INSERT INTO listed_parquet VALUES (1, 2)")
        [row] = sql.sql("SHOW TABLE EXTENDED LIKE 'listed_parquet' PARTITION (k = 2)").collect()
    finally:
        sql.sql("DROP TABLE listed_parquet")
    assert row.information.startswith("Partition Values: [k=2]")


def test_the_owner_and_the_times_of_an_entry_stay(sql: SparkSession) -> None:
    """A change of the definition writes the entry again."""
    kept = ("Created Time", "Created By", "Owner", "Last Access")
    before = facts(information(sql, "LIKE 'listed'")["listed"])
    sql.sql("ALTER TABLE listed ADD COLUMN more STRING")
    after = facts(information(sql, "LIKE 'listed'")["listed"])
    assert [after.get(fact) for fact in kept] == [before.get(fact) for fact in kept]
    assert before["Created By"] == f"Spark {sql.version}"
