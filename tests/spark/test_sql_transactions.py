"""BEGIN TRANSACTION, COMMIT and ROLLBACK in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import Table
from pyspark_delta.errors import ConcurrentAppendError, InvalidOperationError, TableNotFoundError
from pyspark_delta.spark.sql.transactions import is_open


class Transactions:
    """What every kind of session does."""

    @pytest.fixture
    def made(self, session: SparkSession, tmp_path: Path) -> Iterator[str]:
        """The name of a table with the ids 0 to 9 in the partitions 0 and 1."""
        rows = session.range(10).selectExpr("id", "id % 2 AS p")
        rows.write.format("delta").partitionBy("p").save(str(tmp_path / "t"))
        session.range(100, 102).selectExpr("id", "2 AS p").createOrReplaceTempView("new_rows")
        yield f"delta.`{tmp_path / 't'}`"
        if is_open(session):
            session.sql("ROLLBACK")

    def test_statements_become_one_version(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        session.sql("BEGIN TRANSACTION")
        assert session.sql(f"DELETE FROM {made} WHERE p = 1").collect() == [(5,)]
        session.sql(f"INSERT INTO {made} SELECT * FROM new_rows")
        assert session.sql(f"UPDATE {made} SET id = -id WHERE p = 0 AND id > 6").collect() == [(1,)]
        assert content(tmp_path) == list(range(10)), "queries see what is committed"
        assert session.sql("COMMIT").collect() == [(1,)]
        assert content(tmp_path) == [-8, 0, 2, 4, 6, 100, 101]
        newest = Table.open(str(tmp_path / "t")).history(1)[0]
        assert (newest["version"], newest["operation"]) == (1, "TRANSACTION")

    def test_statements_see_the_rows_of_those_before(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        session.sql("BEGIN TRANSACTION")
        session.sql(f"INSERT INTO {made} SELECT * FROM new_rows")
        assert session.sql(f"UPDATE {made} SET id = id + 100 WHERE id = 100 OR id = 0").collect() == [(2,)]
        doubled = f"(SELECT id * 2 AS id, p FROM {made} WHERE id >= 100)"
        session.sql(
            f"MERGE INTO {made} t USING {doubled} s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        )
        assert session.sql(f"DELETE FROM {made} WHERE p = 1").collect() == [(5,)]
        assert session.sql("COMMIT").collect() == [(1,)]
        assert content(tmp_path) == [2, 4, 6, 8, 100, 101, 202, 400]

    def test_nothing_is_left_of_a_transaction_that_is_rolled_back(
        self, session: SparkSession, made: str, tmp_path: Path
    ) -> None:
        before = files(tmp_path)
        session.sql("BEGIN TRANSACTION")
        session.sql(f"INSERT OVERWRITE {made} SELECT * FROM new_rows")
        session.sql("ROLLBACK TRANSACTION")
        assert (content(tmp_path), files(tmp_path)) == (list(range(10)), before)
        session.sql(f"DELETE FROM {made} WHERE id = 0")
        assert content(tmp_path) == list(range(1, 10))

    def test_a_failed_statement_prevents_the_commit(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        session.sql("BEGIN TRANSACTION")
        session.sql(f"DELETE FROM {made} WHERE p = 1")
        with pytest.raises(Exception, match="nothing_such"):
            session.sql(f"UPDATE {made} SET id = nothing_such").collect()
        with pytest.raises(InvalidOperationError, match="nothing was committed"):
            session.sql("COMMIT")
        assert content(tmp_path) == list(range(10))

    def test_only_one_table_and_one_transaction(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        session.range(1).write.format("delta").save(str(tmp_path / "u"))
        for text, match in (("COMMIT", "No transaction is open"), ("ROLLBACK", "No transaction is open")):
            with pytest.raises(InvalidOperationError, match=match):
                session.sql(text)
        session.sql("BEGIN TRANSACTION")
        session.sql(f"DELETE FROM {made} WHERE p = 1")
        for text, match in (
            ("BEGIN TRANSACTION", "open already"),
            (f"OPTIMIZE {made}", "OPTIMIZE cannot be part of a transaction"),
            (f"CREATE TABLE delta.`{tmp_path / 'new'}` (a INT) USING delta", "CREATE TABLE cannot be part"),
            (f"CREATE TABLE delta.`{tmp_path / 'new'}` USING delta AS SELECT 1 a", "CREATE TABLE AS SELECT cannot be"),
            (f"DELETE FROM delta.`{tmp_path / 'u'}`", "all of its statements are about one table"),
        ):
            with pytest.raises(InvalidOperationError, match=match) as caught:
                session.sql(text)
            assert caught.value.error_class == "DELTA_INVALID_TRANSACTION_STATE"
        assert not (tmp_path / "new").exists()

    def test_a_concurrent_commit_conflicts(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        session.sql("BEGIN TRANSACTION")
        session.sql(f"DELETE FROM {made} WHERE p = 1")
        session.table("new_rows").selectExpr("id", "CAST(1 AS BIGINT) AS p").write.format("delta").mode("append").save(
            str(tmp_path / "t")
        )
        with pytest.raises(ConcurrentAppendError):
            session.sql("COMMIT")
        assert not is_open(session)


class TestClassic(Transactions):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark

    @pytest.mark.since("4.0")
    def test_scripts_run_them_by_execute_immediate(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        steps = ["BEGIN TRANSACTION", f"DELETE FROM {made} WHERE p = 1", f"DELETE FROM {made} WHERE id = 0", "COMMIT"]
        body = " ".join(f"EXECUTE IMMEDIATE '{step}';" for step in steps)
        session.sql(f"BEGIN {body} END").collect()
        assert (content(tmp_path), Table.open(str(tmp_path / "t")).version) == ([2, 4, 6, 8], 1)

    def test_a_missing_table_is_named(self, session: SparkSession, made: str, tmp_path: Path) -> None:
        session.sql("BEGIN TRANSACTION")
        with pytest.raises(TableNotFoundError):
            session.sql(f"DELETE FROM delta.`{tmp_path / 'none'}`").collect()


class TestConnect(Transactions):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


def content(folder: Path) -> list[Any]:
    return sorted(Table.open(str(folder / "t")).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*.parquet")}
