"""ALTER TABLE between BEGIN TRANSACTION and COMMIT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from tests.managed import Warehouse

from pyspark_delta import DeltaTable, Table
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.errors import ConstraintViolationError, InvalidOperationError, MetadataChangedError
from pyspark_delta.spark.sql.transactions import is_open

# What may come before the rows, in an order in which each statement needs those before it.
STATEMENTS = (
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'mine' = '1', 'other' = '2')",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('other')",
    "ALTER TABLE {t} ADD COLUMNS (note STRING COMMENT 'new', gone INT)",
    "ALTER TABLE {t} RENAME COLUMN id TO number",
    "ALTER TABLE {t} ALTER COLUMN note SET DEFAULT 'none'",
    "ALTER TABLE {t} ALTER COLUMN number COMMENT 'of the row', note FIRST",
    "ALTER TABLE {t} DROP COLUMN gone",
    "ALTER TABLE {t} ADD CONSTRAINT few CHECK (number < 100)",
    "ALTER TABLE {t} ADD CONSTRAINT more CHECK (number >= 0)",
    "ALTER TABLE {t} DROP CONSTRAINT more",
    "ALTER TABLE {t} CLUSTER BY (number)",
)
ROWS = (
    "UPDATE {t} SET note = 'changed' WHERE number = 1",
    "INSERT INTO {t} (number) VALUES (50)",
)


class Definitions:
    """What every kind of session does."""

    @pytest.fixture
    def made(self, session: SparkSession, tmp_path: Path) -> Iterator[str]:
        """The name of a table with the ids 0 to 2, in a directory with characters that SQL has to quote."""
        location = str(tmp_path / "a 't.ä")
        session.range(0, 3, 1, 3).write.format("delta").save(location)
        yield f"delta.`{location}`"
        if is_open(session):
            session.sql("ROLLBACK")

    @pytest.mark.since("4.0")  # the parser takes one column before
    def test_definition_and_rows_are_one_version(self, session: SparkSession, made: str) -> None:
        check_one_version(session, made, made.split("`")[1])

    def test_a_rollback_leaves_the_definition(self, session: SparkSession, made: str) -> None:
        session.sql("BEGIN TRANSACTION")
        session.sql(f"ALTER TABLE {made} ADD COLUMN note STRING")
        session.sql(f"INSERT INTO {made} VALUES (3, 'new')")
        session.sql("ROLLBACK")
        opened = Table.open(made.split("`")[1])
        assert (opened.version, opened.schema.names) == (0, ("id",))
        session.sql(f"ALTER TABLE {made} ADD COLUMN other STRING")
        assert Table.open(made.split("`")[1]).schema.names == ("id", "other")

    def test_a_failed_change_prevents_the_commit(self, session: SparkSession, made: str) -> None:
        for statement, error in {
            f"ALTER TABLE {made} ADD CONSTRAINT few CHECK (id < 2)": ConstraintViolationError,
            f"ALTER TABLE {made} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')": InvalidOperationError,
            f"ALTER TABLE {made} RENAME COLUMN nothing TO something": (AnalysisException, InvalidOperationError),
        }.items():
            session.sql("BEGIN TRANSACTION")
            session.sql(f"ALTER TABLE {made} ADD COLUMN note STRING")
            with pytest.raises(error):  # type: ignore[call-overload]
                session.sql(statement)
            with pytest.raises(InvalidOperationError, match="nothing was committed"):
                session.sql("COMMIT")
            assert Table.open(made.split("`")[1]).version == 0

    def test_the_definition_may_come_after_rows(self, session: SparkSession, made: str) -> None:
        check_after_rows(session, made)

    def test_describe_and_show_are_what_commit_leaves(self, session: SparkSession, tmp_path: Path) -> None:
        name = f"delta.`{tmp_path / 'p'}`"
        session.sql(f"CREATE TABLE {name} (id BIGINT, k INT) USING delta PARTITIONED BY (k)")
        session.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
        check_shown(session, name)

    def test_a_concurrent_change_conflicts(self, session: SparkSession, made: str) -> None:
        session.sql("BEGIN TRANSACTION")
        session.sql(f"ALTER TABLE {made} ADD COLUMN note STRING")
        Table.open(made.split("`")[1]).alter().set_comment("of another writer")
        with pytest.raises(MetadataChangedError):
            session.sql("COMMIT")

    @pytest.mark.since("4.0")  # the parser takes one column before
    def test_tables_of_a_connected_catalog(self, session: SparkSession, tmp_path: Path) -> None:
        warehouse = Warehouse(tmp_path)
        name = warehouse.full("t")
        try:
            session.range(3).write.saveAsTable(name)
            check_one_version(session, name, None)
            session.sql(f"CREATE TABLE {warehouse.full('shown')} (id BIGINT, k INT) USING delta PARTITIONED BY (k)")
            check_shown(session, warehouse.full("shown"))
            check_names_stay(session, warehouse.full("shown"), warehouse.full("renamed"))
        finally:
            disconnect_catalog(warehouse.name)


SHOWN = (
    *("DESCRIBE {t}", "DESCRIBE EXTENDED {t}", "DESCRIBE {t} note", "DESCRIBE DETAIL {t}"),
    *("SHOW COLUMNS IN {t}", "SHOW TBLPROPERTIES {t}", "SHOW TBLPROPERTIES {t} ('mine')"),
    *("SHOW CREATE TABLE {t}", "SHOW PARTITIONS {t}", "SHOW PARTITIONS {t} PARTITION (k = 3)"),
)


def check_shown(session: SparkSession, name: str) -> None:
    """Statements that show a table give before COMMIT what they give after it."""

    def shown() -> dict[str, Any]:
        return {one: without_times(session.sql(one.format(t=name))) for one in SHOWN}

    for statement in (
        "BEGIN TRANSACTION",
        f"ALTER TABLE {name} ADD COLUMN note STRING",
        f"COMMENT ON TABLE {name} IS 'changed'",
        f"ALTER TABLE {name} SET TBLPROPERTIES ('mine' = 'yes')",
        f"INSERT INTO {name} VALUES (3, 3, 'new')",
        f"DELETE FROM {name} WHERE k = 1",
    ):
        session.sql(statement)
    before = shown()
    assert before["SHOW PARTITIONS {t} PARTITION (k = 3)"] == [(3,)]
    session.sql("COMMIT")
    after = shown()
    for one in SHOWN:
        assert before[one] == after[one], one


def check_names_stay(session: SparkSession, name: str, new_name: str) -> None:
    """Dropped or renamed in a transaction, the table would be gone when it commits."""
    session.sql("BEGIN TRANSACTION")
    session.sql(f"INSERT INTO {name} VALUES (4, 4, 'newest')")
    session.sql(f"REFRESH TABLE {name}")
    for statement in (f"DROP TABLE {name}", f"ALTER TABLE {name} RENAME TO {new_name}"):
        with pytest.raises(InvalidOperationError, match="cannot be part of a transaction"):
            session.sql(statement)
    session.sql("COMMIT")
    assert session.sql(f"SELECT note FROM {name} WHERE id = 4").collect() == [("newest",)]


def without_times(frame: DataFrame) -> list[Any]:
    return frame.drop("lastModified").collect()


EXPECTED = [(None, 0), ("changed", 1), (None, 2), ("none", 50)]


def found(session: SparkSession, name: str) -> list[Any]:
    return sorted(session.sql(f"SELECT note, number FROM {name}").collect(), key=lambda row: row[1])


def check_after_rows(session: SparkSession, name: str) -> None:
    """Each statement sees what the ones before it have done."""
    for statement in (
        "BEGIN TRANSACTION",
        f"DELETE FROM {name} WHERE id = 1",
        f"ALTER TABLE {name} ADD CONSTRAINT few CHECK (id <> 1)",
        f"INSERT INTO {name} VALUES (7)",
        f"ALTER TABLE {name} ADD COLUMN note STRING",
        f"INSERT INTO {name} SELECT max(id) + 1, concat('after ', count(note), ' of ', count(*)) FROM {name}",
    ):
        session.sql(statement)
    expected = [(0, None), (2, None), (7, None), (8, "after 0 of 3")]
    query = f"SELECT * FROM {name} ORDER BY id"
    assert session.sql(query).collect() == expected
    assert session.sql("COMMIT").columns == ["version"]
    assert session.sql(query).collect() == expected


def check_one_version(session: SparkSession, name: str, path: str | None) -> None:
    def table() -> Any:
        return DeltaTable.forPath(session, path) if path else DeltaTable.forName(session, name)

    before = table().history(1).head()[0]
    session.sql("BEGIN TRANSACTION")
    for statement in (*STATEMENTS, *ROWS):
        session.sql(statement.format(t=name))
    assert found(session, name) == EXPECTED, "queries see what the transaction does"
    assert table().toDF().columns == ["id"], "everything else sees what is committed"
    assert session.sql("COMMIT").collect() == [(before + 1,)]
    assert found(session, name) == EXPECTED
    detail = table().detail().head()
    assert {"delta.constraints.few", "mine"} <= detail.properties.keys()
    assert detail.properties.keys().isdisjoint({"delta.constraints.more", "other"})
    assert detail.clusteringColumns == ["number"]


class TestClassic(Definitions):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark

    @pytest.mark.since("4.0")  # 3.5 does not tell CREATE TABLE AS SELECT apart, and it is refused
    def test_tables_of_the_session_catalog(self, session: SparkSession) -> None:
        """The copy in the catalog follows the commit."""
        session.sql("CREATE TABLE defined_at_once USING delta AS SELECT id FROM range(3)")
        try:
            check_one_version(session, "defined_at_once", None)
            for statement in ("BEGIN TRANSACTION", "ALTER TABLE defined_at_once ADD COLUMN last INT"):
                session.sql(statement)
            assert session.sql("SELECT * FROM defined_at_once").columns == ["note", "number", "last"]
            session.sql("ROLLBACK")
            assert session.sql("SELECT * FROM defined_at_once").columns == ["note", "number"], "of the rollback"
            for statement in ("BEGIN TRANSACTION", "ALTER TABLE defined_at_once ADD COLUMN last INT", "COMMIT"):
                session.sql(statement)
            java: Any = session
            catalog = java._jsparkSession.sessionState().catalog().externalCatalog()
            entry = catalog.getTable("default", "defined_at_once")
            assert list(entry.schema().fieldNames()) == ["note", "number", "last"]
        finally:
            session.sql("DROP TABLE defined_at_once")

    @pytest.mark.since("4.0")
    def test_tables_of_the_session_catalog_after_rows(self, session: SparkSession) -> None:
        session.sql("CREATE TABLE defined_later USING delta AS SELECT id FROM range(3)")
        try:
            check_after_rows(session, "defined_later")
            session.sql("CREATE OR REPLACE TABLE defined_later (id BIGINT, k INT) USING delta PARTITIONED BY (k)")
            check_shown(session, "defined_later")
            check_names_stay(session, "defined_later", "renamed")
        finally:
            session.sql("DROP TABLE defined_later")

    @pytest.mark.since("4.0")
    def test_scripts(self, session: SparkSession, made: str) -> None:
        statements = "".join(f"{one.format(t=made)};" for one in (*STATEMENTS, *ROWS))
        session.sql(f"BEGIN BEGIN TRANSACTION; {statements} COMMIT; END")
        opened = Table.open(made.split("`")[1])
        assert (opened.version, opened.schema.names) == (1, ("note", "number"))


class TestConnect(Definitions):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
