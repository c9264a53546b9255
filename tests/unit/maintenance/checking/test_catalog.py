"""Tables that a catalog manages: the catalog's commits against those in the log (A01, K13, T03)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.managed import Warehouse

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
