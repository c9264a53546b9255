"""ALTER TABLE, SHOW, ANALYZE and their like as SQL: on tables of Spark's session catalog, the log changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType
from tests.managed import Warehouse

from pyspark_delta import DeltaTable, Table
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    SchemaMismatchError,
    SqlSyntaxError,
    TableNotFoundError,
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the table of the test is."""
    return str(tmp_path / "t")


@pytest.fixture
def sql(delta_spark: SparkSession, path: str) -> Iterator[SparkSession]:
    """The session, with a table `defined` partitioned by k, whose rows are (1, a, 1) and (2, b, null)."""
    delta_spark.sql(f"CREATE TABLE defined (id INT, s STRING, k INT) USING delta PARTITIONED BY (k) LOCATION '{path}'")
    delta_spark.sql("INSERT INTO defined VALUES (1, 'a', 1), (2, 'b', NULL)")
    yield delta_spark
    delta_spark.sql("DROP TABLE IF EXISTS defined")


def columns(spark: SparkSession, path: str) -> list[str]:
    """The columns that the log declares."""
    return DeltaTable.forPath(spark, path).toDF().columns


@pytest.mark.smoke
def test_c393_columns(sql: SparkSession, path: str) -> None:
    sql.sql("ALTER TABLE defined ADD COLUMNS (z INT, more STRING COMMENT 'c')")
    sql.sql("ALTER TABLE defined ADD COLUMN first INT FIRST")
    sql.sql("ALTER TABLE defined ALTER COLUMN s COMMENT 'text'")
    assert columns(sql, path) == ["first", "id", "s", "k", "z", "more"]
    assert DeltaTable.forPath(sql, path).toDF().schema["s"].metadata["comment"] == "text"
    sql.sql("ALTER TABLE defined SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'mine' = 'yes')")
    sql.sql("ALTER TABLE defined RENAME COLUMN z TO y")
    sql.sql("ALTER TABLE defined DROP COLUMN more")
    sql.sql("ALTER TABLE defined CHANGE COLUMN y y INT AFTER id")
    assert columns(sql, path) == ["first", "id", "y", "s", "k"]
    shown = [row.col_name for row in sql.sql(f"SHOW COLUMNS IN delta.`{path}`").collect()]
    assert [row.col_name for row in sql.sql("SHOW COLUMNS IN defined").collect()] == shown
    described = [row.col_name for row in sql.sql("DESCRIBE defined").collect()]
    assert shown == columns(sql, path)
    assert described[:5] == columns(sql, path)
    assert sql.sql("SELECT id, y FROM defined WHERE s = 'a'").collect() == [Row(id=1, y=None)]
    with pytest.raises(AnalysisException, match="nope"):
        sql.sql("ALTER TABLE defined ALTER COLUMN nope COMMENT 'x'")
    for name in ("defined", f"delta.`{path}`"):
        with pytest.raises(InvalidOperationError, match="and then set the default"):
            sql.sql(f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 42")


def test_describe_extended_shows_what_the_log_declares(delta_spark: SparkSession) -> None:
    """The rows are those of delta-spark."""
    delta_spark.sql(
        "CREATE TABLE described (id LONG DEFAULT 3, p STRING) USING delta PARTITIONED BY (p) COMMENT 'about' "
        "TBLPROPERTIES ('my.url' = 'hidden', 'delta.feature.allowColumnDefaults' = 'supported')"
    )
    try:
        rows = [tuple(row) for row in delta_spark.sql("DESCRIBE FORMATTED described").collect()]
        plain = [tuple(row) for row in delta_spark.sql("DESCRIBE described").collect()]
    finally:
        delta_spark.sql("DROP TABLE described")
    start = rows.index(("# Detailed Table Information", "", ""))
    assert rows[: start - 1] == plain
    assert ("# Partition Information", "", "") in plain
    [location] = [row[1] for row in rows if row[0] == "Location"]
    features = ("allowColumnDefaults", "appendOnly", "invariants")
    properties = [f"delta.feature.{name}=supported" for name in features]
    properties += ["delta.minReaderVersion=1", "delta.minWriterVersion=7", "my.url=*********(redacted)"]
    assert rows[start + 1 :] == [
        ("Catalog", "spark_catalog", ""),
        ("Namespace", "default", ""),
        ("Database", "default", ""),
        ("Table", "described", ""),
        ("Type", "MANAGED", ""),
        ("Comment", "about", ""),
        ("Location", location, ""),
        ("Provider", "delta", ""),
        ("Is_managed_location", "true", ""),
        ("Table Properties", f"[{','.join(properties)}]", ""),
        ("", "", ""),
        ("# Column Default Values", "", ""),
        ("id", "bigint", "3"),
    ]
    assert location.startswith("file:/")


@pytest.mark.since("4.0")  # 3.5 has no CLUSTER BY in CREATE TABLE
def test_show_create_table_creates_the_same_table(sql: SparkSession, tmp_path: Path) -> None:
    """For a name of Spark's catalog, one with a location, a path, and a name of a connected catalog."""
    warehouse = Warehouse(tmp_path / "w")
    columns = (
        "(id BIGINT NOT NULL COMMENT 'it\\'s', s STRUCT<a: INT NOT NULL, b: VARCHAR(3)> COMMENT 'of s', "
        "d INT DEFAULT 4, g BIGINT GENERATED ALWAYS AS (id + 1), "
        "n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 7)) USING delta "
    )
    properties = "'delta.enableChangeDataFeed' = 'true', 'delta.feature.deletionVectors' = 'supported'"
    rest = f"COMMENT 'about' TBLPROPERTIES ({properties})"
    made = {
        "made": f"{columns} PARTITIONED BY (d) {rest}",
        "outside": f"{columns} CLUSTER BY (id, s.a) LOCATION '{tmp_path}/outside' {rest}",
        f"delta.`{tmp_path}/path`": f"{columns} CLUSTER BY (id) {rest}",
        warehouse.full("t"): f"{columns} {rest}",
    }
    try:
        for number, (name, definition) in enumerate(made.items()):
            copy = f"delta.`{tmp_path}/copy{number}`"
            sql.sql(f"CREATE TABLE {name} {definition}")
            [(text,)] = sql.sql(f"SHOW CREATE TABLE {name}").collect()
            assert (f"LOCATION 'file:{tmp_path}/outside'" in text) == (name == "outside")
            text = text.replace(f"LOCATION 'file:{tmp_path}/outside'\n", "")
            sql.sql(f"CREATE TABLE {copy} {text[text.index('(') :]}")
            before, after = (DeltaTable.forName(sql, one) for one in (name, copy))
            assert after.toDF().schema == before.toDF().schema
            facts = ("description", "partitionColumns", "clusteringColumns", "properties")
            one, other = (table.detail().collect()[0] for table in (before, after))
            assert [one[fact] for fact in facts] == [other[fact] for fact in facts]
            assert set(one.tableFeatures) - {"catalogManaged"} == set(other.tableFeatures)
        with pytest.raises(InvalidOperationError, match="Leave AS SERDE out"):
            sql.sql("SHOW CREATE TABLE defined AS SERDE")
    finally:
        for name in ("made", "outside"):
            sql.sql(f"DROP TABLE IF EXISTS {name}")
        disconnect_catalog(warehouse.name)


@pytest.mark.since("4.0")  # 3.5 has no CLUSTER BY in CREATE TABLE
def test_tables_are_described_by_every_name(sql: SparkSession, path: str, tmp_path: Path) -> None:
    """Paths, versions of paths and names of connected catalogs."""
    warehouse = Warehouse(tmp_path / "w")
    try:
        sql.sql(f"CREATE TABLE {warehouse.full('t')} (id BIGINT) USING delta CLUSTER BY (id)")
        sql.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('mine' = 'yes')")
        expected = {
            f"delta.`{path}`": ("spark_catalog", "delta", path, "mine=yes"),
            warehouse.full("t"): (warehouse.name, "s", "t", '[clusteringColumns=[["id"]],'),
        }
        for name, (catalog, schema, table, properties) in expected.items():
            found = {row[0]: row[1] for row in sql.sql(f"DESCRIBE EXTENDED {name}").collect()}
            assert (found["Catalog"], found["Namespace"], found["Database"]) == (catalog, schema, schema)
            assert (found["Table"], found["Provider"]) == (table, "delta")
            assert properties in found["Table Properties"]
        old = f"delta.`{path}@v0`"
        assert "mine" not in [row.key for row in sql.sql(f"SHOW TBLPROPERTIES {old}").collect()]
        assert sql.sql(f"SHOW COLUMNS IN {old}").count() == 3
        assert "mine" not in sql.sql(f"SHOW CREATE TABLE {old}").collect()[0][0]
        missing = sql.sql("SHOW TBLPROPERTIES defined ('nope')").collect()[0].value
        assert missing == "Table spark_catalog.default.defined does not have property: nope"
        names = [sql.sql(f"DESCRIBE DETAIL {one}").collect()[0].name for one in ("defined", *expected)]
        assert names == ["spark_catalog.default.defined", None, warehouse.full("t")]
        assert DeltaTable.forName(sql, "defined").alias("a").detail().collect()[0].name == names[0]
    finally:
        disconnect_catalog(warehouse.name)


def test_describe_shows_partition_columns(delta_spark: SparkSession) -> None:
    delta_spark.sql("CREATE TABLE described (id LONG, p STRING COMMENT 'part') USING delta PARTITIONED BY (p)")
    try:
        shown = [tuple(row) for row in delta_spark.sql("DESCRIBE TABLE described").collect()]
        detail = [row.col_name for row in delta_spark.sql("DESCRIBE EXTENDED described").collect()]
    finally:
        delta_spark.sql("DROP TABLE described")
    column = ("p", "string", "part")
    partitions = [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), column]
    assert shown == [("id", "bigint", None), column, *partitions]
    assert "Provider" in detail


def test_columns_at_several_places_are_one_commit(sql: SparkSession, path: str) -> None:
    before = DeltaTable.forPath(sql, path).history(1).collect()[0].version
    sql.sql("ALTER TABLE defined ADD COLUMNS (first INT FIRST, after_id STRING AFTER id, last INT)")
    assert columns(sql, path) == ["first", "id", "after_id", "s", "k", "last"]
    assert DeltaTable.forPath(sql, path).history(1).collect()[0].version == before + 1


def test_longer_texts(sql: SparkSession, path: str) -> None:
    sql.sql("ALTER TABLE defined ADD COLUMNS (v VARCHAR(2), c CHAR(2))")
    sql.sql("ALTER TABLE defined ALTER COLUMN v TYPE VARCHAR(3)")
    sql.sql("INSERT INTO defined (v) VALUES ('abc')")
    with pytest.raises(ConstraintViolationError, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        sql.sql("INSERT INTO defined (v) VALUES ('abcd')")
    with pytest.raises(AnalysisException, match="NOT_SUPPORTED_CHANGE_COLUMN"):
        sql.sql("ALTER TABLE defined ALTER COLUMN v TYPE VARCHAR(2)")
    sql.sql("ALTER TABLE defined ALTER COLUMN v TYPE STRING")
    sql.sql("INSERT INTO defined (v) VALUES ('abcd')")
    DeltaTable.forPath(sql, path).alter().changeType("c", "varchar(4)").addColumn("items", "array<varchar(2)>")
    assert Table.open(path).snapshot.schema.find("items").metadata == {
        "__CHAR_VARCHAR_TYPE_STRING": "array<varchar(2)>"
    }
    sql.sql("INSERT INTO defined (c) VALUES ('abcd')")
    found = sql.sql("SELECT v, c FROM defined WHERE v IS NOT NULL OR c IS NOT NULL").collect()
    assert {tuple(row) for row in found} == {("abc", None), ("abcd", None), (None, "abcd")}


@pytest.mark.since("4.0")  # 3.5 has no collations
def test_texts_of_a_query_keep_their_collation(sql: SparkSession, path: str) -> None:
    for statement in ("CREATE", "CREATE OR REPLACE"):
        sql.sql(f"{statement} TABLE delta.`{path}-collated` AS SELECT 'a' COLLATE UNICODE_CI AS s, struct('b') AS t")
        assert sql.sql(f"SELECT count(*) FROM delta.`{path}-collated` WHERE s = 'A'").head() == (1,)


def test_replace_columns(sql: SparkSession, path: str) -> None:
    """Columns keep their values by name; what could be a rename is refused."""
    sql.sql("ALTER TABLE defined REPLACE COLUMNS (K INT COMMENT 'of k', new DATE, id INT, s STRING)")
    assert [tuple(row) for row in sql.sql("SELECT * FROM defined ORDER BY id").collect()] == [
        (1, None, 1, "a"),
        (None, None, 2, "b"),
    ]
    assert ("k", "int", "of k") in {tuple(row) for row in sql.sql("DESCRIBE defined").collect()}
    with pytest.raises(InvalidOperationError, match="would drop the columns 'id', 's'"):
        sql.sql("ALTER TABLE defined REPLACE COLUMNS (k INT, new DATE)")
    sql.sql("ALTER TABLE defined SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    with pytest.raises(InvalidOperationError, match="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"):
        sql.sql("ALTER TABLE defined REPLACE COLUMNS (k INT, other BIGINT)")
    DeltaTable.forPath(sql, path).alter().replaceColumns(StructType().add("s", "string").add("k", "integer"))
    assert columns(sql, path) == ["s", "k"]
    assert Table.open(path).version == 4


@pytest.mark.since("4.1")  # the parser has no constraints before
def test_c384_check_constraints(sql: SparkSession, path: str, tmp_path: Path) -> None:
    """CREATE TABLE and ALTER TABLE declare them, in every catalog."""
    warehouse, made = Warehouse(tmp_path / "w"), f"delta.`{path}2`"
    try:
        for name in ("constrained", made, f"{warehouse.name}.s.t"):
            sql.sql(f"CREATE TABLE {name} (id BIGINT CHECK (id > 0), CONSTRAINT Few CHECK (id < 10)) USING delta")
            sql.sql(f"ALTER TABLE {name} ADD CONSTRAINT odd CHECK (id % 2 = 1) ENFORCED")
            sql.sql(f"INSERT INTO {name} VALUES (9)")
            for wrong in (-1, 11, 8):
                with pytest.raises(ConstraintViolationError):
                    sql.sql(f"INSERT INTO {name} VALUES ({wrong})")
            properties = {row[0]: row[1] for row in sql.sql(f"SHOW TBLPROPERTIES {name}").collect()}
            assert properties["delta.constraints.few"] == "id < 10"
        sql.sql(f"BEGIN ALTER TABLE {made} DROP CONSTRAINT odd; ALTER TABLE {made} ADD CHECK (id <> 8); END")
        with pytest.raises(ConstraintViolationError, match="id <> 8"):
            sql.sql(f"INSERT INTO {made} VALUES (8)")
        sql.sql(f"INSERT INTO {made} VALUES (6)")
        sql.sql(f"CREATE OR REPLACE TABLE {made} (id BIGINT, CONSTRAINT few CHECK (id < 5)) USING delta")
        with pytest.raises(ConstraintViolationError):
            sql.sql(f"INSERT INTO {made} VALUES (5)")
        with pytest.raises(InvalidOperationError, match="with a key"):
            sql.sql(f"ALTER TABLE {made} ADD CONSTRAINT k PRIMARY KEY (id)")
        for declared, found in {"PRIMARY KEY (id)": "CHECK constraints only", "CHECK (z > 0)": "`?z`?"}.items():
            with pytest.raises(Exception, match=found):
                sql.sql(f"CREATE TABLE other (id BIGINT, CONSTRAINT c {declared}) USING delta")
        assert not sql.catalog.tableExists("other")
    finally:
        sql.sql("DROP TABLE IF EXISTS constrained")
        disconnect_catalog(warehouse.name)


@pytest.mark.since("4.0")  # the parser takes one column before
def test_several_columns_are_changed_in_one_commit(sql: SparkSession, path: str) -> None:
    before = DeltaTable.forPath(sql, path).history(1).collect()[0].version
    sql.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id COMMENT 'number', s FIRST")
    last = DeltaTable.forPath(sql, path).history(1).collect()[0]
    assert (last.version, last.operation) == (before + 1, "CHANGE COLUMNS")
    assert columns(sql, path) == ["s", "id", "k"]


def test_paths_have_no_name_to_drop(sql: SparkSession, path: str) -> None:
    with pytest.raises(InvalidOperationError, match="delete its folder"):
        sql.sql(f"DROP TABLE IF EXISTS delta.`{path}`")
    sql.sql(f"DROP TABLE IF EXISTS delta.`{path}/nothing`")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql.sql(f"DROP TABLE delta.`{path}/nothing`")
    assert sql.table("defined").count() == 2


@pytest.mark.since("4.1")  # for the parameter
def test_scripts_have_deltas_own_statements(sql: SparkSession, path: str) -> None:
    script = """
        BEGIN
          DECLARE optimize INT DEFAULT 1;
          BEGIN TRANSACTION;
          DELETE FROM defined WHERE id = optimize;
          INSERT INTO defined VALUES (9, 'i', 1);
          COMMIT;
          IF optimize = 1 THEN
            OPTIMIZE defined ZORDER BY (id);
          END IF;
          RESTORE TABLE defined TO VERSION AS OF :version;
        END"""
    sql.sql(script, args={"version": 1})
    operations = [row.operation for row in DeltaTable.forPath(sql, path).history().collect()]
    assert (operations[:2], len(operations)) == (["RESTORE", "OPTIMIZE"], 5)
    assert sorted(row.id for row in sql.table("defined").collect()) == [1, 2]
    with pytest.raises(SqlSyntaxError, match="line 1, pos 14"):
        sql.sql("BEGIN OPTIMIZE; END")


def test_properties_and_the_comment(sql: SparkSession, path: str) -> None:
    sql.sql("ALTER TABLE defined SET TBLPROPERTIES ('mine' = 'yes', 'other' = 'too')")
    sql.sql("ALTER TABLE defined UNSET TBLPROPERTIES ('other')")
    sql.sql("COMMENT ON TABLE defined IS 'what it holds'")
    detail = DeltaTable.forPath(sql, path).detail().collect()[0]
    assert (detail.properties, detail.description) == ({"mine": "yes"}, "what it holds")
    DeltaTable.forPath(sql, path).alter().setProperties({"mine": "changed"})
    assert sql.sql("SHOW TBLPROPERTIES defined ('mine')").collect()[0].value == "changed"


@pytest.mark.since("4.2")
def test_statements_that_change_the_schema_are_described(sql: SparkSession) -> None:
    sql.sql("INSERT WITH SCHEMA EVOLUTION INTO defined BY NAME SELECT 3 AS id, true AS more")
    assert "more" in [row.col_name for row in sql.sql("DESCRIBE defined").collect()]
    sql.sql("RESTORE TABLE defined TO VERSION AS OF 1")
    assert "more" not in [row.col_name for row in sql.sql("DESCRIBE defined").collect()]


def test_show_partitions(sql: SparkSession, path: str) -> None:
    for name in ("defined", f"delta.`{path}`"):
        assert sql.sql(f"SHOW PARTITIONS {name}").collect() == [Row(k=None), Row(k=1)]
    assert sql.sql("SHOW PARTITIONS defined PARTITION (k = 1)").collect() == [Row(k=1)]
    with pytest.raises(InvalidOperationError, match="not a partition column"):
        sql.sql("SHOW PARTITIONS defined PARTITION (s = 'a')")


def test_location(sql: SparkSession, path: str, tmp_path: Path) -> None:
    other, unlike = str(tmp_path / "other"), str(tmp_path / "unlike")
    sql.sql("SELECT 9 AS id, 'i' AS s, 90 AS k").write.format("delta").partitionBy("k").save(other)
    sql.range(1).write.format("delta").save(unlike)
    with pytest.raises(TableNotFoundError):
        sql.sql(f"ALTER TABLE defined SET LOCATION '{tmp_path / 'nothing'}'")
    with pytest.raises(InvalidOperationError, match="not like"):
        sql.sql(f"ALTER TABLE defined SET LOCATION '{unlike}'")
    assert sql.table("defined").count() == 2
    sql.sql(f"ALTER TABLE defined SET LOCATION '{other}'")
    assert sql.sql("SELECT id FROM defined").collect() == [Row(id=9)]


class Analyzed:
    """What every kind of session does."""

    @pytest.fixture
    def bare(self, session: SparkSession, tmp_path: Path) -> str:
        """The name of a table without statistics."""
        name = f"delta.`{tmp_path / 'bare'}`"
        none = "'delta.dataSkippingNumIndexedCols'='0', 'delta.columnMapping.mode'='name'"
        session.sql(f"CREATE TABLE {name} (id BIGINT, `a.b` BIGINT) USING delta TBLPROPERTIES ({none})")
        session.sql(f"INSERT INTO {name} VALUES (1, 2)")
        session.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols')")
        return name

    def test_analyze_computes_statistics(self, session: SparkSession, bare: str, tmp_path: Path) -> None:
        for statement, measured in (("NOSCAN", 0), ("FOR COLUMNS `a.b`", 1), ("FOR ALL COLUMNS", 2)):
            assert session.sql(f"ANALYZE TABLE {bare} COMPUTE STATISTICS {statement}").collect() == []
            logs = sorted((tmp_path / "bare" / "_delta_log").glob("*.json"))
            actions = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
            stats = [json.loads(action["add"]["stats"]) for action in actions if "add" in action][-1]
            assert len(stats.get("minValues", {})) == measured, statement
        assert session.sql(f"REFRESH TABLE {bare}").collect() == []

    def test_analyze_is_no_part_of_a_transaction(self, session: SparkSession, bare: str) -> None:
        session.sql("BEGIN TRANSACTION")
        with pytest.raises(InvalidOperationError, match="ANALYZE TABLE cannot be part of a transaction"):
            session.sql(f"ANALYZE TABLE {bare} COMPUTE STATISTICS")
        session.sql("ROLLBACK")


class TestClassicAnalyzed(Analyzed):
    @pytest.fixture
    def session(self, sql: SparkSession) -> SparkSession:
        return sql


class TestConnectAnalyzed(Analyzed):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER TABLE {t} ADD PARTITION (k = 7)", "INSERT adds them"),
        ("ALTER TABLE {t} DROP PARTITION (k = 1)", "DELETE FROM"),
        ("ALTER TABLE {t} RECOVER PARTITIONS", "DELETE FROM"),
        ("MSCK REPAIR TABLE {t}", "FSCK"),
        ("TRUNCATE TABLE {t} PARTITION (k = 1)", "DELETE FROM"),
        ("LOAD DATA INPATH '/tmp/x' INTO TABLE {t}", "INSERT INTO"),
        ("ALTER TABLE {t} SET SERDEPROPERTIES ('a' = 'b')", "Parquet"),
    ],
)
def test_what_delta_tables_do_not_have_is_refused_by_name(
    sql: SparkSession, path: str, statement: str, words: str
) -> None:
    before = DeltaTable.forPath(sql, path).history().count()
    for name in ("defined", f"delta.`{path}`"):
        with pytest.raises(InvalidOperationError, match=words):
            sql.sql(statement.format(t=name))
    assert DeltaTable.forPath(sql, path).history().count() == before


def test_permanent_views_are_no_targets(sql: SparkSession) -> None:
    sql.sql("CREATE VIEW view_of_defined AS SELECT * FROM defined")
    try:
        for statement in ("DELETE FROM view_of_defined", "UPDATE view_of_defined SET s = 'x'"):
            with pytest.raises(InvalidOperationError, match="Name the table itself"):
                sql.sql(statement)
        assert sql.table("defined").count() == 2
    finally:
        sql.sql("DROP VIEW view_of_defined")


@pytest.mark.since("4.0")
def test_statements_of_a_script_see_what_it_has_done_before(sql: SparkSession, tmp_path: Path) -> None:
    script = f"""
        BEGIN
          CREATE TABLE made_by_script (a INT) USING delta LOCATION '{tmp_path / "made"}';
          INSERT INTO made_by_script VALUES (1), (2);
          DELETE FROM made_by_script WHERE a = 1;
          SELECT a FROM made_by_script;
        END"""
    try:
        assert sql.sql(script).collect() == [Row(a=2)]
    finally:
        sql.sql("DROP TABLE IF EXISTS made_by_script")


def test_a_new_table_has_no_intervals(delta_spark: SparkSession, path: str) -> None:
    for what in ("(a INTERVAL DAY) USING delta", "USING delta AS SELECT INTERVAL '1' DAY AS a"):
        with pytest.raises(SchemaMismatchError, match="interval day to second, which Delta cannot"):
            delta_spark.sql(f"CREATE TABLE delta.`{path}` {what}")
    assert not Path(path).exists()
