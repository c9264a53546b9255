"""The command clustering, and optimize with layouts, through the entry point."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.test_cli_changes import done, invoke

from pyspark_delta.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    made = Table.create(tmp_path / "t", "id BIGINT, x BIGINT", cluster_by=["id"])
    for start in range(4):
        made.append({"id": list(range(start, 400, 4)), "x": list(range(100))})
    return tmp_path / "t"


def depth(table: Path, column: str) -> float:
    found: float = next(row for row in done("clustering", table, "--columns", column)["measures"])["files"]
    return found


def test_quality_is_shown_before_and_after(table: Path) -> None:
    facts = done("clustering", table)
    assert (facts["columns"], facts["files"], facts["rows"]) == (["id"], 4, 400)
    assert facts["measures"][0]["files"] == pytest.approx(4.0, abs=0.1)
    lines = invoke("clustering", table, "--version", "1").stdout.splitlines()
    assert lines[0].split("\t") == ["query", "columns", "share", "files read", "best", "all"]
    assert lines[1].split("\t") == ["value", "id", "", "1.0", "1.0", "1"]
    plan = done("optimize", table, "--target-size", "1000", "--plan")
    assert (plan["layout"], plan["files_removed"]) == ("clustered by id", 4)
    result = done("optimize", table, "--target-size", "1000")
    assert result["files_added"] == plan["files_added"] > 1
    assert depth(table, "id") == pytest.approx(1.0)


def test_other_tables_get_other_layouts(table: Path) -> None:
    Table.open(table).alter().cluster_by()
    given = ("optimize", table, "--target-size", "1000")
    assert done(*given, "--zorder-by", "id,x")["version"] == 6
    assert Table.open(table).history(1)[0]["operationParameters"]["zOrderBy"] == '["id","x"]'
    assert done(*given, "--sort-by", "x")["version"] == 7
    assert depth(table, "x") < 2
    refused = invoke(*given, "--full")
    assert (refused.exit_code, "no clustering columns" in refused.output) == (1, True)
