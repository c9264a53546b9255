"""`DeltaTable.restoreToVersion`, `undo`, `vacuum`, `maintain` and `check`, on classic sessions and Spark Connect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import Budget, DeltaTable, MaintenancePolicy
from pyspark_delta.errors import InvalidOperationError

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def ids(table: DeltaTable) -> list[int]:
    return sorted(row.id for row in table.toDF().select("id").collect())


class Maintenance:
    """The tests; a session of each kind runs them all."""

    @pytest.fixture
    def table(self, session: SparkSession, tmp_path: Path) -> DeltaTable:
        path = str(tmp_path / "t")
        frame: DataFrame = session.range(10).coalesce(1)
        frame.write.format("delta").save(path)
        table = DeltaTable.forPath(session, path)
        table.delete("id < 3")
        return table

    def test_versions_are_restored(self, session: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
        (row,) = table.restoreToVersion(0).collect()
        assert list(row.asDict()) == [
            *("table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files"),
            *("removed_files_size", "restored_files_size"),
        ]
        assert (row.num_of_files_after_restore, row.num_removed_files, row.num_restored_files) == (1, 1, 1)
        assert ids(table) == list(range(10))
        for version in range(3):
            log = tmp_path / "t" / "_delta_log" / f"{version:020}.json"
            os.utime(log, (version * 86_400, version * 86_400))
        table.restoreToTimestamp("1970-01-02 12:00:00")
        assert ids(table) == list(range(3, 10))
        table.undo()
        assert ids(table) == list(range(10))
        history = {row.version: row for row in table.history().collect()}
        assert (history[2].operation, history[2].operationParameters["version"]) == ("RESTORE", "0")
        assert history[3].operationParameters["timestamp"] == "1970-01-02 12:00:00"
        assert "PySpark/" in history[2].engineInfo

    def test_tables_are_checked_and_repaired(self, table: DeltaTable, tmp_path: Path) -> None:
        assert table.check("data").findings == ()
        hint = tmp_path / "t" / "_delta_log" / "_last_checkpoint"
        hint.write_text('{"version":9,"size":1}')
        assert [step.name for step in table.repair(plan=True).steps] == ["hint"]
        assert table.repair().repairs == ("hint",)
        assert table.check().findings == ()
        assert table.health().is_good

    def test_maintenance_follows_a_policy(self, table: DeltaTable, tmp_path: Path) -> None:
        policy = MaintenancePolicy(vacuum_days=None, checkpoint_commits=1)
        planned = {row.name: (row.due, row.result) for row in table.maintain(policy, dryRun=True).collect()}
        assert (planned["checkpoint"], planned["vacuum"]) == ((True, ""), (False, ""))
        assert not list(tmp_path.glob("t/_delta_log/*.checkpoint.parquet"))
        done = {row.name: row.result for row in table.maintain(policy, budget=Budget(seconds=60)).collect()}
        assert done["checkpoint"].startswith("written for version")
        assert len(list(tmp_path.glob("t/_delta_log/*.checkpoint.parquet"))) == 1
        assert ids(table) == list(range(3, 10))

    def test_files_are_vacuumed(self, session: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
        path = tmp_path / "t"
        removed = {file.name for file in path.glob("*.parquet")}
        table.toDF().coalesce(1).write.format("delta").mode("overwrite").save(str(path))
        assert table.vacuum(dryRun=True).collect() == []
        with pytest.raises(InvalidOperationError, match="shorter"):
            table.vacuum(0)
        session.conf.set(CHECK, "false")
        try:
            would_go = table.vacuum(0, dryRun=True).where("kind = 'data'").collect()
            assert {row.path.rpartition("/")[2] for row in would_go} == removed
            assert sum(row.size for row in would_go) == sum((path / name).stat().st_size for name in removed)
            listed = session.createDataFrame(
                [(f"file:{path}/{name}", 1, False, 0) for name in removed],
                "path string, length bigint, isDir boolean, modificationTime bigint",
            )
            assert table.vacuum(0, dryRun=True, inventory=listed).count() == len(removed)
            assert [row.path for row in table.vacuum(0).collect()] == [f"file:{path}"]
        finally:
            session.conf.unset(CHECK)
        assert removed.isdisjoint(file.name for file in path.glob("*.parquet"))
        assert ids(table) == list(range(3, 10))


class TestClassic(Maintenance):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Maintenance):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
