"""The health of a table: figures that follow from what was written, and advice where something is to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.damaged_tables import properties

from pyspark_delta.maintenance.health import HealthReport
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table


def topic(report: HealthReport, name: str) -> dict[str, Any]:
    (found,) = (topic for topic in report.topics if topic.name == name)
    return {**found.figures, "advice": found.advice}


def test_a_new_table_is_healthy(tmp_path: Path) -> None:
    table = Table.write(tmp_path, {"id": [1, 2, 3]})
    report = table.health()
    assert report.is_good
    assert topic(report, "files") | {"bytes": 0, "mean_bytes": 0} == {
        "files": 1,
        "bytes": 0,
        "mean_bytes": 0,
        "small_files": 1,
        "advice": "",
    }
    assert topic(report, "files")["bytes"] == table.detail()["sizeInBytes"]
    assert "nothing" not in str(report)
    assert report.facts()["files.files"] == 1
    assert "HealthReport" in report._repr_html_()


def test_small_files_and_their_layout(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "ordered INT, mixed INT, s STRING", properties={"delta.checkpointInterval": "100"})
    for number in range(20):
        table.append(
            {"ordered": [10 * number, 10 * number + 9], "mixed": [0, 100], "s": [f"a{number:02}", f"a{number:02}z"]}
        )
    report = table.health()
    assert topic(report, "files")["advice"].startswith("Compact the table: 1 file could hold")
    skipping = topic(report, "skipping")
    assert skipping["files_read_by_ordered"] == 0.05
    assert skipping["files_read_by_mixed"] == 1.0
    assert skipping["files_read_by_s"] == 0.05
    assert not skipping["advice"]
    assert topic(report, "checkpoints") == {"checkpoints": 0, "commits_since": 21, "interval": 100, "advice": ""}


def test_deleted_rows_and_retention(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", properties={"delta.enableDeletionVectors": "true"})
    table.append({"id": list(range(30_000))})
    table.delete("id % 4 = 1")
    properties(tmp_path, delta__logRetentionDuration="interval 1 days")
    clear_cache(str(tmp_path))
    report = Table.open(tmp_path).health()
    deleted = topic(report, "deleted rows")
    assert (deleted["files_with_vectors"], deleted["deleted_rows"], deleted["deleted_share"]) == (1, 7500, 0.25)
    assert deleted["advice"].startswith("Purge")
    assert topic(report, "retention")["advice"].startswith("Set delta.logRetentionDuration")
    assert not report.is_good
    assert repr(report) == f"HealthReport('{tmp_path}', see deleted rows, retention)"
