"""Tables that a catalog manages: the catalog's commits against those in the log (A01, K13, T03)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.managed import Warehouse

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.errors import MaintenanceNotAllowedError
from pyspark_delta.maintenance.checking import CheckRequest, CheckResult, check_table


def warehouse(path: Path) -> Warehouse:
    made = Warehouse(path)
    made.create()
    made.append(1, 2)
    made.append(3)
    return made


def checked(made: Warehouse, *only: str) -> CheckResult:
    snapshot = made.snapshot()
    return check_table(
        snapshot.location,
        CheckRequest(only=only),
        storage_options=snapshot.storage_options,
        catalog_table=snapshot.catalog_table,
    )


def commits(made: Warehouse) -> list[Path]:
    return sorted(file for file in (Path(made.location()) / "_delta_log").rglob("*.json"))


def test_managed_tables_are_sound(tmp_path: Path) -> None:
    made = warehouse(tmp_path)
    result = checked(made)
    assert (result.version, result.errors, result.warnings) == (2, (), ())
    assert made.open().check().errors == ()


def test_a_published_commit_that_the_catalog_did_not_ratify(tmp_path: Path) -> None:
    made = warehouse(tmp_path)
    log = Path(made.location()) / "_delta_log"
    line = {"commitInfo": {"timestamp": 1, "operation": "x", "inCommitTimestamp": 2**50, "txnId": "t"}}
    (log / f"{3:020}.json").write_text(json.dumps(line) + "\n")
    (finding,) = checked(made, "A01").findings
    assert "a writer bypassed the catalog" in finding.message


def test_a_commit_without_a_transaction_id(tmp_path: Path) -> None:
    made = warehouse(tmp_path)
    (first, *_) = commits(made)
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    del lines[0]["commitInfo"]["txnId"]
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert checked(made, "T03").ids() == ("T03",)


def test_a_checkpoint_of_an_unpublished_version(tmp_path: Path) -> None:
    made = warehouse(tmp_path)
    log = Path(made.location()) / "_delta_log"
    made.snapshot().checkpoint()
    assert checked(made, "K13").ids() == ()
    version = made.append(4)
    (checkpoint,) = log.glob("*.checkpoint*")
    checkpoint.rename(log / f"{version:020}{checkpoint.name[20:]}")
    (log / f"{version:020}.json").unlink(missing_ok=True)
    assert checked(made, "K13").ids() == ("K13",)
    refused = made.open().repair(["unpublished-checkpoints"], plan=True)
    with pytest.raises(MaintenanceNotAllowedError, match="log to be cleaned up"):
        refused.execute()
    managed: Any = managed_table(made.snapshot().catalog_table)
    managed.catalog.allow_maintenance(managed.info.name, [Maintenance.LOG_CLEANUP])
    assert made.open().repair().repairs == ()
    assert made.open().repair(["unpublished-checkpoints"]).repairs == ("unpublished-checkpoints",)
    assert list(log.glob("*.checkpoint*")) == []
    assert checked(made, "K").ids() == ()
    assert made.ids() == [1, 2, 3, 4]


def test_the_log_of_a_managed_table_is_not_repaired_without_the_word_of_its_catalog(tmp_path: Path) -> None:
    made = warehouse(tmp_path)
    (wrong,) = (Path(made.location()) / "_delta_log").glob(f"{2:020}.crc")
    wrong.write_text(wrong.read_text().replace('"numFiles":2', '"numFiles":9'))
    plan = made.open().repair(plan=True)
    assert "(the catalog does not allow it)" in str(plan)
    assert [finding.id for finding in plan.execute().unrepaired] == ["K09"]
    assert '"numFiles":9' in wrong.read_text()
