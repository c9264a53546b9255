"""Processes that append at once: no version is lost, made twice, or skipped."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pyarrow as pa

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.new_table import new_table

PROCESSES, COMMITS = 4, 25


def draft(path: str) -> CommitDraft:
    row = {"path": path, "partition_values": [], "size": 10, "modification_time": 1, "stats": '{"numRecords":1}'}
    files = pa.Table.from_pylist([row], pa.schema(FILE_FIELDS))
    return CommitDraft(operation=Operation("WRITE", {"mode": "Append", "partitionBy": "[]"}), adds=files)


def append_often(arguments: tuple[str, int]) -> list[tuple[int, str]]:
    """What one process was told that it committed: version and transaction id."""
    location, process = arguments
    acknowledged = []
    state = state_of(Snapshot.load(location))
    for number in range(COMMITS):
        mine = draft(f"{process}-{number}.parquet")
        state = commit_draft(mine, state)
        acknowledged.append((state.version, mine.transaction_id))
    return acknowledged


def test_c012_c013_c015_every_acknowledged_commit_is_there_once(tmp_path: Path) -> None:
    location = str(tmp_path / "table")
    configuration = new_table(StructType((StructField("id", LONG),)))
    first = CommitDraft(
        operation=Operation("CREATE TABLE"), protocol=configuration.protocol, metadata=configuration.metadata
    )
    commit_draft(first, TableState(location=location))
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        acknowledged = [c for done in pool.map(append_often, [(location, p) for p in range(PROCESSES)]) for c in done]

    assert sorted(version for version, _ in acknowledged) == list(range(1, PROCESSES * COMMITS + 1))
    for version, transaction_id in acknowledged:
        lines = Path(location, "_delta_log", f"{version:020d}.json").read_text().splitlines()
        assert json.loads(lines[0])["commitInfo"]["txnId"] == transaction_id
        assert json.loads(lines[0])["commitInfo"]["readVersion"] == version - 1
    snapshot = Snapshot.load(location)
    paths = snapshot.files().column("path").to_pylist()
    assert sorted(paths) == sorted(f"{p}-{n}.parquet" for p in range(PROCESSES) for n in range(COMMITS))
    for checksum in Path(location, "_delta_log").glob("*.crc"):
        assert json.loads(checksum.read_text())["numFiles"] == int(checksum.stem)
