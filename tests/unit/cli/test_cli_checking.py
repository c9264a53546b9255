"""The commands check, repair, health and maintain, through the entry point."""

from __future__ import annotations

from pathlib import Path

from tests.damaged_tables import a_checksum_counts_other_files, a_commit_is_missing, a_file_is_missing, plain
from tests.unit.cli.test_cli_changes import done, invoke

from pyspark_delta.table import Table


def test_a_sound_table(tmp_path: Path) -> None:
    plain(tmp_path)
    result = invoke("check", tmp_path)
    assert result.exit_code == 0
    assert "4 commits, 3 live files" in result.stdout
    assert done("check", tmp_path, "--level", "data")["findings"] == []


def test_errors_are_shown_and_make_the_exit_code_3(tmp_path: Path) -> None:
    plain(tmp_path)
    a_file_is_missing(tmp_path)
    result = invoke("check", tmp_path)
    assert result.exit_code == 3
    assert "F01\terror\t3\tThe live file" in result.stdout
    assert invoke("check", tmp_path, "--level", "log").exit_code == 0
    assert invoke("check", tmp_path, "--only", "L,K").exit_code == 0
    assert invoke("check", tmp_path, "--ignore", "F01").exit_code == 0
    as_json = invoke("check", tmp_path, "--json")
    assert (as_json.exit_code, '"id": "F01"' in as_json.stdout) == (3, True)
    wrong = invoke("check", tmp_path, "--only", "Z9")
    assert (wrong.exit_code, "'Z9' is not the id of a check" in wrong.output) == (1, True)


def test_a_table_that_cannot_be_opened(tmp_path: Path) -> None:
    plain(tmp_path)
    a_commit_is_missing(tmp_path)
    result = invoke("check", tmp_path)
    assert result.exit_code == 3
    assert "Version 2 is missing before version 3" in result.stdout
    assert "Not checked: The newest version cannot be opened" in result.stdout


def test_repairs_are_planned_and_made(tmp_path: Path) -> None:
    plain(tmp_path)
    a_file_is_missing(tmp_path)
    a_checksum_counts_other_files(tmp_path)
    plan = done("repair", tmp_path, "--plan")
    assert (plan["repairs"], plan["not_allowed"], plan["unrepaired"]) == (["checksum"], ["missing-files"], 1)
    assert Table.open(tmp_path).version == 3
    assert done("repair", tmp_path)["repairs"] == ["checksum"]
    made = done("repair", tmp_path, "--allow", "missing-files")
    assert (made["repairs"], made["version"], made["unrepaired"]) == (["missing-files"], 4, [])
    assert invoke("check", tmp_path).exit_code == 0


def test_health(tmp_path: Path) -> None:
    plain(tmp_path)
    assert done("health", tmp_path)["files.files"] == 3
    assert "files\tfiles\t3" in invoke("health", tmp_path).stdout


def test_maintenance_is_planned_and_done(tmp_path: Path) -> None:
    plain(tmp_path)
    plan = done("maintain", tmp_path, "--saved-files", "1", "--no-vacuum", "--plan")
    assert [(task["name"], task["due"]) for task in plan["tasks"][:2]] == [("optimize", True), ("purge", False)]
    assert Table.open(tmp_path).version == plan["version"] == 3
    left = done("maintain", tmp_path, "--saved-files", "1", "--no-vacuum", "--budget-seconds", "0.000001")
    assert left["tasks"][0]["result"] == "left, because the budget is spent"
    assert done("maintain", tmp_path, "--saved-files", "1", "--no-vacuum")["version"] == 4
    assert "vacuum\tno\tthe policy excludes it" in invoke("maintain", tmp_path, "--no-vacuum").stdout
