"""INSERT as SQL, in all its forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions import captured
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType
from tests.managed import Warehouse

from pyspark_delta import DeltaTable, IdentityGenerator
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import ConstraintViolationError, DeltaError, InvalidOperationError, SchemaMismatchError


@pytest.fixture
def sql(delta_spark: SparkSession) -> SparkSession:
    """The session."""
    return delta_spark


@pytest.fixture
def path(sql: SparkSession, tmp_path: Path) -> str:
    """A table with the columns id, s and k, partitioned by k, whose rows are (1, a, 10) and (2, b, 20)."""
    location = str(tmp_path / "t")
    frame = sql.createDataFrame([(1, "a", 10), (2, "b", 20)], "id int, s string, k int")
    frame.write.format("delta").partitionBy("k").save(location)
    return location


def insert(spark: SparkSession, statement: str, path: str) -> None:
    """Run a statement that has {t} for the table; it has no rows."""
    assert spark.sql(statement.format(t=f"delta.`{path}`")).collect() == []


def rows(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in order."""
    return sorted(map(tuple, DeltaTable.forPath(spark, path).toDF().collect()), key=str)


def test_an_insert_and_a_new_table_meet_no_exception_in_the_jvm(
    sql: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark sends eighty messages to find out what an exception is about, even if none is raised in the end."""
    met, convert = [], captured.convert_exception

    def remembered(exception: Any) -> Any:
        met.append(exception.toString())
        return convert(exception)

    insert(sql, "INSERT INTO {t} VALUES (3, 'c', 30)", path)
    monkeypatch.setattr(captured, "convert_exception", remembered)
    insert(sql, "INSERT INTO {t} VALUES (4, 'd', 30)", path)
    insert(sql, "CREATE TABLE {t} USING delta TBLPROPERTIES ('a' = 'b') AS SELECT 1 AS id", f"{path}-new")
    assert met == []


FIRST = [(1, "a", 10), (2, "b", 20)]
APPENDS = {
    "INSERT INTO {t} VALUES (3, 'c', 30), (4, DEFAULT, 30)": [(3, "c", 30), (4, None, 30)],
    "INSERT INTO TABLE {t} SELECT 5, 'e', 30": [(5, "e", 30)],
    "INSERT INTO {t} (k, id) VALUES (30, 6)": [(6, None, 30)],
    "INSERT INTO {t} BY NAME SELECT 30 AS k, 7 AS id": [(7, None, 30)],
    "INSERT INTO {t} PARTITION (k = 30) SELECT 8, 'h'": [(8, "h", 30)],
    "INSERT INTO {t} PARTITION (k = 30) (s) SELECT 'i'": [(None, "i", 30)],
    "INSERT INTO {t} PARTITION (k) SELECT 9, DEFAULT, 30": [(9, None, 30)],
    "WITH q AS (SELECT 60 AS i, 'q' AS s) INSERT INTO {t} SELECT *, 30 FROM q": [(60, "q", 30)],
    "FROM (SELECT 70 AS i) INSERT INTO {t} (id) SELECT i INSERT INTO {t} (id) SELECT i + 1": [
        (70, None, None),
        (71, None, None),
    ],
}


def test_appends(sql: SparkSession, path: str) -> None:
    expected: list[tuple[Any, ...]] = list(FIRST)
    for statement, added in APPENDS.items():
        insert(sql, statement, path)
        expected += added
        assert rows(sql, path) == sorted(expected, key=str), statement


OVERWRITES = {
    "INSERT OVERWRITE {t} PARTITION (k = 20) SELECT 3, 'c'": [(1, "a", 10), (3, "c", 20)],
    "INSERT OVERWRITE {t} PARTITION (k = null) SELECT 4, 'd'": [(1, "a", 10), (3, "c", 20), (4, "d", None)],
    "INSERT INTO {t} REPLACE WHERE k = 20 SELECT 5, 'e', 20": [(1, "a", 10), (4, "d", None), (5, "e", 20)],
    "INSERT OVERWRITE {t} (k, id) VALUES (1, 2)": [(2, None, 1)],
    "INSERT OVERWRITE {t} SELECT id + 1, 'self', k FROM of_test": [(3, "self", 1)],
}


@pytest.mark.smoke
def test_overwrites(sql: SparkSession, path: str) -> None:
    for statement, expected in OVERWRITES.items():
        sql.read.format("delta").load(path).createOrReplaceTempView("of_test")
        insert(sql, statement, path)
        assert rows(sql, path) == expected, statement


REPLACES = {
    "INSERT INTO {t} REPLACE USING (k) SELECT 6, 'f', 20": [(1, "a", 10), (6, "f", 20)],
    "INSERT INTO {t} AS o REPLACE ON o.id = n.id (SELECT 6 AS id, 'g' AS s, 20 AS k) AS n": [
        (1, "a", 10),
        (6, "g", 20),
    ],
}


@pytest.mark.since("4.2")
@pytest.mark.smoke
def test_replaces_rows_with_equal_keys_and_by_a_condition(sql: SparkSession, path: str) -> None:
    for statement, expected in REPLACES.items():
        insert(sql, statement, path)
        assert rows(sql, path) == expected, statement


def test_the_session_may_overwrite_only_partitions_with_new_rows(sql: SparkSession, path: str) -> None:
    sql.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        insert(sql, "INSERT OVERWRITE {t} VALUES (3, 'c', 20)", path)
        assert rows(sql, path) == [(1, "a", 10), (3, "c", 20)]
        insert(sql, "INSERT OVERWRITE {t} PARTITION (k = 20) SELECT 4, 'd' WHERE false", path)
        assert rows(sql, path) == [(1, "a", 10)]
    finally:
        sql.conf.unset("spark.sql.sources.partitionOverwriteMode")


@pytest.mark.since("4.2")
def test_schema_evolution_and_options(sql: SparkSession, path: str) -> None:
    insert(sql, "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 3 AS id, true AS more", path)
    assert (3, None, None, True) in rows(sql, path)
    insert(sql, "INSERT INTO {t} WITH ('userMetadata' = 'why') VALUES (4, 'd', 1, false)", path)
    assert DeltaTable.forPath(sql, path).history(1).collect()[0].userMetadata == "why"


@pytest.mark.since("4.2")
def test_schema_evolution_adds_members_of_structs(sql: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "nested")
    sql.sql("SELECT 1 AS id, named_struct('a', 1) AS st").write.format("delta").save(location)
    evolving = f"INSERT WITH SCHEMA EVOLUTION INTO delta.`{location}`"
    sql.sql(f"{evolving} SELECT 2, named_struct('a', 2, 'b', 'x')")
    sql.sql(f"{evolving} BY NAME SELECT named_struct('c', true, 'a', 3) AS st, 3 AS id")
    found = sql.sql(f"SELECT id, st.a, st.b, st.c FROM delta.`{location}` ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, 1, None, None), (2, 2, "x", None), (3, 3, None, True)]


def test_members_of_structs_by_position(sql: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "nested")
    frame = sql.sql("SELECT 1 AS id, named_struct('a', 1, 'b', 'x') AS st, array(named_struct('c', 1)) AS items")
    frame.write.format("delta").save(location)
    insert(sql, "INSERT INTO {t} VALUES (2, struct(2, 'y'), array(struct(7)))", location)
    insert(sql, "INSERT INTO {t} (id, st) SELECT 3, named_struct('b', 3, 'a', 'z')", location)
    sql.sql("SELECT 4, named_struct('b', 4, 'a', 'w'), array(named_struct('d', 8))").write.insertInto(
        f"delta.`{location}`"
    )
    assert rows(sql, location)[1:] == [
        (2, Row(a=2, b="y"), [Row(c=7)]),
        (3, Row(a=3, b="z"), None),
        (4, Row(a=4, b="w"), [Row(c=8)]),
    ]
    with pytest.raises(SchemaMismatchError, match="The struct 'st' has 1 members"):
        insert(sql, "INSERT INTO {t} (id, st) SELECT 5, named_struct('b', 'x')", location)
    insert(sql, "INSERT INTO {t} BY NAME SELECT 5 AS id, named_struct('b', 'x') AS st", location)
    assert rows(sql, location)[-1] == (5, Row(a=None, b="x"), None)


def test_c392_c393_c398_defaults_and_identity_columns(sql: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "computed")
    builder = DeltaTable.create(sql).location(location).property("delta.feature.allowColumnDefaults", "supported")
    builder.addColumn("n", LongType(), generatedByDefaultAs=IdentityGenerator()).addColumn("d", "int").execute()
    DeltaTable.forPath(sql, location).alter().setDefault("d", "40 + 2")
    insert(sql, "INSERT INTO {t} (d) VALUES (1), (DEFAULT)", location)
    insert(sql, "INSERT INTO {t} SELECT 100, DEFAULT", location)
    assert sorted(row[1] for row in rows(sql, location)) == [1, 42, 42]
    assert (100, 42) in rows(sql, location)


def test_views_and_names(sql: SparkSession, path: str, tmp_path: Path) -> None:
    frame = sql.read.format("delta").load(path)
    frame.createOrReplaceTempView("of_test")
    assert sql.sql("INSERT INTO of_test VALUES (3, 'c', 10)").collect() == []
    frame.where("id = 1").createOrReplaceTempView("part_of_test")
    with pytest.raises(InvalidOperationError, match="Name the table itself"):
        sql.sql("INSERT OVERWRITE part_of_test VALUES (4, 'd', 10)")
    assert rows(sql, path) == [*FIRST, (3, "c", 10)]
    warehouse = Warehouse(tmp_path)
    try:
        frame.write.saveAsTable(warehouse.full("t"))
        sql.sql(f"INSERT INTO {warehouse.full('t')} VALUES (9, 'i', 90)")
        assert sql.read.table(warehouse.full("t")).count() == 3
    finally:
        disconnect_catalog(warehouse.name)


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("INSERT INTO {t} VALUES (1, 'x')", SchemaMismatchError, "2 columns .* 3 columns"),
        ("INSERT INTO {t} (id, ID) VALUES (1, 2)", SchemaMismatchError, "twice"),
        ("INSERT INTO {t} (id, nope) VALUES (1, 2)", SchemaMismatchError, "no column 'nope'"),
        ("INSERT INTO {t} BY NAME SELECT 1 AS id, 2 AS nope", DeltaError, "nope"),
        ("INSERT INTO {t} PARTITION (id = 1) SELECT 'x', 2", InvalidOperationError, "not a partition column"),
        ("INSERT OVERWRITE {t} PARTITION (k = 1) IF NOT EXISTS SELECT 1, 'x'", InvalidOperationError, "MERGE"),
        ("INSERT INTO {t} REPLACE WHERE k = 20 SELECT 5, 'e', 30", ConstraintViolationError, "k"),
        ("INSERT INTO {t} VALUES ('text', 'x', 1)", SchemaMismatchError, "'text' does not fit"),
    ],
)
def test_what_does_not_fit_changes_nothing(
    sql: SparkSession, path: str, statement: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        insert(sql, statement, path)
    assert rows(sql, path) == FIRST
