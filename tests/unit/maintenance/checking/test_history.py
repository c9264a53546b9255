"""Findings that need more than one damage: times of files, protected checkpoints, distance of checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

from tests.damaged_tables import add_action, checkpointed, log, plain, properties, the

from pyspark_delta.maintenance.checking import CheckRequest, check_table
from pyspark_delta.table import Table


def test_times_of_commits_that_decrease(tmp_path: Path) -> None:
    plain(tmp_path)
    os.utime(log(tmp_path, 3), (1, 1))
    (finding,) = check_table(str(tmp_path)).findings
    assert (finding.id, finding.version, finding.severity) == ("L09", 3, "warning")


def test_protected_checkpoints_must_stay(tmp_path: Path) -> None:
    checkpointed(tmp_path)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkpointProtection"]}
    metadata = the(tmp_path, 0, "metaData")
    metadata["configuration"]["delta.requireCheckpointProtectionBeforeVersion"] = "8"
    add_action(tmp_path, 11, {"protocol": protocol}, {"metaData": metadata})
    only = CheckRequest(only=["K11"])
    assert check_table(str(tmp_path), only).ids() == ()
    for version in range(7):
        log(tmp_path, version).unlink()
    assert check_table(str(tmp_path), only).ids() == ("K11",)
    for version in range(7, 10):
        log(tmp_path, version).unlink()
    assert check_table(str(tmp_path), only).ids() == ()  # every version before went with them


def test_a_log_without_checkpoints(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", properties={"delta.checkpointInterval": "1000000"})
    table.append({"id": [1]})
    text = '{"commitInfo":{"operation":"x"}}'
    for version in range(2, 120):
        log(tmp_path, version).write_text(text + "\n")
    assert check_table(str(tmp_path)).ids() == ()
    properties(tmp_path, delta__checkpointInterval="10")
    assert check_table(str(tmp_path)).ids() == ("K12",)
