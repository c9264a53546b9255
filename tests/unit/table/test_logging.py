"""What Python's `logging` gets: a line for each finished thing at INFO, details at DEBUG, and no secret."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_delta import Table, Transaction

SECRET = "s3cr3twJalrXUtnFEMI"


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, logger="pyspark_delta"):
        yield caplog


def lines(records: pytest.LogCaptureFixture, level: int) -> str:
    """The records of a level, each with the first two parts of its logger's name."""
    shown = [
        f"{'.'.join(record.name.split('.')[:2])}: {record.getMessage()}"
        for record in records.records
        if record.levelno == level
    ]
    records.clear()
    return "\n".join(shown)


def test_info_has_a_line_for_each_finished_thing(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    table = Table.create(tmp_path, "id BIGINT, part BIGINT", partition_by=["part"])
    table.append({"id": [1, 2, 3], "part": [0, 0, 1]})
    written = lines(records, logging.INFO)
    commit = rf"transaction: Committed WRITE as version 1 of {tmp_path}: 2 files added, 0 removed, .*numOutputRows=3.*"
    assert re.search(rf"{commit}; attempts=1, \d+\.\d+ s$", written, re.MULTILINE)
    assert re.search(rf"write: Wrote version 1 of {tmp_path}, \d+\.\d+ s$", written, re.MULTILINE)
    table.delete("id = 1")
    deleted = lines(records, logging.INFO)
    assert "engines: DELETE: Arrow in the driver" in deleted
    assert "numDeletedRows=1" in deleted
    assert re.search(r"statements: DELETE is done, \d+\.\d+ s$", deleted, re.MULTILINE)
    table.delete("id = 1")
    assert "statements: DELETE changed no row" in lines(records, logging.INFO)
    old = Table.open(tmp_path, version=1)
    assert f"snapshot: Opened version 1 of {tmp_path} in " in lines(records, logging.INFO)
    size = sum(
        size
        for size, part in zip(*(old.files()[name].to_pylist() for name in ("size", "partition_values")), strict=True)
        if part == [("part", "0")]
    )
    old.scan(where="part = 0")
    planned = f"scan: Planned a scan of version 1 of {tmp_path}: 1 files of {size} bytes, 1 files skipped"
    assert planned in lines(records, logging.INFO)


def test_debug_has_files_phases_and_winners(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    table = Table.create(tmp_path, "id BIGINT", properties={"delta.checkpointInterval": 2})
    loser = Transaction.on(table.snapshot)
    table.append({"id": [1]})
    [file] = tmp_path.glob("*.parquet")
    details = lines(records, logging.DEBUG)
    assert f"data: Wrote {file}: 1 rows, {file.stat().st_size} bytes" in details
    assert re.search(rf"write: Writing the new rows of {tmp_path} took \d+\.\d+ s", details)
    with loser:
        loser.write(table.scan().to_arrow().to_batches())
    assert "attempts=2" in records.text
    details = lines(records, logging.DEBUG)
    assert f"transaction: Version 1 of {tmp_path} was taken by WRITE" in details
    assert f"log: Wrote the classic checkpoint of version 2 of {tmp_path}: " in details


def test_no_record_has_a_secret(tmp_path: Path, records: pytest.LogCaptureFixture) -> None:
    options = {"aws_secret_access_key": SECRET, "azure_storage_account_key": SECRET}
    table = Table.create(tmp_path, "id BIGINT", properties={"delta.checkpointInterval": 1}, storage_options=options)
    table.append({"id": [1, 2]})
    table.update({"id": "id + 1"}, "id = 1")
    table.delete("id = 2")
    table.clean_log()
    table.scan(where="id = 2").to_arrow()
    assert len(records.records) > 20
    shown = [f"{record.getMessage()} {record.args!r} {vars(record)}" for record in records.records]
    assert [text for text in shown if SECRET in text] == []


def test_an_application_without_logging_sees_nothing(tmp_path: Path) -> None:
    code = f"from pyspark_delta import Table; Table.create({str(tmp_path)!r}, 'id BIGINT').append([{{'id': 1}}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_nothing_is_computed_for_records_that_nobody_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The number of skipped files may need the whole log."""
    table = Table.create(tmp_path, "id BIGINT")

    def num_files(_: object) -> int:
        raise AssertionError("counted")

    monkeypatch.setattr(type(table.snapshot), "num_files", num_files)
    assert table.scan().files().num_rows == 0
    with caplog.at_level(logging.INFO, logger="pyspark_delta.scan"), pytest.raises(AssertionError, match="counted"):
        table.scan()
