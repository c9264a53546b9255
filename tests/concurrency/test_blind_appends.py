"""Processes that append at once: no version is lost, made twice, or skipped, and readers see whole versions."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path

import pyarrow as pa
import pytest
from tests.commits import create, draft, file
from tests.processes import processes

from pyspark_delta.errors import CommitConflictError
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.table import Table
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.transaction import Transaction

Options = Mapping[str, str]

# Commits of each process; more than CI has time for show more.
LOCAL = int(os.environ.get("PYSPARK_DELTA_TEST_COMMITS", "12"))
REMOTE = int(os.environ.get("PYSPARK_DELTA_TEST_COMMITS", "5"))
END = "the end"
WRITERS = 8


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """The writers, and a process that reads."""
    with ProcessPoolExecutor(WRITERS + 1, mp_context=processes()) as pool:
        yield pool


def append_rows(location: str, options: Options, process: int, commits: int) -> list[tuple[int, str, int]]:
    """What one process was told that it committed: version, transaction id and the row."""
    acknowledged = []
    snapshot = Snapshot.load(location, storage_options=options)
    for number in range(commits):
        row = process * 1000 + number
        with Transaction.on(snapshot) as transaction:
            ids = pa.array([row], pa.int64())
            transaction.write([pa.RecordBatch.from_pydict({"p": pa.array(["x"]), "id": ids})])
        acknowledged.append((transaction.version, transaction.draft.transaction_id, row))
        snapshot = snapshot.update()
    return acknowledged


def read_until_end(location: str, options: Options) -> list[tuple[int, int, int]]:
    """The versions that a reader sees until the application `END` commits: each with its numbers of files and rows."""
    seen: list[tuple[int, int, int]] = []
    while True:
        table = Table(Snapshot.load(location, storage_options=options))
        if END in table.snapshot.transactions():
            return seen
        if not seen or table.version != seen[-1][0]:
            seen.append((table.version, table.snapshot.num_files(), table.scan(columns=["id"]).to_arrow().num_rows))


def check_many_writers(pool: ProcessPoolExecutor, location: str, options: Options, commits: int) -> None:
    total = WRITERS * commits
    create(location, "rowTracking", "domainMetadata", storage_options=options)
    reader = pool.submit(read_until_end, location, options)
    writers = [pool.submit(append_rows, location, options, number, commits) for number in range(WRITERS)]
    wait(writers)
    with Transaction.on(Snapshot.load(location, storage_options=options)) as transaction:
        transaction.set_application_version(END, 1)
    acknowledged = [done for writer in writers for done in writer.result()]
    seen = reader.result()

    assert sorted(version for version, _, _ in acknowledged) == list(range(1, total + 1))
    rows = Table(Snapshot.load(location, storage_options=options)).scan(columns=["id"]).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == sorted(row for _, _, row in acknowledged)
    store = store_for(location, options)
    taken: set[int] = set()
    for version, transaction_id, _ in acknowledged:
        content = store.read(f"{location}/_delta_log/{version:020d}.json")
        found = [json.loads(line) for line in content.splitlines()]
        assert found[0]["commitInfo"]["txnId"] == transaction_id
        assert found[0]["commitInfo"]["readVersion"] == version - 1
        taken.update(action["add"]["baseRowId"] for action in found if "add" in action)
    assert taken == set(range(total))  # each of the rows has an id of its own
    assert [version for version, _, _ in seen] == sorted({version for version, _, _ in seen})
    assert all(version == files == count for version, files, count in seen)


def test_c012_c013_c015_c330_eight_local_writers_lose_nothing(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    location = str(tmp_path / "table")
    check_many_writers(pool, location, {}, commits=LOCAL)
    for checksum in Path(location, "_delta_log").glob("*.crc"):
        assert json.loads(checksum.read_text())["numFiles"] == min(int(checksum.stem), WRITERS * LOCAL)


def test_c012_c013_c015_c330_eight_writers_on_s3_lose_nothing(
    pool: ProcessPoolExecutor, s3_options: dict[str, str]
) -> None:
    check_many_writers(pool, f"s3://contract/{uuid.uuid4().hex}/table", s3_options, commits=REMOTE)


def update_often(location: str, process: int, commits: int) -> tuple[int, int]:
    """One process that replaces the same file again and again; how often it won, and how often others."""
    won = lost = 0
    while won < commits:
        snapshot = Snapshot.load(location)
        (current,) = snapshot.files().column("path").to_pylist()
        reads = ReadSet(whole_table=True, paths=frozenset([current]))
        mine = draft("UPDATE", [file(f"{process}-{won}")], [file(current)], reads=reads)
        try:
            commit_draft(mine, state_of(snapshot))
            won += 1
        except CommitConflictError:
            lost += 1
    return won, lost


def test_c015_updates_of_one_file_follow_one_another(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    location = str(tmp_path / "table")
    create(location, adds=["first"])
    results = [future.result() for future in [pool.submit(update_often, location, n, 6) for n in range(4)]]
    assert [won for won, _ in results] == [6] * 4
    snapshot = Snapshot.load(location)
    assert snapshot.version == 24  # a chain: each replaced the file of the one before
    removed, added = [], ["first"]
    for version in range(1, 25):
        lines = Path(location, "_delta_log", f"{version:020d}.json").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        removed += [action["remove"]["path"] for action in found if "remove" in action]
        added += [action["add"]["path"] for action in found if "add" in action]
    assert removed == added[:-1]
