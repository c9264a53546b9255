"""The commands restore, undo, vacuum, optimize and purge, through the entry point; results are read by deltalake."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.unit.cli.test_cli_changes import done, invoke

from pyspark_delta.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    made = Table.write(path, {"id": [1, 2, 3]})
    made.delete("id > 1")
    return path


def ids(table: Path) -> list[int]:
    found: list[int] = sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())
    return found


def test_versions_are_restored_and_changes_undone(table: Path) -> None:
    assert done("restore", table, "--version", "0", "--plan")["files_added"] == 1
    assert ids(table) == [1]
    assert done("restore", table, "--version", "0", "--user-metadata", "why")["version"] == 2
    assert ids(table) == [1, 2, 3]
    assert Table.open(table).history(1)[0]["userMetadata"] == "why"
    assert done("undo", table)["metrics"]["numRemovedFiles"] == 1
    assert ids(table) == [1]
    assert invoke("undo", table, "--plan").stdout.startswith("operation")
    wrong = invoke("restore", table)
    assert (wrong.exit_code, "give either --version or --timestamp" in wrong.output) == (2, True)


def test_files_are_vacuumed(table: Path) -> None:
    before = {file.name for file in table.glob("*.parquet")}
    short = invoke("vacuum", table, "--retention-hours", "0")
    assert (short.exit_code, "shorter than that of the table" in short.output) == (1, True)
    given = ("vacuum", table, "--retention-hours", "0", "--allow-short-retention", "--mode", "full")
    assert done(*given, "--keep-version", "0", "--plan")["files"] == 0
    plan = done(*given, "--plan")
    assert (plan["files_of_data"], plan["oldest_readable_version"]) == (1, 1)
    assert {file.name for file in table.glob("*.parquet")} == before
    result = done(*given)
    assert (result["files_deleted"], result["bytes_deleted"]) == (1, plan["bytes"])
    assert len({file.name for file in table.glob("*.parquet")}) == len(before) - 1
    assert ids(table) == [1]


def test_files_are_combined_and_purged(table: Path) -> None:
    made = Table.open(table)
    made.append({"id": [4]})
    made.append({"id": [5]})
    plan = done("optimize", table, "--plan")
    assert (plan["files_removed"], plan["files_added"], plan["commits"]) == (3, 1, 1)
    assert "bytes read" in invoke("optimize", table, "--plan", "--target-size", "1GB").stdout
    assert done("optimize", table, "--budget-bytes", "10", "--budget-seconds", "5", "--budget-commits", "1")[
        "bins_left"
    ]
    result = done("optimize", table, "--user-metadata", "why", "--threads", "1", "--memory", "100MB")
    assert (result["files_removed"], result["files_added"], result["bins_left"]) == (3, 1, 0)
    assert Table.open(table).history(1)[0]["userMetadata"] == "why"
    assert ids(table) == [1, 4, 5]
    assert done("purge", table)["version"] is None
    assert "version" in invoke("purge", table).stdout
    wrong = invoke("optimize", table, "--where", "id = 1")
    assert (wrong.exit_code, "must select whole partitions" in wrong.output) == (1, True)
