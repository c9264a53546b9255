"""Optimized writes of delta-spark: when it exchanges rows, which `test_save_modes.py` compares with this package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.interop.conftest import DeltaSparkServer
from tests.optimized_writes import CASES, PROPERTY, ROWS, SETTING, TASKS

pytestmark = pytest.mark.spark


def files(path: Path) -> int:
    commit = (path / "_delta_log" / f"{1:020}.json").read_text()
    return sum("add" in json.loads(line) for line in commit.splitlines())


def test_option_session_and_table_decide_in_this_order(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    peer, found = delta_spark_server, []
    for number, case in enumerate(CASES):
        path = tmp_path / str(number)
        setting = f"reset {SETTING}" if case.session is None else f"set {SETTING} = {case.session}"
        create = f"create table delta.`{path}` (id bigint, p bigint) using delta partitioned by (p)"
        peer.ask("sql", statements=[setting, f"{create} tblproperties ('{PROPERTY}' = '{case.table}')"])
        options = {} if case.option is None else {"optimizeWrite": case.option}
        peer.ask("write", path=str(path), select=ROWS, mode="append", partition_by=["p"], options=options, tasks=TASKS)
        found.append(files(path))
    peer.ask("sql", statements=[f"reset {SETTING}"])
    assert found == [case.files for case in CASES]
