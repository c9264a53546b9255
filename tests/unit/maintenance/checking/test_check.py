"""A check as a whole: what it returns, how deep it reads, and tables that cannot be opened."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from tests.damaged_tables import a_commit_is_missing, a_file_is_missing, checkpointed, log, plain
from tests.faults.damage import DAMAGES, Damage, sound
from tests.hand_made import HandMade

from pyspark_delta.errors import DeltaError, DeltaWarning, InvalidOptionError, TableNotFoundError
from pyspark_delta.maintenance.checking import CheckRequest, check_table
from pyspark_delta.maintenance.checking.findings import MOST
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.table import Table


def test_a_result_is_text_a_table_and_a_page(tmp_path: Path) -> None:
    plain(tmp_path)
    a_file_is_missing(tmp_path)
    result = Table.open(tmp_path).check()
    (finding,) = result.findings
    assert (finding.id, finding.severity, finding.rule, finding.version) == ("F01", "error", "C138", 3)
    assert result.errors == (finding,)
    assert not result
    assert str(result).splitlines()[1].startswith("  F01 error: The live file 'part-")
    row = result.as_table().to_pylist()[0]
    assert (row["id"], row["repair"], row["message"]) == ("F01", "missing-files", finding.message)
    assert "F01" in result._repr_html_()
    assert result.facts()["errors"] == 1
    assert repr(result) == f"CheckResult('{tmp_path}', 1 errors, 0 warnings, 0 infos)"


def test_levels_read_as_little_as_they_say(tmp_path: Path) -> None:
    plain(tmp_path)
    a_file_is_missing(tmp_path)
    counts = Counts()
    with intercepted(lambda store: CountingStore(store, counts)):
        assert check_table(str(tmp_path), CheckRequest("log"))
        assert not any(path.endswith(".parquet") for _, path in counts.log)
        assert not check_table(str(tmp_path), CheckRequest("list"))
        assert counts.calls["open_input"] == 0


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="'deep' is not a level"):
        CheckRequest("deep")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="'L99'"):
        CheckRequest(only=["L99"])
    with pytest.raises(TableNotFoundError):
        check_table(str(tmp_path))


def test_a_kind_of_checks_is_chosen_by_its_letter(tmp_path: Path) -> None:
    plain(tmp_path)
    a_file_is_missing(tmp_path)
    assert check_table(str(tmp_path), CheckRequest(only=["F"])).ids() == ("F01",)
    assert check_table(str(tmp_path), CheckRequest(only=["L", "K"])).ids() == ()
    assert check_table(str(tmp_path), CheckRequest(ignore=["F"])).ids() == ()


def test_earlier_commits_can_be_left_out(tmp_path: Path) -> None:
    checkpointed(tmp_path)
    log(tmp_path, 4).write_text(log(tmp_path, 4).read_text().replace('"dataChange":true', '"dataChange":"yes"'))
    assert check_table(str(tmp_path)).errors
    assert not check_table(str(tmp_path), CheckRequest(since=10)).findings


def test_findings_are_bounded(tmp_path: Path) -> None:
    plain(tmp_path)
    add = json.loads(log(tmp_path, 3).read_text().splitlines()[-1])["add"]
    lines = [json.dumps({"add": {**add, "path": f"{number}.parquet"}}) for number in range(300)]
    log(tmp_path, 4).write_text("\n".join(lines) + "\n")
    result = check_table(str(tmp_path), CheckRequest(only=["F01"]))
    assert len(result.findings) == MOST
    assert result.omitted == {"F01": 200}
    assert "F01: and 200 more" in str(result)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_tables_that_cannot_be_opened_are_checked(tmp_path: Path, damage: Damage) -> None:
    """Damages that readers refuse are findings, or notes of what was not checked; never errors of another kind."""
    made: HandMade = sound(tmp_path / "table")
    damage.apply(made)
    try:
        result = check_table(str(made.path), CheckRequest("data"))
    except TableNotFoundError:
        assert any("no Delta table" in text for text in damage.tells)
        return
    if damage.rows is None and damage.tells:
        assert result.errors or result.skipped, str(result)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        try:
            Table.open(made.path).scan().to_arrow()
        except DeltaError:
            assert result.errors or result.skipped, str(result)


def test_a_gap_is_found_without_opening_the_table(tmp_path: Path) -> None:
    plain(tmp_path)
    a_commit_is_missing(tmp_path)
    result = Table.check_location(tmp_path)
    assert "Version 2 is missing before version 3" in result.errors[0].message
    assert any("cannot be opened" in reason for reason in result.skipped)


def test_tags_of_a_clustered_table_are_right(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = Table.create(
        tmp_path, "`a b` STRUCT<`x.y`: BIGINT>, n BIGINT", cluster_by=["`a b`.`x.y`", "n"], properties=mapped
    )
    table.append({"a b": [{"x.y": 1}], "n": [2]})
    table.append({"a b": [{"x.y": 1}], "n": [2]})
    table.optimize()
    assert "ZCUBE_ID" in str(table.snapshot.files(("tags",))["tags"].to_pylist())
    assert "U01" not in check_table(str(tmp_path)).ids()
