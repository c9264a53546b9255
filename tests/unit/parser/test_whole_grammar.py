"""Statements that Spark parses in its sessions, and this package elsewhere: texts and their values."""

from __future__ import annotations

import pytest

from pyspark_delta.errors import SqlSyntaxError
from pyspark_delta.parser import parse_any, split
from pyspark_delta.parser.catalog_statements import (
    CreateSchema,
    DescribeTable,
    DropSchema,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
    Use,
)
from pyspark_delta.parser.row_statements import (
    Assignment,
    DeleteFrom,
    InsertInto,
    MergeAction,
    MergeClause,
    MergeInto,
    MergeRows,
    PartitionValue,
    Query,
    TruncateTable,
    UpdateTable,
)
from pyspark_delta.parser.statements import Vacuum
from pyspark_delta.parser.table_statements import (
    AddColumns,
    AlterColumns,
    AnalyzeTable,
    ColumnChange,
    ColumnPosition,
    CommentOnTable,
    CreateTable,
    CreateTableLike,
    DropColumns,
    DropTable,
    NewColumn,
    RefreshTable,
    RenameColumn,
    RenameTable,
    ReplaceColumns,
    SetProperties,
    UnsetProperties,
)
from pyspark_delta.parser.values import Path, SqlText, TableName, TablePath, VersionAsOf

T, P, S = TableName(("t",)), TableName(("delta", "/p")), TableName(("s",))


def sql(text: str) -> SqlText:
    return SqlText(text)


def sets(*pairs: tuple[str | Path, str]) -> tuple[Assignment, ...]:
    return tuple(Assignment((name,) if isinstance(name, str) else name, SqlText(text)) for name, text in pairs)


ROWS = {
    "SELECT 1": Query(sql("SELECT 1")),
    "(SELECT 1) UNION (SELECT 2);": Query(sql("(SELECT 1) UNION (SELECT 2)")),
    "FROM t SELECT a": Query(sql("FROM t SELECT a")),
    "WITH x AS (SELECT 1), y(a) AS (TABLE x) SELECT * FROM y": Query(
        sql("WITH x AS (SELECT 1), y(a) AS (TABLE x) SELECT * FROM y")
    ),
    "DELETE FROM t": DeleteFrom(T),
    "delete from delta.`/p` AS x where x.a = 'where' -- all": DeleteFrom(P, sql("x.a = 'where'"), "x"),
    "DELETE FROM '/p' x WHERE CASE WHEN a THEN b END": DeleteFrom(TablePath("/p"), sql("CASE WHEN a THEN b END"), "x"),
    "UPDATE t SET a = f(1, 2), b.c = 'x,y' WHERE d": UpdateTable(
        T, sets(("a", "f(1, 2)"), (("b", "c"), "'x,y'")), sql("d")
    ),
    "UPDATE t u SET u.a = DEFAULT": UpdateTable(T, sets((("u", "a"), "DEFAULT")), alias="u"),
    "WITH x AS (SELECT 1 AS i) DELETE FROM t WHERE a IN (SELECT i FROM x)": DeleteFrom(
        T, sql("a IN (SELECT i FROM x)"), ctes=sql("WITH x AS (SELECT 1 AS i)")
    ),
    "TRUNCATE TABLE t": TruncateTable(T),
    "INSERT INTO t VALUES (1, 'a'), (2, 'b')": InsertInto(T, sql("VALUES (1, 'a'), (2, 'b')")),
    "INSERT INTO TABLE t (a, `b c`) SELECT 1, 2": InsertInto(T, sql("SELECT 1, 2"), (("a",), ("b c",))),
    "INSERT INTO t (SELECT 1)": InsertInto(T, sql("(SELECT 1)")),
    "INSERT INTO t TABLE s": InsertInto(T, sql("TABLE s")),
    "INSERT INTO t BY NAME SELECT 1 AS a": InsertInto(T, sql("SELECT 1 AS a"), by_name=True),
    "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1": InsertInto(T, sql("SELECT 1"), evolves=True),
    "INSERT OVERWRITE t PARTITION (k = 1 + 1, l) SELECT a": InsertInto(
        T, sql("SELECT a"), partition=(PartitionValue(("k",), sql("1 + 1")), PartitionValue(("l",))), overwrite=True
    ),
    "INSERT INTO t REPLACE WHERE k IS DISTINCT FROM 1 SELECT a FROM s": InsertInto(
        T, sql("SELECT a FROM s"), replace_where=sql("k IS DISTINCT FROM 1")
    ),
    "INSERT INTO t AS x REPLACE ON x.k = s.k TABLE s": InsertInto(
        T, sql("TABLE s"), replace_on=sql("x.k = s.k"), alias="x"
    ),
    "INSERT INTO t x REPLACE ON x.k IN (SELECT 1) AND x.k = s.k (SELECT 1 AS k) AS s": InsertInto(
        T, sql("SELECT 1 AS k"), replace_on=sql("x.k IN (SELECT 1) AND x.k = s.k"), alias="x"
    ),
    "INSERT INTO t REPLACE WHERE k = 1 (SELECT 1) UNION ALL (SELECT 2)": InsertInto(
        T, sql("(SELECT 1) UNION ALL (SELECT 2)"), replace_where=sql("k = 1")
    ),
    "INSERT INTO t REPLACE USING (k) VALUES (1)": InsertInto(T, sql("VALUES (1)"), replace_using=(("k",),)),
    "WITH x AS (SELECT 1) INSERT INTO t TABLE x": InsertInto(T, sql("WITH x AS (SELECT 1) TABLE x")),
}
MERGES = {
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE": MergeInto(
        T, S, sql("t.a = s.a"), (MergeClause(MergeRows.MATCHED, MergeAction.DELETE),)
    ),
    """MERGE WITH SCHEMA EVOLUTION INTO delta.`/p` AS x USING (SELECT * FROM s WHERE b) y
       ON x.a = CASE WHEN y.a THEN 1 END AND (true)
       WHEN MATCHED AND x.b > 1 THEN UPDATE SET *
       WHEN MATCHED THEN UPDATE SET x.b = CASE WHEN y.b THEN 1 ELSE 2 END, c.d = y.c
       WHEN NOT MATCHED BY TARGET AND y.b THEN INSERT (a, b) VALUES (y.a, f(y.b, 1))
       WHEN NOT MATCHED THEN INSERT *
       WHEN NOT MATCHED BY SOURCE AND x.a < 0 THEN UPDATE SET b = 0
       WHEN NOT MATCHED BY SOURCE THEN DELETE;""": MergeInto(
        P,
        sql("SELECT * FROM s WHERE b"),
        sql("x.a = CASE WHEN y.a THEN 1 END AND (true)"),
        (
            MergeClause(MergeRows.MATCHED, MergeAction.UPDATE, sql("x.b > 1")),
            MergeClause(
                MergeRows.MATCHED,
                MergeAction.UPDATE,
                None,
                sets((("x", "b"), "CASE WHEN y.b THEN 1 ELSE 2 END"), (("c", "d"), "y.c")),
            ),
            MergeClause(MergeRows.NOT_MATCHED, MergeAction.INSERT, sql("y.b"), sets(("a", "y.a"), ("b", "f(y.b, 1)"))),
            MergeClause(MergeRows.NOT_MATCHED, MergeAction.INSERT),
            MergeClause(MergeRows.NOT_MATCHED_BY_SOURCE, MergeAction.UPDATE, sql("x.a < 0"), sets(("b", "0"))),
            MergeClause(MergeRows.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE),
        ),
        "x",
        "y",
        evolves=True,
    ),
    "MERGE INTO t USING s VERSION AS OF 3 AS v ON t.case = v.end WHEN NOT MATCHED THEN INSERT *": MergeInto(
        T,
        S,
        sql("t.case = v.end"),
        (MergeClause(MergeRows.NOT_MATCHED, MergeAction.INSERT),),
        source_alias="v",
        source_time=VersionAsOf(3),
    ),
}
TABLES = {
    "ANALYZE TABLE t COMPUTE STATISTICS": AnalyzeTable(T),
    "ANALYZE TABLE t COMPUTE STATISTICS NOSCAN": AnalyzeTable(T, scans=False),
    "ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS": AnalyzeTable(T),
    "ANALYZE TABLE t PARTITION (k = 1) COMPUTE STATISTICS FOR COLUMNS a, `b.c`": AnalyzeTable(
        T, ("a", "b.c"), partition=sql("k = 1")
    ),
    "REFRESH TABLE t": RefreshTable(T),
    "CREATE TABLE t (a INT NOT NULL, b DECIMAL(3, 1) COMMENT 'x)') USING delta": CreateTable(
        T, sql("a INT NOT NULL, b DECIMAL(3, 1) COMMENT 'x)'"), using="delta"
    ),
    "CREATE TABLE IF NOT EXISTS a.t (id INT) PARTITIONED BY (id) COMMENT 'c' LOCATION '/x' TBLPROPERTIES (p = '1')": (
        CreateTable(
            TableName(("a", "t")),
            sql("id INT"),
            partitioned_by=(("id",),),
            comment="c",
            location="/x",
            properties=(("p", "1"),),
            if_not_exists=True,
        )
    ),
    "CREATE TABLE t (a INT) PARTITIONED BY (day DATE)": CreateTable(T, sql("a INT"), partition_columns=sql("day DATE")),
    "CREATE OR REPLACE TABLE delta.`/p` USING delta CLUSTER BY (a, b.c) AS SELECT 1": CreateTable(
        P, query=sql("SELECT 1"), using="delta", cluster_by=(("a",), ("b", "c")), replaces=True
    ),
    "CREATE TABLE t (a STRUCT<x: INT, y: INT> CHECK (a.x > 0) COMMENT 'c', CONSTRAINT k CHECK (b IN (1, 2)) ENFORCED, "
    "check INT, constraint INT CONSTRAINT m CHECK (true))": CreateTable(
        T,
        sql("a STRUCT<x: INT, y: INT> COMMENT 'c', check INT, constraint INT"),
        constraints=((None, "a.x > 0"), ("k", "b IN (1, 2)"), ("m", "true")),
    ),
    "REPLACE TABLE t AS (SELECT 1)": CreateTable(T, query=sql("(SELECT 1)"), creates=False, replaces=True),
    "CREATE TABLE t SELECT 1": CreateTable(T, query=sql("SELECT 1")),
    "CREATE TABLE t LIKE delta.`/p` LOCATION '/x'": CreateTableLike(T, P, location="/x"),
    "DROP TABLE IF EXISTS t PURGE": DropTable(T, True, True),
    "COMMENT ON TABLE t IS NULL": CommentOnTable(T, None),
    "COMMENT ON TABLE t IS 'x'": CommentOnTable(T, "x"),
    "ALTER TABLE t ADD COLUMNS (a INT, s.b STRUCT<x: INT, y: ARRAY<STRING>> NOT NULL COMMENT 'c' AFTER a)": AddColumns(
        T,
        (
            NewColumn(("a",), sql("INT")),
            NewColumn(("s", "b"), sql("STRUCT<x: INT, y: ARRAY<STRING>>"), False, "c", position=ColumnPosition("a")),
        ),
    ),
    "ALTER TABLE t ADD COLUMN a DECIMAL(3, 1) DEFAULT 1 + 2 FIRST": AddColumns(
        T, (NewColumn(("a",), sql("DECIMAL(3, 1)"), default=sql("1 + 2"), position=ColumnPosition()),)
    ),
    "ALTER TABLE t REPLACE COLUMNS (a INT)": ReplaceColumns(T, (NewColumn(("a",), sql("INT")),)),
    "ALTER TABLE t DROP COLUMNS (a, b.c)": DropColumns(T, (("a",), ("b", "c"))),
    "ALTER TABLE t DROP COLUMN IF EXISTS a": DropColumns(T, (("a",),), True),
    "ALTER TABLE t RENAME COLUMN a.b TO c": RenameColumn(T, ("a", "b"), "c"),
    "ALTER TABLE t RENAME TO a.u": RenameTable(T, TableName(("a", "u"))),
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')": SetProperties(T, (("a", "b"),)),
    "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', delta.b)": UnsetProperties(T, ("a", "delta.b"), True),
}
CHANGES = {
    "a TYPE BIGINT": ColumnChange(("a",), data_type=sql("BIGINT")),
    "s.a COMMENT 'x'": ColumnChange(("s", "a"), comment="x"),
    "a FIRST": ColumnChange(("a",), position=ColumnPosition()),
    "a AFTER b": ColumnChange(("a",), position=ColumnPosition("b")),
    "a SET NOT NULL": ColumnChange(("a",), nullable=False),
    "a DROP NOT NULL": ColumnChange(("a",), nullable=True),
    "a SET DEFAULT f(1)": ColumnChange(("a",), default=sql("f(1)")),
    "a DROP DEFAULT": ColumnChange(("a",), drop_default=True),
    "a b INT COMMENT 'x' AFTER c": ColumnChange(
        ("a",), name="b", data_type=sql("INT"), comment="x", position=ColumnPosition("c")
    ),
}
CATALOGS = {
    "USE main.sales": Use(("main", "sales")),
    "USE SCHEMA sales": Use(("sales",), "SCHEMA"),
    "USE schema": Use(("schema",)),
    "USE CATALOG main": Use(("main",), "CATALOG"),
    "SET CATALOG 'main'": Use(("main",), "CATALOG"),
    "SHOW CATALOGS LIKE 'm*'": ShowCatalogs("m*"),
    "SHOW SCHEMAS": ShowSchemas(),
    "SHOW DATABASES IN main 's*'": ShowSchemas(("main",), "s*"),
    "SHOW TABLES FROM main.sales LIKE 'o*'": ShowTables(("main", "sales"), "o*"),
    "SHOW COLUMNS IN t IN sales": ShowColumns(T, ("sales",)),
    "SHOW PARTITIONS delta.`/p`": ShowPartitions(P),
    "SHOW PARTITIONS t PARTITION (k = 1, l)": ShowPartitions(
        T, (PartitionValue(("k",), sql("1")), PartitionValue(("l",)))
    ),
    "SHOW TBLPROPERTIES t (a.b)": ShowProperties(T, "a.b"),
    "SHOW CREATE TABLE t": ShowCreateTable(T),
    "DESCRIBE t": DescribeTable(T),
    "DESC TABLE EXTENDED delta.`/p`": DescribeTable(P, True),
    "DESCRIBE table": DescribeTable(TableName(("table",))),
    "DESCRIBE t a.b": DescribeTable(T, column=("a", "b")),
    "CREATE SCHEMA IF NOT EXISTS main.sales COMMENT 'x'": CreateSchema(TableName(("main", "sales")), True, "x"),
    "DROP DATABASE IF EXISTS sales CASCADE": DropSchema(TableName(("sales",)), True, True),
    "VACUUM t": Vacuum(T),
}
ALL = {**ROWS, **MERGES, **TABLES, **CATALOGS}


@pytest.mark.parametrize("text", ALL)
def test_statement_has_its_value(text: str) -> None:
    assert parse_any(text) == ALL[text]


@pytest.mark.parametrize("text", CHANGES)
def test_change_of_a_column_has_its_value(text: str) -> None:
    assert parse_any(f"ALTER TABLE t ALTER COLUMN {text}") == AlterColumns(T, (CHANGES[text],))
    assert parse_any(f"ALTER TABLE t CHANGE {text}, z TYPE INT") == AlterColumns(
        T, (CHANGES[text], ColumnChange(("z",), data_type=sql("INT")))
    )


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TEMPORARY VIEW v AS SELECT :x",
        "SET a = b",
        "EXPLAIN SELECT 1",
        "SHOW FUNCTIONS",
        "DESCRIBE FUNCTION f",
        "CACHE TABLE t",
        "ANALYZE TABLES IN a COMPUTE STATISTICS",
        "REFRESH FUNCTION f",
        "BEGIN SELECT 1; END",
        "",
    ],
)
def test_what_only_spark_knows_is_none(text: str) -> None:
    assert parse_any(text) is None


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("DELETE t", 7, "expected FROM"),
        ("DELETE FROM t WHERE", 19, "expected a condition"),
        ("UPDATE t SET a", 14, "expected ="),
        ("UPDATE t SET a = , b = 1", 17, "expected an expression"),
        ("INSERT INTO t", 13, "expected a query"),
        ("INSERT INTO t (a, b", 14, "expected a query"),
        ("MERGE INTO t USING s ON a = b", 29, "expected WHEN"),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN INSERT *", 44, "expected UPDATE or DELETE"),
        ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", 69, "2 values for 2 columns"),
        (
            "MERGE INTO t USING s ON a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
            69,
            "expected the name of a column",
        ),
        ("CREATE TABLE t (a INT) STORED AS orc", 23, "expected USING, PARTITIONED BY"),
        ("CREATE TABLE t (a INT", 21, "expected )"),
        ("ALTER TABLE t MOVE COLUMN a", 14, "expected ADD or DROP"),
        ("ALTER TABLE t ALTER COLUMN a", 28, "expected TYPE, COMMENT"),
        ("DROP TABLE t CASCADE", 13, "expected the end of the statement"),
        ("WITH x AS SELECT 1", 10, "expected ("),
        ("SELECT (1", 9, "expected )"),
    ],
)
def test_refused_statement_names_the_place(text: str, place: int, expected: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_any(text)
    assert (caught.value.position, expected in caught.value.message) == (place, True), caught.value


def test_arguments_are_literals_in_queries() -> None:
    assert parse_any("SELECT * FROM t WHERE a = :a AND b:c > 1", {"a": "x'y"}) == Query(
        sql("SELECT * FROM t WHERE a = 'x\\'y' AND b:c > 1")
    )


def test_statements_of_a_text_are_split_at_semicolons_outside_of_strings_and_comments() -> None:
    text = "-- a; b\nSELECT ';' ; /* ; */ ; VACUUM `a;b`\n;;SELECT 1 -- ;"
    assert split(text) == ["-- a; b\nSELECT ';'", "VACUUM `a;b`", "SELECT 1 -- ;"]
