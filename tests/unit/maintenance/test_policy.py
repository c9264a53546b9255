"""`Table.maintain`: what is due and why, and what it does within a budget."""

from __future__ import annotations

import os
import re
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.maintenance.policy import MaintenancePolicy, MaintenanceReport
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table


def make(path: Path) -> Table:
    """A table of 12 small files, four of them with deletion vectors."""
    table = Table.create(
        path, "id BIGINT", properties={"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1000"}
    )
    for number in range(12):
        table.append({"id": [number * 10 + place for place in range(10)]})
    table.delete("id in (1, 11, 21, 31)")
    return table


def due(report: MaintenanceReport) -> dict[str, bool]:
    return {task.name: task.due for task in report.tasks}


def is_vacuum_due(path: Path) -> bool:
    clear_cache(str(path))
    return due(Table.open(path).maintain(plan=True))["vacuum"]


def test_a_new_table_is_left_alone(tmp_path: Path) -> None:
    table = Table.write(tmp_path, {"id": [1]})
    plan = table.maintain(plan=True)
    assert due(plan) == {"optimize": False, "purge": False, "statistics": False, "vacuum": False, "checkpoint": False}
    assert "vacuum: not due, the table is younger than 7 days" in str(plan)
    assert table.maintain().version == table.version == 0


def test_what_is_due_is_done_once(tmp_path: Path) -> None:
    table = make(tmp_path)
    policy = MaintenancePolicy(vacuum_days=0, checkpoint_commits=10)
    plan = table.maintain(policy, plan=True)
    assert due(plan) == {"optimize": True, "purge": True, "statistics": False, "vacuum": True, "checkpoint": True}
    assert "4 of 12 files have deletion vectors" in str(plan)
    before = table.version
    report = table.maintain(policy)
    assert due(report) == {"optimize": True, "purge": False, "statistics": False, "vacuum": True, "checkpoint": True}
    assert [row["operation"] for row in reversed(table.history(table.version - before))] == [
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
    ]
    assert (table.snapshot.num_files(), table.count()) == (1, 116)
    assert (tmp_path / "_delta_log" / f"{table.version:020d}.checkpoint.parquet").exists()
    again = table.maintain(MaintenancePolicy(checkpoint_commits=10))
    assert due(again) == {"optimize": False, "purge": False, "statistics": False, "vacuum": False, "checkpoint": False}


def test_vectors_are_purged_where_compaction_is_not_worth_it(tmp_path: Path) -> None:
    table = make(tmp_path)
    report = table.maintain(MaintenancePolicy(saved_files=100))
    assert due(report) == {"optimize": False, "purge": True, "statistics": False, "vacuum": False, "checkpoint": False}
    assert table.inspect("partitions").to_arrow()["num_deleted_records"].to_pylist() == [0]


def test_missing_statistics_are_computed_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2])}), tmp_path / "f.parquet")
    table = Table.convert(tmp_path, statistics=False)
    assert due(table.maintain(MaintenancePolicy(statistics=False), plan=True))["statistics"] is False
    task = next(task for task in table.maintain().tasks if task.name == "statistics")
    assert (task.due, task.why, task.result) == (True, "1 file without statistics", "1 file got statistics")
    assert '"numRecords":2' in table.snapshot.files(("stats",))["stats"][0].as_py()
    assert due(table.maintain(plan=True))["statistics"] is False


def test_a_clustered_table_is_clustered_once(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT", cluster_by=["id"])
    table.append({"id": [3, 1, 2]})
    assert "bytes are not clustered" in table.maintain(plan=True).tasks[0].why
    report = table.maintain()
    assert due(report)["optimize"]
    assert table.history(1)[0]["operation"] == "OPTIMIZE"
    assert not due(table.maintain(plan=True))["optimize"]
    table.append({"id": [4]})
    assert not due(table.maintain(MaintenancePolicy(unclustered_share=0.9), plan=True))["optimize"]


def test_a_vacuum_is_due_some_days_after_the_last(tmp_path: Path) -> None:
    table = make(tmp_path)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()
    log.write_text(re.sub('"createdTime":[0-9]+', '"createdTime":1', log.read_text()))
    assert is_vacuum_due(tmp_path)
    table.vacuum()
    assert not is_vacuum_due(tmp_path)
    old = time.time() - timedelta(days=8).total_seconds()
    for file in (tmp_path / "_delta_log").glob("*.json"):
        os.utime(file, (old + int(file.name[:20]), old + int(file.name[:20])))
    assert is_vacuum_due(tmp_path)


def test_a_spent_budget_leaves_tasks(tmp_path: Path) -> None:
    table = make(tmp_path)
    report = table.maintain(MaintenancePolicy(checkpoint_commits=1), budget=Budget(seconds=0.000001))
    assert {task.result for task in report.tasks if task.due} == {"left, because the budget is spent"}
    assert table.version == 13
    with pytest.raises(InvalidOptionError, match="saved_files is a number from 1 on"):
        MaintenancePolicy(saved_files=0)
