"""The commands show, diff and drop-feature, through the entry point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.test_cli_changes import done, invoke

from pyspark_delta.cli.inspecting import Name
from pyspark_delta.inspection import NAMES
from pyspark_delta.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    made = Table.write(path, {"id": [1, 2, 3]}, properties={"delta.enableDeletionVectors": "true"})
    made.delete("id > 1")
    return path


def test_metadata_tables_are_shown(table: Path) -> None:
    assert tuple(Name) == NAMES
    for name in NAMES:
        printed = [json.loads(line) for line in invoke("show", table, name, "--json").stdout.splitlines()]
        assert len(printed) == Table.open(table).inspect(name).to_arrow().num_rows
    shown = invoke("show", table, "files", "--columns", "num_records,num_deleted_records")
    assert shown.stdout.splitlines() == ["num_records\tnum_deleted_records", "3\t2"]
    assert invoke("show", table, "files", "--version", "0", "--columns", "num_deleted_records").stdout.endswith("\n0\n")
    wrong = invoke("show", table, "files", "--columns", "x")
    assert (wrong.exit_code, "has no column 'x'. Its columns are path" in wrong.output) == (1, True)
    assert invoke("show", table, "unknown").exit_code == 2


def test_differences_are_shown(table: Path) -> None:
    Table.open(table).alter().set_properties({"user.x": "y"})
    facts = done("diff", table, "0")
    assert (facts["rows_before"], facts["rows_after"], facts["files_added"]) == (3, 1, 1)
    assert facts["changes"] == [{"kind": "property", "name": "user.x", "before": None, "after": "y"}]
    assert "property\tuser.x\t\ty" in invoke("diff", table, "0", "2").stdout
    assert invoke("diff", table, "9").exit_code == 1


def test_features_are_dropped(table: Path) -> None:
    plan = done("drop-feature", table, "deletionVectors", "--plan")
    assert (plan["files_rewritten"], plan["readers_need_after"]) == (1, "version 1")
    assert "rewrite 1 file with deletion vectors" in invoke("drop-feature", table, "deletionVectors", "--plan").stdout
    wait = invoke("drop-feature", table, "deletionVectors", "--truncate-history", "--json")
    assert (wait.exit_code, json.loads(wait.stderr)["type"]) == (1, "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD")
    result = done("drop-feature", table, "deletionVectors")
    assert result["writer_features"] == ["appendOnly", "checkpointProtection", "invariants"]
    assert Table.open(table).version == result["version"]
