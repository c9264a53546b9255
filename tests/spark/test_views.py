"""Views of Delta tables as targets of writes: Spark refuses them, or the write is committed; nothing is ever lost."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.managed import Warehouse
from tests.spark.made_tables import DataFile, make_table

from pyspark_delta.errors import InvalidOperationError, translate
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.table import Table

REFUSED = (AnalysisException, InvalidOperationError)
DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
NEW = "SELECT 9L AS id, 'z' AS name"

# What would change the table of the view `v`, were it allowed.
STATEMENTS = (
    f"INSERT OVERWRITE v {NEW}",
    "INSERT OVERWRITE v SELECT * FROM v",
    f"INSERT INTO v REPLACE WHERE id > 0 {NEW}",
    "INSERT OVERWRITE v PARTITION (id = 1) SELECT 'z'",
    f'EXECUTE IMMEDIATE "INSERT OVERWRITE v {NEW}"',
    f"CACHE TABLE v; INSERT OVERWRITE v {NEW}",
    f"CREATE OR REPLACE TEMP VIEW w AS TABLE v; INSERT OVERWRITE w {NEW}",
    "LOAD DATA LOCAL INPATH '{more}' INTO TABLE v",
    "LOAD DATA LOCAL INPATH '{more}' OVERWRITE INTO TABLE v",
    "TRUNCATE TABLE v",
    "ANALYZE TABLE v COMPUTE STATISTICS",
    "MSCK REPAIR TABLE v",
    "ALTER TABLE v ADD COLUMNS (x INT)",
    "ALTER TABLE v SET LOCATION '{elsewhere}'",
    "ALTER TABLE v DROP PARTITION (id = 1)",
    "ALTER TABLE v RECOVER PARTITIONS",
)
# These are commits of a classic session if the view shows all rows and columns of the table.
ROW_CHANGES = (
    f"INSERT INTO v {NEW}",
    "INSERT INTO v (id) VALUES (9)",
    f"INSERT INTO v BY NAME {NEW}",
    "INSERT INTO v SELECT * FROM v",
    "FROM v INSERT INTO v SELECT id, name",
    "DELETE FROM v WHERE id = 1",
    "UPDATE v SET id = 5",
    f"MERGE INTO v USING ({NEW}) s ON v.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "DELETE FROM v",
)
# These succeed, and leave the table alone.
HARMLESS = (
    f"EXPLAIN INSERT OVERWRITE v {NEW}",
    "REFRESH TABLE v",
    "REFRESH '{path}'",
    "CACHE TABLE v; REFRESH TABLE v; REFRESH '{path}'",
    "DROP VIEW v",
)


def contents(path: str) -> dict[str, str]:
    """What every file below a path holds; the checksums that Hadoop puts beside files count too."""
    files = (file for file in Path(path).rglob("*") if file.is_file())
    return {str(file.relative_to(path)): hashlib.md5(file.read_bytes()).hexdigest() for file in files}


def run(session: SparkSession, statements: str, path: str, tmp_path: Path) -> None:
    more, elsewhere = tmp_path / "more.parquet", tmp_path / "elsewhere"
    pq.write_table(ROWS, more)
    for statement in statements.split("; "):
        session.sql(statement.format(path=path, more=more, elsewhere=elsewhere)).collect()


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


class Views:
    """The tests; a session of each kind runs them all. `appends` is True if it adds rows through views."""

    appends: ClassVar[bool] = False

    @pytest.fixture
    def table(self, session: SparkSession, tmp_path: Path) -> str:
        path = make_table(tmp_path / "t", [DataFile(ROWS), DataFile(ROWS.slice(0, 1))], features=())
        session.read.format("delta").load(path).createOrReplaceTempView("v")
        return path

    @pytest.mark.since("4.0")  # for EXECUTE IMMEDIATE
    def test_statements_never_change_the_table(self, session: SparkSession, table: str, tmp_path: Path) -> None:
        before, read = contents(table), rows(session.table("v"))
        for statements in STATEMENTS if self.appends else (*STATEMENTS, *ROW_CHANGES):
            with pytest.raises(Exception) as raised:  # noqa: PT011 - Spark has an error for each kind of statement
                run(session, statements, table, tmp_path)
            assert "PARSE_SYNTAX_ERROR" not in str(raised.value), statements
            assert contents(table) == before, statements
        assert rows(session.table("v")) == rows(session.read.format("delta").load(table)) == read
        session.catalog.clearCache()

    def test_harmless_statements_leave_the_table_alone(self, session: SparkSession, table: str, tmp_path: Path) -> None:
        frame, before = session.read.format("delta").load(table), contents(table)
        read = rows(frame)
        for statements in HARMLESS:
            run(session, statements, table, tmp_path)
            assert contents(table) == before, statements
            assert rows(frame) == rows(session.read.format("delta").load(table)) == read, statements
        session.catalog.clearCache()

    @pytest.mark.parametrize("kind", ["alias", "old", "where", "cached", "path", "toDF", "changes", "hint", "deleted"])
    def test_views_of_every_frame(self, session: SparkSession, table: str, tmp_path: Path, kind: str) -> None:
        def load(**options: object) -> DataFrame:
            return session.read.format("delta").options(**options).load(table)

        frames: dict[str, Callable[[], DataFrame]] = {
            "alias": lambda: load().alias("x"),
            "old": lambda: load(versionAsOf=0),
            "where": lambda: load(where="id > 0"),
            "cached": lambda: load().cache(),
            "path": lambda: session.table(f"delta.`{table}`"),
            "toDF": lambda: DeltaTable.forPath(session, table).toDF(),
            "changes": lambda: load(readChangeFeed=True, startingVersion=0),
            "hint": lambda: load().hint("broadcast"),
            "deleted": load,
        }
        if kind == "changes":
            table = str(tmp_path / "fed")
            session.sql(NEW).write.format("delta").option("delta.enableChangeDataFeed", True).save(table)
        if kind == "deleted":
            table = make_table(tmp_path / "deleted", [DataFile(ROWS, deleted=[0])])
        self.check_refused(session, frames[kind](), table, is_whole=kind not in ("old", "where", "changes", "hint"))

    def test_views_of_tables_of_a_catalog(self, session: SparkSession, tmp_path: Path) -> None:
        warehouse = Warehouse(tmp_path)
        session.range(3).selectExpr("id", "'a' AS name").writeTo(warehouse.full("t")).create()
        self.check_refused(session, session.table(warehouse.full("t")), warehouse.root)

    def test_partitioned_tables_with_dynamic_overwrite(self, session: SparkSession, tmp_path: Path) -> None:
        files = [DataFile(pa.table({"id": [i]}), {"name": name}) for i, name in enumerate("ab")]
        path = make_table(tmp_path / "t", files, partition_by={"name": "string"}, features=())
        session.conf.set(DYNAMIC, "dynamic")
        try:
            self.check_refused(session, session.read.format("delta").load(path), path)
        finally:
            session.conf.unset(DYNAMIC)

    def check_refused(self, session: SparkSession, frame: DataFrame, path: str, *, is_whole: bool = True) -> None:
        """Spark does not write into views of the frame, or only adds rows, and nothing below the path changes."""
        columns = len(frame.columns)
        new = session.sql(f"SELECT 9L, 'z'{', 1L, 1L, 1L'[: 4 * (columns - 2)]}")
        before, read = contents(path), rows(frame)
        frame.createOrReplaceTempView("v")
        new.createOrReplaceTempView("new")
        for how in ("OVERWRITE",) if self.appends and is_whole else ("INTO", "OVERWRITE"):
            with pytest.raises(REFUSED):
                session.sql(f"INSERT {how} v SELECT * FROM new")
        with pytest.raises(InvalidOperationError, match="is a view"):
            new.write.insertInto("v", overwrite=True)
        assert contents(path) == before
        assert rows(frame) == rows(session.table("v")) == read

    def test_global_views_and_frames_named_in_sql(self, session: SparkSession, table: str) -> None:
        before, frame = contents(table), session.read.format("delta").load(table)
        frame.createOrReplaceGlobalTempView("v")
        for how in ("OVERWRITE",) if self.appends else ("INTO", "OVERWRITE"):
            with pytest.raises(REFUSED):
                session.sql(f"INSERT {how} global_temp.v {NEW}")
            with pytest.raises(REFUSED):
                session.sql(f"INSERT {how} {{t}} {NEW}", t=frame)
        assert contents(table) == before

    @pytest.mark.since("4.2")  # the error of older releases has no class
    def test_writers_say_what_to_do(self, session: SparkSession, table: str) -> None:
        before, new = contents(table), session.sql(NEW)
        writes: list[Callable[[], object]] = [
            lambda: new.write.insertInto("v"),
            lambda: new.write.mode("overwrite").insertInto("v"),
            lambda: new.writeTo("v").append(),
            lambda: new.writeTo("v").overwrite(F.lit(True)),
            lambda: new.writeTo("v").overwritePartitions(),
        ]
        for write in writes:
            with pytest.raises(InvalidOperationError, match=r'save\("/path/to/table"\)') as raised:
                write()
            assert raised.value.error_class == "DELTA_CANNOT_WRITE_INTO_VIEW"
            assert isinstance(raised.value.__cause__, AnalysisException)
        assert contents(table) == before
        with pytest.raises(AnalysisException, match="cannot be found"):
            new.write.insertInto("no_such_table")

    def test_catalog_functions_leave_the_table_alone(self, session: SparkSession, table: str) -> None:
        before, read = contents(table), rows(session.table("v"))
        session.catalog.cacheTable("v")
        session.catalog.refreshTable("v")
        session.catalog.refreshByPath(table)
        assert rows(session.table("v")) == read
        session.catalog.uncacheTable("v")
        with pytest.raises(AnalysisException):
            session.catalog.recoverPartitions("v")
        session.catalog.dropTempView("v")
        assert contents(table) == before


class TestClassic(Views):
    appends = True

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark

    def test_row_changes_through_a_view_are_commits(self, session: SparkSession, table: str) -> None:
        for number, statement in enumerate(ROW_CHANGES, 1):
            session.read.format("delta").load(table).createOrReplaceTempView("v")
            session.sql(statement)
            assert Table.open(table).version == number, statement
        assert rows(session.read.format("delta").load(table)) == []


class TestConnect(Views):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


@pytest.mark.since("4.0")  # for the Python Data Source
def test_tables_of_sparks_catalog_commit(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", [DataFile(ROWS)], features=())
    delta_spark.catalog.createTable("of_spark", table, source="delta")
    try:
        delta_spark.sql(f"INSERT INTO of_spark {NEW}")
        assert Table.open(table).scan().to_arrow()["id"].to_pylist() == [1, 2, 3, 9]
        delta_spark.sql(f"INSERT OVERWRITE of_spark {NEW}")
    finally:
        delta_spark.sql("DROP TABLE of_spark")
    assert Table.open(table).scan().to_arrow()["id"].to_pylist() == [9]
    assert Table.open(table).version == 2


@pytest.mark.since("4.0")
def test_views_of_the_data_source_commit(plain_spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [DataFile(ROWS)], features=())
    plain_spark.read.format("delta").load(path).createOrReplaceTempView("v")
    plain_spark.sql(f"INSERT INTO v {NEW}")
    assert Table.open(path).scan().to_arrow()["id"].to_pylist() == [1, 2, 3, 9]
    plain_spark.sql(f"INSERT OVERWRITE v {NEW}")
    assert Table.open(path).scan().to_arrow()["id"].to_pylist() == [9]
    assert Table.open(path).version == 2


@pytest.mark.since("4.0")
@pytest.mark.parametrize(
    ("option", "value", "suffix"),
    [
        ("versionAsOf", "0", ""),
        ("where", "id > 1", ""),
        ("columns", "id, name", ""),
        ("timeZone", "UTC", "@v0"),
    ],
)
def test_views_of_a_part_or_an_old_version_are_not_written_to_by_the_data_source(
    plain_spark: SparkSession, tmp_path: Path, option: str, value: str, suffix: str
) -> None:
    path = make_table(tmp_path / "t", [DataFile(ROWS)], features=())
    before = contents(str(tmp_path))
    frame = plain_spark.read.format("delta").option(option, value).load(path + suffix)
    frame.createOrReplaceTempView("v")
    for how in ("INTO", "OVERWRITE"):
        with pytest.raises(InvalidOperationError, match="Nothing was written") as raised, translate():
            plain_spark.sql(f"INSERT {how} v {NEW}")
        assert raised.value.error_class == "DELTA_CANNOT_WRITE_INTO_VIEW"
    assert contents(str(tmp_path)) == before


def test_table_objects_of_a_session_that_is_not_enabled(plain_spark: SparkSession, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [DataFile(ROWS)], features=())
    before = contents(path)
    DeltaTable.forPath(plain_spark, path).toDF().createOrReplaceTempView("v")
    for how in ("INTO", "OVERWRITE"):
        with pytest.raises(AnalysisException):
            plain_spark.sql(f"INSERT {how} v {NEW}")
    assert contents(path) == before
