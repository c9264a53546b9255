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

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.features import supported_features
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.maintenance.policy import MaintenancePolicy, MaintenanceReport, MaintenanceTask
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


def age(path: Path, by: timedelta) -> None:
    """Make the log older; its versions stay in order."""
    old = time.time() - by.total_seconds()
    for file in (path / "_delta_log").glob("0*"):
        os.utime(file, (old + int(file.name[:20]), old + int(file.name[:20])))


def is_vacuum_due(path: Path) -> bool:
    clear_cache(str(path))
    return due(Table.open(path).maintain(plan=True))["vacuum"]


def test_a_new_table_is_left_alone(tmp_path: Path) -> None:
    table = Table.write(tmp_path, {"id": [1]})
    plan = table.maintain(plan=True)
    assert not any(due(plan).values())
    assert "vacuum: not due, the table is younger than 7 days" in str(plan)
    assert table.maintain().version == table.version == 0


def test_what_is_due_is_done_once(tmp_path: Path) -> None:
    table = make(tmp_path)
    policy = MaintenancePolicy(vacuum_days=0, checkpoint_commits=10)
    plan = table.maintain(policy, plan=True)
    assert {name for name, is_due in due(plan).items() if is_due} == {"optimize", "purge", "vacuum", "checkpoint"}
    assert "4 of 12 files have deletion vectors" in str(plan)
    before = table.version
    report = table.maintain(policy)
    assert {name for name, is_due in due(report).items() if is_due} == {"optimize", "vacuum", "checkpoint"}
    assert [row["operation"] for row in reversed(table.history(table.version - before))] == [
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
    ]
    assert (table.snapshot.num_files(), table.count()) == (1, 116)
    assert (tmp_path / "_delta_log" / f"{table.version:020d}.checkpoint.parquet").exists()
    again = table.maintain(MaintenancePolicy(checkpoint_commits=10))
    assert not any(due(again).values())


def test_vectors_are_purged_where_compaction_is_not_worth_it(tmp_path: Path) -> None:
    table = make(tmp_path)
    report = table.maintain(MaintenancePolicy(saved_files=100))
    assert {name for name, is_due in due(report).items() if is_due} == {"purge"}
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
    age(tmp_path, timedelta(days=8))
    assert is_vacuum_due(tmp_path)


def test_a_spent_budget_leaves_tasks(tmp_path: Path) -> None:
    table = make(tmp_path)
    report = table.maintain(MaintenancePolicy(checkpoint_commits=1), budget=Budget(seconds=0.000001))
    assert {task.result for task in report.tasks if task.due} == {"left, because the budget is spent"}
    assert table.version == 13
    with pytest.raises(InvalidOptionError, match="saved_files is a number from 1 on"):
        MaintenancePolicy(saved_files=0)


def test_features_are_dropped_when_their_history_may_go(tmp_path: Path) -> None:
    table = make(tmp_path)
    policy = MaintenancePolicy(drop_features=("deletionvectors", "rowTracking", "v2Checkpoint"))
    assert said(table.maintain(policy, plan=True)) == "deletionVectors has traces in the newest version"
    first = table.maintain(policy)
    assert re.fullmatch("deletionVectors waits until .* UTC", task_of(first, "drop features").result)
    assert not due(table.maintain(policy, plan=True))["drop features"]
    assert re.fullmatch("deletionVectors can be dropped from .* UTC on", said(table.maintain(policy)))
    age(tmp_path, timedelta(hours=25))
    last = table.maintain(policy)
    assert task_of(last, "drop features").result.startswith("deletionVectors dropped in version")
    assert "deletionVectors" not in supported_features(table.snapshot.configuration)
    assert table.count() == 116
    with pytest.raises(InvalidOperationError, match="'nothing' is unknown"):
        table.maintain(MaintenancePolicy(drop_features=("nothing",)), plan=True)
    with pytest.raises(InvalidOptionError, match="drop_features is a tuple"):
        MaintenancePolicy(drop_features="deletionVectors")  # type: ignore[arg-type]


def task_of(report: MaintenanceReport, name: str) -> MaintenanceTask:
    return next(task for task in report.tasks if task.name == name)


def said(report: MaintenanceReport) -> str:
    return task_of(report, "drop features").why
