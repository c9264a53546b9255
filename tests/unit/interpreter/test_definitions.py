"""CREATE, ALTER, DROP, SHOW and DESCRIBE without Spark, and Delta's own statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta import Table, connect_catalog, disconnect_catalog, sql
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameNotFoundError,
    ConstraintViolationError,
    DeltaError,
    InvalidOperationError,
    InvalidOptionError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.schema.column_ids import MAPPING_KEYS, without_keys

Run = Callable[..., list[dict[str, Any]]]


# ---------------------------------------------------------------------------------------------------------- CREATE
def test_show_create_table_creates_the_same_table(run: Run, tmp_path: Path) -> None:
    run(
        """CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), `Ab` STRUCT<X: INT>
           COMMENT 'it''s', day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), at TIMESTAMP NOT NULL)
           PARTITIONED BY (day) COMMENT 'of all' TBLPROPERTIES ('a.b' = 'c\\'d')"""
    )
    [shown] = run("SHOW CREATE TABLE t")
    run(shown["createtab_stmt"].replace("CREATE TABLE t ", "CREATE TABLE u "))
    first, second = (Table.open(tmp_path / name) for name in "tu")
    assert first.schema == second.schema
    assert (first.partition_columns, first.metadata.configuration, first.metadata.description) == (
        second.partition_columns,
        second.metadata.configuration,
        "of all",
    )


@pytest.mark.parametrize(
    ("columns", "rest", "shown"),
    [
        ("s STRUCT<`X`: INT NOT NULL COMMENT 'it''s', l: ARRAY<STRUCT<m: MAP<STRING, VARCHAR(3)>>>>", "", "NOT NULL"),
        ("v VARCHAR(3), c CHAR(2) DEFAULT 'ab', id BIGINT", "CLUSTER BY (`id`)", "CLUSTER BY (id)"),
        ("`a.b` INT, c INT, CONSTRAINT few CHECK (c < 9)", "TBLPROPERTIES ('delta.columnMapping.mode'='id')", "c < 9"),
        ("id BIGINT", "TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')", "deletionVectors'"),
        ("id BIGINT", "TBLPROPERTIES ('delta.minWriterVersion' = '4')", "changeDataFeed'"),
    ],
)
def test_show_create_table_keeps(run: Run, tmp_path: Path, columns: str, rest: str, shown: str) -> None:
    """The new table has what CREATE TABLE LIKE gives it."""
    run(f"CREATE TABLE t ({columns}) USING delta {rest}")
    [statement] = run("SHOW CREATE TABLE t")
    assert shown in statement["createtab_stmt"]
    run(statement["createtab_stmt"].replace("CREATE TABLE t ", "CREATE TABLE u "))
    run("CREATE TABLE v LIKE t")
    made, like = (Table.open(tmp_path / name) for name in "uv")
    assert made.metadata.configuration == like.metadata.configuration
    assert without_keys(made.schema, MAPPING_KEYS) == without_keys(like.schema, MAPPING_KEYS)
    assert (made.protocol, made.snapshot.clustering_columns()) == (like.protocol, like.snapshot.clustering_columns())


def test_c384_create_table_declares_constraints(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t (id BIGINT NOT NULL CHECK (id > 0) COMMENT 'a', k INT, CONSTRAINT Few CHECK (k < 10))")
    table = Table.open(tmp_path / "t")
    assert table.metadata.configuration == {"delta.constraints.t_chk_1": "id > 0", "delta.constraints.few": "k < 10"}
    assert table.version == 0
    detail = table.detail()
    assert detail["minWriterVersion"] == 3
    assert detail["tableFeatures"] == ["appendOnly", "checkConstraints", "invariants"]  # of the version, without a list
    for row in ("(0, 1)", "(1, 10)"):
        with pytest.raises(ConstraintViolationError):
            run(f"INSERT INTO t VALUES {row}")
    run("INSERT INTO t VALUES (1, 1)")
    for constraint, found in {
        "CONSTRAINT c CHECK (z > 0)": "not in the table",
        "CONSTRAINT c CHECK (id > 0), CONSTRAINT C CHECK (id > 1)": "declared twice",
        "CONSTRAINT c PRIMARY KEY (id)": "no keys",
        "CHECK (id > 0) NOT ENFORCED": "enforce their constraints",
    }.items():
        with pytest.raises(DeltaError, match=found):
            run(f"CREATE TABLE u (id INT, {constraint})")
    assert not (tmp_path / "u").exists()


def test_create_table_as_query_is_one_commit(orders: Run, tmp_path: Path) -> None:
    orders("CREATE TABLE c PARTITIONED BY (k) TBLPROPERTIES ('a' = 'b') AS SELECT id, k FROM orders WHERE k = 1")
    table = Table.open(tmp_path / "c")
    assert (table.version, table.count(), table.partition_columns) == (0, 2, ("k",))
    assert table.metadata.configuration["a"] == "b"


def test_a_table_is_replaced_by_a_query_over_itself(orders: Run, tmp_path: Path) -> None:
    orders("CREATE OR REPLACE TABLE orders AS SELECT id * 2 AS two FROM orders")
    assert orders("SELECT two FROM orders ORDER BY two") == [{"two": 2}, {"two": 4}, {"two": 6}]
    assert Table.open(tmp_path / "orders").version == 2


def test_create_table_like_copies_what_is_declared(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t (id BIGINT, k INT) PARTITIONED BY (k) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    run("INSERT INTO t VALUES (1, 1)")
    run("CREATE TABLE u LIKE t")
    made = Table.open(tmp_path / "u")
    assert (made.count(), made.partition_columns, made.schema.names) == (0, ("k",), ("id", "k"))
    run("INSERT INTO u VALUES (2, 2)")
    assert run("SELECT * FROM u") == [{"id": 2, "k": 2}]


def test_create_table_like_leaves_out_what_depends_on_files_and_history(run: Run, tmp_path: Path) -> None:
    run(
        "CREATE TABLE t (id BIGINT, `a.b` INT) CLUSTER BY (`a.b`) TBLPROPERTIES ('delta.feature.vacuumProtocolCheck' = "
        "'supported')"
    )
    run("CREATE TABLE c SHALLOW CLONE t")
    run("CREATE TABLE u LIKE c")
    source, made = (Table.open(tmp_path / name) for name in "cu")
    assert made.protocol.listed_features == source.protocol.listed_features
    assert made.snapshot.clustering_paths() == [("a.b",)]
    assert "pyspark_delta.cloneOf" in source.metadata.configuration
    assert "pyspark_delta.cloneOf" not in made.metadata.configuration


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE TABLE orders (a INT)", TableAlreadyExistsError),
        ("CREATE TABLE orders AS SELECT 1 AS a", TableAlreadyExistsError),
        ("REPLACE TABLE nope (a INT)", TableNotFoundError),
        ("REPLACE TABLE nope AS SELECT 1 AS a", TableNotFoundError),
        ("CREATE TABLE p (a INT) USING parquet", InvalidOperationError),
        ("CREATE TABLE p", InvalidOperationError),
        ("CREATE TABLE p (a INT) LOCATION '/x'", InvalidOperationError),
        ("CREATE TABLE p (a INT) PARTITIONED BY (a.b)", InvalidOperationError),
        ("DROP TABLE orders", InvalidOperationError),
        ("ALTER TABLE orders RENAME TO x", InvalidOperationError),
        ("ALTER TABLE orders REPLACE COLUMNS (a INT)", InvalidOperationError),
    ],
)
def test_a_definition_that_fails_changes_nothing(
    orders: Run, tmp_path: Path, statement: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        orders(statement)
    assert Table.open(tmp_path / "orders").version == 1
    assert [path.name for path in tmp_path.iterdir()] == ["orders"]


def test_if_not_exists_keeps_the_table(orders: Run, tmp_path: Path) -> None:
    orders("CREATE TABLE IF NOT EXISTS orders (a INT)")
    orders("CREATE TABLE IF NOT EXISTS orders AS SELECT * FROM nope")
    assert Table.open(tmp_path / "orders").version == 1


# ----------------------------------------------------------------------------------------------------------- ALTER
def test_columns_are_changed(run: Run) -> None:
    run(
        "CREATE TABLE t (a INT, s STRUCT<x: INT>) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableTypeWidening' = 'true')"
    )
    for change in (
        "ADD COLUMNS (b STRING COMMENT 'it''s', c INT)",
        "ADD COLUMN s.y INT FIRST",
        "RENAME COLUMN c TO d",
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN d AFTER a",
        "ALTER COLUMN d COMMENT 'of d'",
        "DROP COLUMNS IF EXISTS (b, nope)",
        "REPLACE COLUMNS (a BIGINT, d INT, s STRUCT<y: INT, x: INT>, b DATE COMMENT 'of b')",
        "SET TBLPROPERTIES ('x' = 'y', z = 1)",
        "UNSET TBLPROPERTIES (z)",
    ):
        run(f"ALTER TABLE t {change}")
    assert [tuple(line.values()) for line in run("DESCRIBE t")] == [
        ("a", "bigint", None),
        ("d", "int", "of d"),
        ("s", "struct<y:int,x:int>", None),
        ("b", "date", "of b"),
    ]
    assert run("SHOW TBLPROPERTIES t (x)") == [{"key": "x", "value": "y"}]
    shown = {line["key"]: line["value"] for line in run("SHOW TBLPROPERTIES t")}
    assert (shown["delta.minReaderVersion"], shown["delta.feature.columnMapping"]) == ("3", "supported")
    described = [tuple(line.values())[:2] for line in run("DESCRIBE EXTENDED t")]
    assert ("Table", "t") in described
    assert ("Type", "EXTERNAL") in described
    assert "does not have property: z" in run("SHOW TBLPROPERTIES t (z)")[0]["value"]


def test_several_columns_are_changed_in_one_commit(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t (a INT, b STRING, c INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    run("INSERT INTO t VALUES (1, NULL, 3)")
    with pytest.raises(ConstraintViolationError):
        run("ALTER TABLE t ALTER COLUMN a TYPE BIGINT, c SET NOT NULL, b SET NOT NULL")
    assert Table.open(tmp_path / "t").version == 1
    run("ALTER TABLE t ALTER COLUMN a TYPE BIGINT, a COMMENT 'wide', c FIRST, c SET NOT NULL")
    table = Table.open(tmp_path / "t")
    assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
        ("c", "integer", False),
        ("a", "long", True),
        ("b", "string", True),
    ]
    assert table.schema.fields[1].metadata["comment"] == "wide"
    last = run("DESCRIBE HISTORY t LIMIT 1")[0]
    assert (last["version"], last["operation"]) == (2, "CHANGE COLUMNS")
    changed = json.loads(dict(last["operationParameters"])["columns"])
    assert [column["name"] for column in changed] == ["a", "a", "c", "c"]


def test_paths_have_no_name_to_drop(orders: Run, tmp_path: Path) -> None:
    for name in ("orders", f"delta.`{tmp_path}/orders`", f"'{tmp_path}/orders'"):
        with pytest.raises(InvalidOperationError, match="delete its folder"):
            orders(f"DROP TABLE IF EXISTS {name}")
    orders("DROP TABLE IF EXISTS nothing")
    assert orders("SELECT count(*) FROM orders") == [{"count(1)": 3}]


def test_constraints_are_added_and_dropped(orders: Run) -> None:
    orders("ALTER TABLE orders ADD CONSTRAINT positive CHECK (id > 0)")
    with pytest.raises(ConstraintViolationError):
        orders("INSERT INTO orders VALUES (-1, 1, 'a')")
    orders("ALTER TABLE orders DROP CONSTRAINT positive")
    orders("ALTER TABLE orders DROP CONSTRAINT IF EXISTS positive")
    orders("INSERT INTO orders VALUES (-1, 1, 'a')")


def test_comments_of_tables_are_set(orders: Run) -> None:
    orders("COMMENT ON TABLE orders IS 'it''s'")
    assert orders("DESCRIBE DETAIL orders")[0]["description"] == "it's"


# ------------------------------------------------------------------------------------------------- SHOW, DESCRIBE
def test_what_tables_declare_is_shown(orders: Run) -> None:
    assert orders("SHOW COLUMNS IN orders") == [{"col_name": "id"}, {"col_name": "k"}, {"col_name": "s"}]
    assert orders("SHOW PARTITIONS orders") == [{"k": 1}, {"k": 2}]
    assert [line["col_name"] for line in orders("DESCRIBE EXTENDED orders")] == [
        *("id", "k", "s", "# Partition Information", "# col_name", "k", ""),
        *("# Detailed Table Information", "Table", "Type", "Location", "Provider", "Table Properties"),
    ]
    assert orders("DESCRIBE orders k")[1] == {"info_name": "data_type", "info_value": "int"}


# ------------------------------------------------------------------------------------------------ Delta's statements
def test_versions_are_restored_and_undone(orders: Run) -> None:
    orders("DELETE FROM orders")
    assert orders("RESTORE TABLE orders TO VERSION AS OF 1")[0]["num_of_files_after_restore"] == 2
    assert orders("UNDO orders")[0]["num_of_files_after_restore"] == 0
    operations = [line["operation"] for line in orders("DESCRIBE HISTORY orders LIMIT 2")]
    assert operations == ["RESTORE", "RESTORE"]


def test_files_are_rewritten_and_deleted(orders: Run, tmp_path: Path) -> None:
    orders("INSERT INTO orders VALUES (4, 1, 'c')")
    [done] = orders("OPTIMIZE orders WHERE orders.k = 1")
    assert (done["path"], done["metrics"]["numFilesRemoved"]) == (f"file:{tmp_path}/orders", 2)
    assert orders("REORG TABLE orders APPLY (PURGE)")[0]["metrics"]["numFilesRemoved"] == 0
    (tmp_path / "orders" / "k=1" / "old.parquet").write_bytes(b"")
    assert orders("VACUUM orders DRY RUN") == []
    assert orders("VACUUM orders LITE RETAIN 240 HOURS") == [{"path": f"file:{tmp_path}/orders"}]
    with pytest.raises(InvalidOperationError, match="retention"):
        orders("VACUUM orders RETAIN 0 HOURS")


def test_fsck_removes_files_that_are_gone(orders: Run, tmp_path: Path) -> None:
    [gone] = (tmp_path / "orders" / "k=2").glob("*.parquet")
    gone.unlink()
    expected = [
        {
            "dataFilePath": f"file:{gone}",
            "dataFileMissing": True,
            "deletionVectorPath": None,
            "deletionVectorFileMissing": False,
        }
    ]
    assert orders("FSCK REPAIR TABLE orders DRY RUN") == expected
    assert orders("FSCK REPAIR TABLE orders") == expected
    assert orders("SELECT count(*) AS n FROM orders") == [{"n": 2}]


def test_tables_are_cloned_and_converted(orders: Run, tmp_path: Path) -> None:
    assert (
        orders("CREATE TABLE c SHALLOW CLONE orders VERSION AS OF 0 TBLPROPERTIES ('a' = 'b')")[0][
            "source_num_of_files"
        ]
        == 0
    )
    assert orders("CREATE OR REPLACE TABLE c DEEP CLONE orders")[0]["num_copied_files"] == 2
    assert orders("CREATE TABLE IF NOT EXISTS c SHALLOW CLONE orders") == []
    with pytest.raises(TableNotFoundError):
        orders("REPLACE TABLE d SHALLOW CLONE orders")
    (tmp_path / "p" / "day=2026-01-01").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "p" / "day=2026-01-01" / "a.parquet")
    orders(f"CONVERT TO DELTA parquet.`{tmp_path}/p` PARTITIONED BY (day DATE)")
    assert orders("SELECT id FROM p WHERE day = DATE'2026-01-01'") == [{"id": 1}]
    orders("GENERATE symlink_format_manifest FOR TABLE p")
    assert (tmp_path / "p" / "_symlink_format_manifest").is_dir()


def test_c348_no_clustering_columns_are_taken_from_tables_without_them(run: Run) -> None:
    run("CREATE TABLE t (id BIGINT)")
    run("ALTER TABLE t CLUSTER BY NONE")
    assert [row["operation"] for row in run("DESCRIBE HISTORY t")] == ["CREATE TABLE"]
    properties = "TBLPROPERTIES ('delta.feature.domainMetadata' = 'supported')"
    run(f"CREATE TABLE p (id BIGINT, day DATE) PARTITIONED BY (day) {properties}")
    for columns in ("NONE", "(id)"):
        with pytest.raises(InvalidOperationError, match="a partitioned table cannot be clustered") as raised:
            run(f"ALTER TABLE p CLUSTER BY {columns}")
        assert raised.value.error_class == "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"


def test_layout_and_features_are_changed(run: Run) -> None:
    run("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY, b INT) CLUSTER BY (b)")
    run("ALTER TABLE t CLUSTER BY (id)")
    assert run("DESCRIBE DETAIL t")[0]["clusteringColumns"] == ["id"]
    run("ALTER TABLE t CLUSTER BY NONE")
    run("INSERT INTO t VALUES (70, 1)")
    run("ALTER TABLE t ALTER COLUMN id SYNC IDENTITY")
    (last,) = run("DESCRIBE HISTORY t LIMIT 1")
    assert last["operation"] == "CHANGE COLUMN"
    assert "highWaterMark" not in dict(last["operationParameters"])["column"]
    run("INSERT INTO t (b) VALUES (2)")
    assert run("SELECT id FROM t WHERE b = 2") == [{"id": 71}]
    with pytest.raises(InvalidOperationError, match="not an identity column"):
        run("ALTER TABLE t ALTER COLUMN b SYNC IDENTITY")
    with pytest.raises(InvalidOperationError, match="UNIFORM"):
        run("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")


def test_a_feature_is_dropped(run: Run) -> None:
    run("CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    run("ALTER TABLE t DROP FEATURE deletionVectors")
    assert "deletionVectors" not in run("DESCRIBE DETAIL t")[0]["tableFeatures"]


# -------------------------------------------------------------------------------------------------------- catalogs
@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[str]:
    connect_catalog(f"sqlite:///{tmp_path}/catalog.db", "shop")
    yield "shop"
    disconnect_catalog("shop")


def test_tables_of_a_catalog(catalog: str) -> None:
    def run(text: str, **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = sql(text, catalog=catalog, **options).to_pylist()
        return found

    run("CREATE SCHEMA IF NOT EXISTS shop.sales")
    run("CREATE SCHEMA IF NOT EXISTS sales")
    run("CREATE TABLE sales.o (id BIGINT)")
    run("INSERT INTO shop.sales.o VALUES (1)")
    run("CREATE TABLE p AS SELECT id * 2 AS d FROM o", schema="sales")
    assert run("SELECT shop.sales.p.d FROM shop.sales.p") == [{"d": 2}]
    assert {"catalog": "shop"} in run("SHOW CATALOGS LIKE 's*'")
    assert run("SHOW SCHEMAS") == [{"namespace": "sales"}]
    assert [line["tableName"] for line in run("SHOW TABLES IN sales LIKE 'p|q'")] == ["p"]
    run("ALTER TABLE sales.p RENAME TO sales.q")
    run("DROP TABLE sales.q")
    run("DROP TABLE IF EXISTS sales.q")
    with pytest.raises(CatalogNameNotFoundError):
        run("DROP TABLE sales.q")
    assert [line["tableName"] for line in run("SHOW TABLES", schema="sales")] == ["o"]
    with pytest.raises(InvalidOperationError, match="CASCADE"):
        run("DROP SCHEMA sales CASCADE")
    with pytest.raises(CatalogNameNotFoundError, match="no schema 'nope'"):
        run("USE nope")


def test_names_need_a_place_to_be_looked_up_in() -> None:
    with pytest.raises(InvalidOperationError, match="pass location="):
        sql("DESCRIBE DETAIL orders")
    with pytest.raises(InvalidOperationError, match="No connected catalog"):
        sql("SHOW TABLES")
    with pytest.raises(CatalogError):
        sql("DESCRIBE DETAIL a.b", catalog="nope")
    with pytest.raises(InvalidOptionError, match="either location or catalog"):
        sql("SELECT 1", "/tmp", catalog="shop")
    with pytest.raises(InvalidOptionError, match="give catalog"):
        sql("SELECT 1", schema="sales")


def test_analyze_and_refresh(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t (id BIGINT, k INT) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')")
    run("INSERT INTO t VALUES (1, 2)")
    run("ALTER TABLE t UNSET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols')")
    assert run("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS k") == []
    table = Table.open(tmp_path / "t")
    lacking = [table.compute_statistics(columns=[name], plan=True).files.num_rows for name in ("id", "k")]
    assert lacking == [1, 0]
    assert run("REFRESH TABLE t") == []
    with pytest.raises(InvalidOperationError, match="Leave PARTITION out"):
        run("ANALYZE TABLE t PARTITION (k = 2) COMPUTE STATISTICS")
    with pytest.raises(TableNotFoundError):
        run("REFRESH TABLE nothing")


def test_tables_made_from_a_query_keep_nothing_of_those_they_replace(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE t (k INT NOT NULL, CHECK (k > 0)) COMMENT 'one' TBLPROPERTIES ('a' = 'b')")
    for statement in ("CREATE OR REPLACE", "REPLACE"):
        run(f"{statement} TABLE t COMMENT 'two' AS SELECT 'x' AS s")
        table = Table.open(tmp_path / "t")
        assert (table.metadata.description, table.metadata.configuration) == ("two", {})
        assert table.history(1)[0]["operation"] == f"{statement} TABLE AS SELECT"


def test_show_some_partitions(run: Run) -> None:
    run("CREATE TABLE t (id INT, `D` DATE, s STRING) PARTITIONED BY (`D`, s)")
    run("INSERT INTO t VALUES (1, DATE'2026-01-02', 'a'), (2, DATE'2026-01-02', NULL), (3, DATE'2026-01-03', 'a')")
    assert [row["s"] for row in run("SHOW PARTITIONS t PARTITION (d = '2026-01-02', s = NULL)")] == [None]
    assert len(run("SHOW PARTITIONS t PARTITION (s = 'a')")) == 2
    with pytest.raises(InvalidOperationError, match="id, which is not a partition column"):
        run("SHOW PARTITIONS t PARTITION (id = 1)")


@pytest.mark.parametrize("name", ["current_date", "CURRENT_USER", "true", "null"])
def test_a_keyword_as_the_name_of_a_column_needs_backticks(run: Run, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidOperationError, match="is a keyword"):
        run(f"CREATE TABLE t (id INT, {name} INT)")
    run(f"CREATE TABLE t (id INT, `{name}` INT)")
    assert Table.open(tmp_path / "t").schema.names == ("id", name)
