"""Large checkpoints that tasks of the session scan: the same files as in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.synthetic_log import ROWS_PER_FILE, SyntheticLog, write_log
from pyspark.sql import SparkSession

from pyspark_delta import CorruptLogError, InvalidOptionError, Table
from pyspark_delta.log.loaded_files import MAX_BYTES_VARIABLE
from pyspark_delta.spark.engine import checkpoint_scan
from pyspark_delta.spark.engine.checkpoint_scan import MINIMUM_ACTIONS

FILES = 3_000
PREDICATES = (
    "p_date = DATE '2024-03-01'",
    f"id BETWEEN {1000 * ROWS_PER_FILE} AND {1200 * ROWS_PER_FILE}",
    f"p_date < DATE '2024-02-01' AND id > {100 * ROWS_PER_FILE} AND city IS NOT NULL",
    "p_date = DATE '1999-01-01'",
)


@pytest.fixture
def tasks(delta_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let tasks scan each checkpoint; the numbers of the shares that they got."""
    delta_spark.createDataFrame([], "id long")  # makes the session that of this thread
    counts: list[int] = []
    scan = checkpoint_scan.SparkCheckpointScanner.scan

    def counted(self: object, shares: object, *arguments: object) -> object:
        listed = list(shares)  # type: ignore[call-overload]
        counts.append(len(listed))
        return scan(self, listed, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoint_scan.SparkCheckpointScanner, "scan", counted)
    monkeypatch.setattr("pyspark_delta.log.checkpoint_scan._REMOTE_ROWS", 500)
    monkeypatch.setenv(MAX_BYTES_VARIABLE, "1")  # columns of a small checkpoint would stay in memory
    return counts


@pytest.mark.parametrize(
    "log",
    [
        SyntheticLog(FILES, "multi-part", parts=3, row_group_rows=250),
        SyntheticLog(FILES, "v2", parts=3, row_group_rows=250, struct_stats=True, json_stats=False),
    ],
    ids=["multi-part, JSON", "v2, columns"],
)
def test_tasks_find_the_files_that_this_process_finds(
    delta_spark: SparkSession, tasks: list[int], tmp_path: Path, log: SyntheticLog
) -> None:
    write_log(tmp_path, log)
    expected = [Table.open(str(tmp_path)).scan(where=where).files().sort_by("path") for where in PREDICATES]
    assert tasks == []
    assert {files.num_rows > 0 for files in expected} == {True, False}
    delta_spark.conf.set(MINIMUM_ACTIONS, FILES)
    try:
        for where, files in zip(PREDICATES, expected, strict=True):
            assert Table.open(str(tmp_path)).scan(where=where).files().sort_by("path").equals(files)
        assert Table.open(str(tmp_path)).files().num_rows > FILES  # no predicate: nothing is left out
    finally:
        delta_spark.conf.unset(MINIMUM_ACTIONS)
    assert len(tasks) == len(PREDICATES)
    assert (max(tasks) >= 6) == log.json_stats  # footers rule out the others


def test_errors_of_tasks_are_those_of_the_package(delta_spark: SparkSession, tasks: list[int], tmp_path: Path) -> None:
    write_log(tmp_path, SyntheticLog(FILES, "multi-part", parts=3))
    delta_spark.conf.set(MINIMUM_ACTIONS, FILES)
    try:
        table = Table.open(str(tmp_path))
        table.scan(where=PREDICATES[0]).files()  # the footers are known now
        part = next((tmp_path / "_delta_log").glob("*.checkpoint.0000000002.*"))
        part.write_bytes(part.read_bytes()[:-100])
        with pytest.raises(CorruptLogError, match=part.name):
            table.scan(where=PREDICATES[1]).files()
        delta_spark.conf.set(MINIMUM_ACTIONS, "many")
        with pytest.raises(InvalidOptionError, match="found 'many'"):
            Table.open(str(tmp_path)).scan(where=PREDICATES[0]).files()
    finally:
        delta_spark.conf.unset(MINIMUM_ACTIONS)
    assert len(tasks) >= 2
